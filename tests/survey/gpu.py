"""What becomes of the survey's architectures on GPUs: writes docs/cuda_architectures.md.

Generates their code for sm_80, one after the other, each in a process of its own, and replaces
their rows. Triton must be there, but compiles nothing: the kernels' sources are all that counts.

    python -m tests.survey.gpu                       # those that have no row yet
    python -m tests.survey.gpu --only='torch.nn/*'   # some, anew
    python -m tests.survey.gpu --only                # none: only writes the page anew
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import multiprocessing
import re
import resource
import tempfile
import types
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from aoti_driver.contract.manifest import CodeManifest
from aoti_driver.contract.manifest_file import read_manifest
from aoti_driver.cuda import kernels
from aoti_driver.cuda.images import Kernel

from tests.survey import architectures, pipeline, survey

PAGE = survey.ROOT / "docs/cuda_architectures.md"
_ARCH = "sm_80"
_SECONDS = 200
_BYTES = 8 << 30
# It draws the seeds of random numbers.
_SEEDS = "aoti_torch_cpu_randint_low_out"

_HEAD = (
    "# Architectures on GPUs\n\n"
    "What became of the architectures of [the survey](slim_architectures.md) when their "
    "code was generated for `{arch}`. {count} of {all} were examined: {kernels} became kernels "
    "alone, {refused} call operators that have no kernel, which the build refuses by the "
    "operator's name and the line of the model, and {failed} have no code for another reason, "
    "which is given.\n\n"
    "The sources of the kernels were generated, and were not compiled for this page. [Operators "
    "on GPUs](cuda_operators.md) is about kernels that ran. `python -m tests.survey.gpu` examines "
    "those that are missing and writes this page again, and `//tests/survey:gpu_test` repeats "
    "some of its rows.\n"
)


@dataclasses.dataclass(frozen=True)
class Row:
    """refused: the operators without a kernel. failed: why there is no code."""

    refused: tuple[str, ...] = ()
    failed: str = ""

    def __str__(self) -> str:
        if self.failed:
            return f"no code: {self.failed}"
        return ", ".join(f"`{name}`" for name in self.refused) or "kernels"


def row(found: Mapping[str, Any]) -> Row:
    """Of what examine() found."""
    if "failed" not in found:
        return Row(tuple(found["refused"]))
    plain = re.sub(r"[|`]", "'", str(found["failed"]))
    named = set(re.findall(r"(?:operator |Exception: )(aten\.[\w.]+)", plain))
    return Row(tuple(sorted(named))) if named else Row(failed=" ".join(plain.split())[:200])


def read(text: str) -> dict[str, Row]:
    rows = {}
    for name, what in re.findall(r"^\| `([\w.]+/[^`]+)` \| (.*) \|$", text, re.MULTILINE):
        failed = what.removeprefix("no code: ") if what.startswith("no code: ") else ""
        refused = () if failed else tuple(re.findall(r"`([^`]+)`", what))
        rows[name] = Row(refused, failed)
    return rows


def page(rows: Mapping[str, Row], order: Collection[str]) -> str:
    there = {name: rows[name] for name in order if name in rows}
    refused = [name for name, row in there.items() if row.refused]
    failed = [name for name, row in there.items() if row.failed]
    head = _HEAD.format(
        arch=_ARCH,
        count=len(there),
        all=len(order),
        kernels=len(there) - len(refused) - len(failed),
        refused=len(refused),
        failed=len(failed),
    )
    listed = [f"| `{name}` | {row} |" for name, row in there.items()]
    return "\n".join(
        [
            head,
            "## Packages\n",
            "| package | architectures | examined | kernels | refused | no code |",
            "|---|---|---|---|---|---|",
            *_packages(there, order),
            "\n## Operators without a kernel\n",
            "| operator | architectures | of which |",
            "|---|---|---|",
            *_operators(there),
            "\n## Architectures\n",
            "| architecture | on GPUs |",
            "|---|---|",
            *listed,
            "",
        ]
    )


def _packages(rows: Mapping[str, Row], order: Collection[str]) -> Iterator[str]:
    def counts(names: Collection[str]) -> Counter[str]:
        return Counter(name.partition("/")[0] for name in names)

    columns = [
        counts(list(rows)),
        counts([name for name, row in rows.items() if not row.refused and not row.failed]),
        counts([name for name, row in rows.items() if row.refused]),
        counts([name for name, row in rows.items() if row.failed]),
    ]
    for package, count in counts(order).items():
        cells = " | ".join(str(column[package]) for column in columns)
        yield f"| {package} | {count} | {cells} |"


def _operators(rows: Mapping[str, Row]) -> Iterator[str]:
    users: dict[str, list[str]] = {}
    for name, row in rows.items():
        for operator in row.refused:
            users.setdefault(operator, []).append(name)
    for operator, names in sorted(users.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| `{operator}` | {len(names)} | {', '.join(names)} |"


def examine(name: str, folder: Path) -> dict[str, Any]:
    """refused: operators without a kernel; or failed: the step and the reason."""
    architecture = architectures.BY_ID[name]
    step = "export"
    try:
        frozen = pipeline.export(architecture)
        step = "freeze"
        pipeline.freeze(frozen, folder, f"//survey:{architecture.name}")
        step = "codegen"
        with mock.patch.object(kernels, "_build", _not_built):
            pipeline.generate(folder, dict(architecture.options), (_ARCH,))
    except Exception as error:
        return {"failed": f"{step}: {type(error).__name__}: {error}"}
    manifest = read_manifest(folder / "compiled.json", CodeManifest)
    shims = [shim for shim in manifest.codegen.shims if shim.name != _SEEDS]
    return {"refused": sorted({name for shim in shims for name in shim.operators})}


def _not_built(*_: Any) -> Any:
    """In place of what Triton makes of a kernel."""
    metadata = types.SimpleNamespace(global_scratch_size=0, profile_scratch_size=0, num_ctas=1)
    return kernels._Built(Kernel("kernel", (), False), types.SimpleNamespace(metadata=metadata))


def _child(name: str, sender: Connection, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sender.send(examine(name, folder))


def in_child(name: str) -> dict[str, Any]:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as scratch:
        process = context.Process(target=_child, args=(name, sender, Path(scratch)))
        process.start()
        sender.close()
        try:
            if receiver.poll(_SECONDS):
                return receiver.recv()  # type: ignore[no-any-return]
            return {"failed": f"not done after {_SECONDS} s"}
        except EOFError:
            return {"failed": "the process ended"}
        finally:
            process.kill()
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="patterns of names")
    patterns = parser.parse_args().only
    rows = read(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    if patterns is None:
        names = [name for name in architectures.BY_ID if name not in rows]
    else:
        names = [n for only in patterns for n in fnmatch.filter(architectures.BY_ID, only)]
    survey._import_ahead(names)
    PAGE.write_text(page(rows, architectures.BY_ID), encoding="utf-8")
    for name in names:
        rows[name] = row(in_child(name))
        PAGE.write_text(page(rows, architectures.BY_ID), encoding="utf-8")
        print(name, rows[name], flush=True)


if __name__ == "__main__":
    main()
