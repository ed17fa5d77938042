"""``freeze``: writes a frozen program into the source tree, beside the model's BUILD file.

Run by ``bazel run //models:encoder.freeze``. It needs only the standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from aoti_driver.base import digests, source_tree
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest, to_json
from aoti_driver.frozen import frozen_program
from aoti_driver.program import graph_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--graph", "--weights", "--manifest"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--target", required=True, help="the freeze target, as a user types it")
    parser.add_argument("--model", required=True, help="the model's label")
    parser.add_argument("--repository", default="", help="empty: the main one")
    parser.add_argument("--package", required=True)
    parser.add_argument("--folder", required=True, help="the folder's name in the package")
    parser.add_argument("--workspace", default="", help="what `bazel run` says")
    parser.add_argument("--working_directory", default="")
    # Flags that users give after `--`.
    parser.add_argument("--with_weights", action="store_true")
    parser.add_argument("--weights_to", default="")
    parser.add_argument("--url", default="")


def run(args: argparse.Namespace) -> None:
    folder = _folder(args)
    shown = "/".join(part for part in (args.package, args.folder) if part)
    document, sha256 = frozen_program.read_graph(args.graph, args.model)
    manifest = read_manifest(args.manifest, ProgramManifest, who=args.model)
    frozen_program.check_whole(manifest, sha256, args.model)
    info = frozen_program.describe_weights(args.weights, args.model, _url(args, folder))
    texts = {
        frozen_program.GRAPH: graph_text.pretty(document),
        frozen_program.WEIGHTS_INFO: info.to_json(),
        frozen_program.MANIFEST: to_json(manifest),
    }
    # Weights from an earlier freeze would no longer belong to the other files.
    with_weights = args.with_weights or (folder / frozen_program.WEIGHTS).exists()
    lines = []
    try:
        if args.weights_to:
            target = Path(args.working_directory, args.weights_to)
            if target.is_dir():
                target = target / f"{manifest.name}.safetensors"
            source_tree.install({target: lambda path: _copy(args.weights, path)})
            lines.append(f"  {args.weights_to}: the weights")
        files: dict[Path, Callable[[Path], object]] = {}
        if with_weights and not _same(folder / frozen_program.WEIGHTS, info):
            files[folder / frozen_program.WEIGHTS] = lambda path: _copy(args.weights, path)
        for name, text in texts.items():
            if not _holds(folder / name, text):
                files[folder / name] = lambda path, text=text: path.write_text(  # type: ignore[misc]
                    text, encoding="utf-8"
                )
        folder.mkdir(exist_ok=True)
        source_tree.install(files)
    except OSError as e:
        raise DriverError(
            f"{args.target}: can't write {e.filename or shown}: {e.strerror}; nothing was changed"
        ) from None
    changed = {path.name for path in files}
    for name in (*texts, *([frozen_program.WEIGHTS] if with_weights else [])):
        size = (folder / name).stat().st_size
        state = "written" if name in changed else "as it was"
        lines.append(f"  {name}: {size:,} bytes, {state}")
    print(f"{args.target}: {shown}/", *lines, *_next(args, info, with_weights), sep="\n")


def _folder(args: argparse.Namespace) -> Path:
    package = source_tree.package_folder(args.target, args.workspace, args.repository, args.package)
    return package / str(args.folder)


def _url(args: argparse.Namespace, folder: Path) -> str:
    """The given address; without one, the last one if the weights are the same."""
    if args.url:
        return str(args.url)
    with contextlib.suppress(OSError, DriverError):
        text = (folder / frozen_program.WEIGHTS_INFO).read_text(encoding="utf-8")
        known = frozen_program.WeightsInfo.from_json(text, "")
        if known.url and (known.sha256, known.size) == digests.of_file(args.weights):
            return known.url
    return ""


def _next(
    args: argparse.Namespace, info: frozen_program.WeightsInfo, with_weights: bool
) -> Iterator[str]:
    yield ""
    if with_weights:
        yield f"The weights are in the folder: {info.place()}."
    else:
        yield f"The weights are not in the folder, their digest is: {info.place()}."
        if not info.url:
            yield "To keep them: `-- --with_weights` puts them into the folder. Or upload what"
            yield "`-- --weights_to=FILE` writes, and note its place with `-- --url=https://...`."
    package = f"{args.package}/" if args.package else ""
    yield f"To build from the folder, in {package}BUILD.bazel:"
    yield ""
    yield f'    frozen = glob(["{args.folder}/*"]),  # in aoti_model, or in torch_import'
    yield ""
    yield "docs/frozen.md of rules_aoti tells the rest."


def _copy(source: str, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _same(path: Path, info: frozen_program.WeightsInfo) -> bool:
    return path.is_file() and digests.of_file(path) == (info.sha256, info.size)
