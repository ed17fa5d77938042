"""The benchmark of build times: rules_aoti beside stock PyTorch. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.builds import packages
from benchmarks.builds.client import Bazel
from benchmarks.builds.edits import EDITS
from benchmarks.builds.http_cache import serve
from benchmarks.builds.results import (
    BARS,
    LARGE_BARS,
    TOGETHER_BARS,
    Case,
    Results,
    markdown,
    remarks,
    rows,
    targets,
)
from benchmarks.harness import machine
from benchmarks.harness.terminal import aligned

# Name -> the torch_export whose attributes are taken, and the bars of its build.
MODELS = {
    "mlp": ("//benchmarks:mlp.program", BARS),
    "glass": ("//models:glass_aoti.program", BARS),
    "minilm": ("//models:minilm.program", BARS),
    "efficientnet": ("//models:efficientnet_lite0.program", {}),
    "encoder": ("//benchmarks:encoder.program", {}),
    "decoder": ("//benchmarks:decoder.program", {}),
    "vit": ("//benchmarks:vit.program", {}),
    "resnet18": ("//benchmarks:resnet18.program", {}),
    "llm": ("//models:llm_aoti.program", LARGE_BARS),
}
ALONE = ("mlp", "glass", "minilm", "llm")
TOGETHER = tuple(name for name in MODELS if name != "llm")
# Minutes for each build: measured once, and only what has a bar or is needed for it.
LARGE = ("llm",)

# What stock makes: the package with its library.
PACKAGE = "--output_groups=package"
# After a build with this the next one starts without a worker.
NO_WORKER_STAYS = "--worker_quit_after_build"


class Benchmark:
    """The two clients, the cache between them, and a folder for everything."""

    def __init__(self, source: Path, folder: Path, cache: str) -> None:
        self.folder = folder
        self.tree = folder / "source"
        self.cache = f"--remote_cache={cache}"
        packages.copy_tree(source, self.tree)
        # What a user's own bazelrc says of caches must not count.
        options = ["--disk_cache=", "--symlink_prefix=/", "--lockfile_mode=off"]
        self.builder = Bazel(self.tree, folder / "builder", options)
        self.reader = Bazel(self.tree, folder / "reader", options)
        # The clients keep what earlier runs have downloaded.
        self._run = f"run{time.time_ns()}"
        self._packages = 0
        self.attributes = {
            name: packages.declared(self.builder, label) for name, (label, _) in MODELS.items()
        }

    def declare(self, names: Sequence[str]) -> list[str]:
        """Models that no cache knows, in a new package."""
        self._packages += 1
        package = f"benchmarks/{self._run}/package{self._packages}"
        return packages.declare(
            self.tree, package, [(name, self.attributes[name]) for name in names]
        )

    def prepare(self) -> None:
        """Builds a model with each client: what comes after has all but the models."""
        note("preparing: two clients build a model")
        # What is built already is not uploaded, and what is not there is unpacked.
        self.builder.clean()
        self.reader.clean()
        labels = self.declare(["mlp"])
        self._upload(labels)
        self.builder.build(labels)
        self.reader.build(labels, self.cache, PACKAGE)

    def ours(self, case: Case, names: Sequence[str], *, brief: bool) -> None:
        self.builder.build(self.declare(["mlp"]), NO_WORKER_STAYS)
        self._add(case, "cold", self.builder.build(self.declare(names), PACKAGE))
        warm = self.builder.build(self.declare(names), PACKAGE, NO_WORKER_STAYS)
        self._add(case, "warm", warm)
        if not brief:
            self._add(case, "all", self.builder.build(self.declare(names)))
            self.builder.shutdown()
            self._add(case, "started", self.builder.build(self.declare(names), PACKAGE))
        if len(names) == 1 and names[0] in EDITS:
            labels = [packages.program(label) for label in self.declare(names)]
            self.builder.build(labels)
            with EDITS[names[0]].made(self.tree):
                self._add(case, "edited", self.builder.build(labels, NO_WORKER_STAYS))
        labels = self.declare(names)
        self._upload(labels)
        self._add(case, "cached", self.reader.build(labels, self.cache, PACKAGE))
        ran = self.reader.ran()
        if not ran.keys() <= {"internal", "remote cache hit"}:
            sys.exit(f"{case.title}: not everything came from the cache: {ran}")

    def stock(self, case: Case, names: Sequence[str], *, warm: bool) -> None:
        cold_seconds, warm_seconds = 0.0, 0.0
        for name in names:
            arguments = self.builder.driver_arguments(self._label(name), "TorchExport")
            place = self._empty_home()
            package = place / "model.pt2"
            cold_seconds += self._script(place, "package", str(package), *arguments)
            if warm:
                package.unlink()
                warm_seconds += self._script(place, "package", str(package), *arguments)
        self._add(case, "stock", cold_seconds)
        if warm:
            self._add(case, "stock warm", warm_seconds)

    def compiled(self, case: Case, name: str) -> None:
        """torch.compile after an edit of the model's source; its first run is not counted."""
        arguments = self.builder.driver_arguments(self._label(name), "TorchExport")
        place = self._empty_home()
        self._script(place, "compile", *arguments)
        with EDITS[name].made(self.tree):
            self._add(case, "compiled", self._script(place, "compile", *arguments))

    def torch_unpacked(self) -> bool:
        """Whether the client that reads from the cache has torch's modules on its disk."""
        folder = str(self.folder / "reader")
        command = ["find", folder, "-path", "*/torch/_inductor/ir.py", "-print", "-quit"]
        return bool(subprocess.run(command, capture_output=True, check=True).stdout)

    def shutdown(self) -> None:
        self.builder.shutdown()
        self.reader.shutdown()

    def _upload(self, labels: Sequence[str]) -> None:
        self.builder.build(labels, self.cache, "--remote_upload_local_results", PACKAGE)

    def _label(self, name: str) -> str:
        """An exported model, whose sources are laid out in the execution root."""
        (label,) = self.declare([name])
        self.builder.build([f"{label}.program"])
        return f"{label}.program"

    def _empty_home(self) -> Path:
        place = self.folder / "stock"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def _script(self, place: Path, *arguments: str) -> float:
        script = Path(__file__).absolute().with_name("peer_script.py")
        # The model's source is imported from where the export step has it, not from here.
        own = {str(script.parent), str(script.parents[2]), str(script.parents[3])}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "TMPDIR": str(place),
            "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path and path not in own),
        }
        begun = time.monotonic()
        result = subprocess.run(
            [sys.executable, "-s", "-P", str(script), *arguments],
            cwd=self.builder.execution_root(),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seconds = time.monotonic() - begun
        if result.returncode:
            sys.exit(f"{arguments[0]}: PyTorch failed:\n{result.stdout}")
        return seconds

    def _add(self, case: Case, contestant: str, seconds: float) -> None:
        note(f"  {case.title}, {contestant}: {seconds:.1f} s")
        case.seconds.setdefault(contestant, []).append(seconds)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", nargs="*", choices=MODELS, default=list(ALONE), metavar="MODEL",
        help=f"to build alone: of {', '.join(MODELS)}",
    )  # fmt: skip
    parser.add_argument(
        "--together", nargs="*", choices=MODELS, default=list(TOGETHER), metavar="MODEL",
        help="to build by one command; none: leave that out",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="of the small models, each alone")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--cache", type=Path, help="where the clients' folders are")
    parser.add_argument("--markdown", type=Path, help="also write the numbers as this page")
    parser.add_argument("--from-json", type=Path, help="report on these results, measure nothing")
    args = parser.parse_args()
    here = Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."))
    for name in ("out", "cache", "markdown", "from_json"):
        if getattr(args, name):
            setattr(args, name, here / getattr(args, name))
    return args


def default_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/tmp")) / ".cache"
    return Path(home) / "rules_aoti" / "build_benchmark"


def measure(args: argparse.Namespace) -> Results:
    source = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not source:
        sys.exit("start me with: bazel run //benchmarks:build")
    folder: Path = args.cache or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = machine.describe()
    cases: list[Case] = []
    shutil.rmtree(folder / "http", ignore_errors=True)
    with serve(folder / "http") as cache:
        benchmark = Benchmark(Path(source), folder, cache)
        benchmark.prepare()
        for name in args.models:
            cases.append(Case(name, 1, MODELS[name][1]))
        for i in range(args.rounds):
            for case in cases:
                large = case.title in LARGE
                if large and i:
                    continue
                note(f"round {i + 1} of {args.rounds}: {case.title}")
                benchmark.stock(case, [case.title], warm=not large)
                if case.title in EDITS:
                    benchmark.compiled(case, case.title)
                benchmark.ours(case, [case.title], brief=large)
        if args.together:
            case = Case(f"{len(args.together)} models", len(args.together), TOGETHER_BARS)
            cases.append(case)
            note(case.title)
            benchmark.stock(case, args.together, warm=False)
            benchmark.ours(case, args.together, brief=True)
        results = Results(facts, cases, benchmark.torch_unpacked())
        benchmark.shutdown()
    return results


def main() -> None:
    args = parse_arguments()
    if args.from_json:
        results = Results.from_json(args.from_json.read_text(encoding="utf-8"))
    else:
        results = measure(args)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "build.json").write_text(results.to_json() + "\n", encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(markdown(results, machine_line(results)), encoding="utf-8")
    print(
        "\n".join(
            [
                machine_line(results),
                "",
                *aligned(rows(results)),
                "",
                *remarks(results),
                *targets(results),
            ]
        )
    )


def machine_line(results: Results) -> str:
    facts = results.machine
    return (
        f"{facts['cpu']} ({facts['level']}), {facts['cores']} cores, "
        f"{facts['memory_bytes'] / 2**30:.0f} GiB, {facts['system']}, "
        f"Python {facts['python']}, torch {facts['versions']['torch']}."
    )


if __name__ == "__main__":
    main()
