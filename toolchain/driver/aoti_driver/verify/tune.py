"""The ``tune`` subcommand (NAME.tune): measures the tiles of a model's products on a GPU.

The model is compiled with all candidates of each product. For each number of a candidate it runs
once, on the inputs of the model's test: its results are compared, and its launches are timed.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from aoti_driver.base import files, source_tree
from aoti_driver.base.errors import DriverError, listed, plural
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.contract.request_spec import read_spec
from aoti_driver.contract.tiles import ProductTiles, Tile
from aoti_driver.cuda import tile_table, tuning_file
from aoti_driver.export import methods
from aoti_driver.verify import verify

# (number of the product's first kernel, rows) -> microseconds of each candidate
Times = Mapping[tuple[int, int], Sequence[float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verify.add_arguments(parser)
    parser.add_argument("--target", required=True, help="the label of this program")
    parser.add_argument("--path", required=True, help="the file's path in the workspace")
    parser.add_argument("--repository", default="", help="empty: the main one")
    parser.add_argument("--package", required=True)
    parser.add_argument("--workspace", default="", help="what `bazel run` says")
    parser.add_argument("--working_directory", default="")


def run(args: argparse.Namespace) -> None:
    folder = source_tree.package_folder(args.target, args.workspace, args.repository, args.package)
    path = folder / Path(args.path).relative_to(args.package)
    before = _before(path)
    library = read_manifest(args.manifest, LibraryManifest)
    if library.codegen.cuda is None or not library.codegen.cuda.products:
        raise DriverError(
            f"{args.target}: the model has no product to measure; nothing was changed"
        )
    products = library.codegen.cuda.products
    try:
        device, times = _measure(args, library, products)
    except DriverError as e:
        raise DriverError(f"{e}\n{args.target}: {args.path} was not changed") from None
    arch, gpu = device
    if arch not in library.codegen.cuda.archs:
        raise DriverError(
            f"{args.target}: {gpu} is {arch}, and the model's cuda_archs are "
            f"{listed(library.codegen.cuda.archs)}; name {arch} there first. {args.path} was not "
            "changed"
        )
    tiles = best(products, times)
    measured = tuning_file.Measured(gpu, tiles)
    document = tuning_file.Document(tuning_file.FORMAT, {**before, arch: measured})
    text = tuning_file.write(document)
    source_tree.install({path: lambda part: part.write_text(text, encoding="utf-8")})
    print(
        f"{args.target}: {args.path}: {plural(len(tiles), 'product')}, measured on {gpu} ({arch})"
    )
    for key, chosen in sorted(tiles.items()):
        print(f"  {key}: {'; '.join(map(str, chosen))}")


def _before(path: Path) -> dict[str, tuning_file.Measured]:
    """What the file says of other architectures, if there is one."""
    if not path.is_file():
        return {}
    return tuning_file.parse(path.read_text(encoding="utf-8"), path.name).archs


def _measure(
    args: argparse.Namespace, library: LibraryManifest, products: Sequence[ProductTiles]
) -> tuple[tuple[str, str], Times]:
    """The architecture and name of the device, and the times."""
    spec = read_spec(args.spec, verify.Spec)
    manifest = library.program
    times: dict[tuple[int, int], list[float]] = defaultdict(list)
    device = ("", "")
    with (
        files.scratch_directory() as scratch,
        methods.named_in_errors(spec.export.method if spec.export else None),
    ):
        reference = verify.reference_of(args, spec, manifest, scratch)
        recorded = verify.record(reference, manifest, spec.max_points)
        for candidate in range(max(len(product.tiles) for product in products)):
            file = scratch / "times.txt"
            environment = {
                "AOTI_CUDA_CANDIDATE": str(candidate),
                "AOTI_CUDA_TIMES": str(file),
            }
            replayed = verify.replay(args, recorded, scratch, manifest, environment)
            reports = verify.judge(recorded, replayed, manifest, (spec.rtol, spec.atol))
            if failed := [report for report in reports if report.failures]:
                tiles = {str(p.tiles[min(candidate, len(p.tiles) - 1)]) for p in products}
                raise DriverError(
                    f"with tiles of {listed(sorted(tiles))}: {verify.failures(failed, manifest)}"
                )
            device, found = read_times(file.read_text(encoding="utf-8"))
            for place, microseconds in found.items():
                times[place].append(microseconds)
            file.unlink()
    return device, times


def read_times(text: str) -> tuple[tuple[str, str], dict[tuple[int, int], float]]:
    """What runtime/cuda/measuring.h writes: the device, and the least time of each product."""
    first, *lines = text.splitlines()
    arch, _, gpu = first.partition(" ")
    found: dict[tuple[int, int], float] = {}
    for line in lines:
        product, rows, microseconds = line.split()
        place = (int(product), int(rows))
        found[place] = min(float(microseconds), found.get(place, float("inf")))
    return (arch, gpu), found


def best(products: Sequence[ProductTiles], times: Times) -> dict[str, tuple[Tile, ...]]:
    """For each product that ran, the best candidate of each class of rows."""
    by_key: dict[str, list[ProductTiles]] = defaultdict(list)
    for product in products:
        by_key[product.key].append(product)
    return {key: tiles for key, group in by_key.items() if (tiles := _of_classes(group, times))}


def _of_classes(group: Sequence[ProductTiles], times: Times) -> tuple[Tile, ...]:
    candidates = group[0].tiles
    numbers = {product.kernel for product in group}
    by_class: dict[float, list[Sequence[float]]] = defaultdict(list)
    for (number, rows), each in sorted(times.items()):
        if number in numbers:
            border = next((b for b in tile_table.BORDERS if rows <= b), float("inf"))
            by_class[border].append(each[: len(candidates)])
    chosen: list[Tile] = []
    borders = sorted(by_class)
    for border in borders:
        # Each number of rows counts alike, however long it takes.
        costs = [
            sum(each[n] / max(min(each), 1e-9) for each in by_class[border])
            for n in range(len(candidates))
        ]
        tile = candidates[costs.index(min(costs))]
        if chosen and dataclasses.replace(chosen[-1], rows=None) == tile:
            chosen.pop()
        bound = None if border == borders[-1] else int(border)
        chosen.append(dataclasses.replace(tile, rows=bound))
    return tuple(chosen)
