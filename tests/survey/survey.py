"""Finds the functions of AOTInductor's C interface that models need, by generating their code.

Examines the architectures one after the other, each in a process of its own, and replaces their
rows in docs/slim_operators.md and docs/slim_architectures.md:

    python survey.py                               # all
    python survey.py --only='torch.nn/*'           # some
    python survey.py --only                        # none: only writes the pages anew
    python survey.py --missing                     # those that have no row yet, or no code
    python survey.py --run=libslim.a --only=...    # compiles and runs them, too

With --run, each program is linked with the slim runtime, and its results are compared with eager
PyTorch's; what differs is printed. `bazelw build //tests/survey:slim` makes the static library.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).absolute().parents[2]
for _path in (ROOT, ROOT / "toolchain/driver", ROOT / "runtime/slim/tests"):
    if str(_path) not in sys.path:
        sys.path.insert(0, str(_path))


import torch  # noqa: E402
from aoti_driver.artifacts.missing_functions import parse_dtypes  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from tests.survey import architectures, native, pipeline  # noqa: E402
from tests.survey.compare import difference  # noqa: E402
from tests.survey.optional_packages import declare_torchvision  # noqa: E402
from tests.survey.registry import Architecture  # noqa: E402
from tests.survey.table import Page  # noqa: E402

PAGE = ROOT / "docs/slim_operators.md"
ARCHITECTURES = ROOT / "docs/slim_architectures.md"
DTYPES = ROOT / "runtime/slim/dtypes.txt"

_BYTES = 8 << 30


def examine(architecture: Architecture, folder: Path, slim: Path | None = None) -> dict[str, Any]:
    """batch, functions; or failed: the step and the reason. With ``slim``, run: what differs."""
    found: dict[str, Any] = {}
    step = "export"
    try:
        frozen = pipeline.export(architecture)
        found["batch"] = frozen.batch
        step = "freeze"
        pipeline.freeze(frozen, folder, f"//survey:{architecture.name}")
        step = "codegen"
        pipeline.generate(folder, dict(architecture.options))
        found["functions"] = pipeline.called(folder)
    except Exception as e:
        return {"failed": f"{step}: {_reason(e)}"}
    if slim is not None:
        try:
            found["run"] = run(architecture, folder, slim)
        except Exception as e:
            found["run"] = _reason(e)
    return found


def run(architecture: Architecture, folder: Path, slim: Path) -> str:
    """Empty where the compiled program does what eager PyTorch does, in two calls."""
    library = native.build(folder, slim)
    compiled = None
    sample = pipeline.build(architecture)
    for _ in range(2):
        given = _tensors((sample.args, dict(sample.kwargs)))
        inputs = [tensor.clone() for tensor in given]
        if compiled is None:
            compiled = native.Compiled(library, folder)
        actual = compiled(inputs)
        with torch.no_grad():
            expected = _tensors(sample.module(*sample.args, **sample.kwargs))
        problem = difference(
            [*actual, *inputs], [*expected, *given], values=not architecture.random
        )
        if problem:
            return problem
    return ""


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]


def _child(name: str, sender: Connection, folder: Path, slim: Path | None) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sender.send(examine(architectures.BY_ID[name], folder, slim))


def in_child(name: str, folder: Path, slim: Path | None, seconds: int) -> dict[str, Any]:
    """examine(), in a process of its own: it may hang, crash, or eat the memory."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(name, sender, folder, slim))
    process.start()
    sender.close()
    try:
        if receiver.poll(seconds):
            return receiver.recv()  # type: ignore[no-any-return]
        process.kill()
        return {"failed": f"not done after {seconds} s"}
    except EOFError:
        process.join()
        return {"failed": f"crashed, exit status {process.exitcode}"}
    finally:
        process.join()


def _import_ahead(names: list[str]) -> None:
    """What every process would import anew."""
    packages = {architectures.BY_ID[name].package for name in names}
    modules = [
        "torch._inductor.compile_fx",
        "torch._inductor.codegen.cpp_wrapper_cpu",
        "torch._inductor.fx_passes.joint_graph",
        "torch._dynamo.eval_frame",
    ]
    if packages & {"transformers", "timm"}:
        declare_torchvision()
    for package, its in (
        ("transformers", ["transformers.modeling_utils", "transformers.integrations.moe"]),
        ("timm", ["timm"]),
    ):
        modules += its if package in packages else []
    for module in modules:
        importlib.import_module(module)


def provided() -> set[str]:
    return (
        set(native.FUNCTIONS.read_text(encoding="utf-8").split())
        if native.FUNCTIONS.exists()
        else set()
    )


def dtypes() -> dict[str, tuple[str, ...]]:
    return parse_dtypes(DTYPES.read_text(encoding="utf-8"))


def read() -> Page:
    return Page.read(PAGE.read_text(encoding="utf-8"), ARCHITECTURES.read_text(encoding="utf-8"))


def _write(page: Page) -> None:
    text = page.text(architectures.BY_ID, provided(), dtypes(), pipeline.ISA)
    PAGE.write_text(text, encoding="utf-8")
    text = page.architectures(architectures.BY_ID, provided())
    ARCHITECTURES.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--run", type=Path, metavar="LIBRARY", help="slim's static library")
    parser.add_argument("--keep", type=Path, help="a folder for the generated code")
    parser.add_argument("--seconds", type=int, default=120, help="the time each one has")
    args = parser.parse_args()
    page = read()
    if args.run:
        native.prepare()
    names = [n for only in args.only for n in fnmatch.filter(architectures.BY_ID, only)]
    if args.missing:
        names = [n for n in names if n not in page.rows or page.rows[n].failed]
    _import_ahead(names)
    _write(page)
    for name in names:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            folder = args.keep / name if args.keep else Path(scratch)
            found = in_child(name, folder, args.run, args.seconds)
        if "failed" in found:
            page.add_failure(name, found["failed"])
        else:
            page.add(name, found["batch"], found["functions"])
        _write(page)
        outcome = found.get("failed") or (found.get("run", "") if args.run else "") or "ok"
        print(f"{name} ({time.monotonic() - start:.0f} s): {outcome}", flush=True)


if __name__ == "__main__":
    main()
