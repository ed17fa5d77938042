"""Downloads the wheels of a lock, and extracts torch's headers for C++, for a repository rule.

usage: fetch_wheels.py LOCK [--torch | --without-torch]

Only headers are unpacked: a build whose results are all cached needs no more. Prints JSON with the
names that the repository's BUILD file needs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from header_patches import PatchError
from pip_runner import run_pip
from shared_libraries import library_closure, needed_libraries
from torch_headers import CONTAINER, TorchHeaders, write
from wheels import WheelError, contents

WHEELS = Path("wheels")
PIP_DOWNLOAD = ("download", "--dest", str(WHEELS))
# PyPI has only builds for CUDA. Whatever this index offers, the lock's hashes decide what is
# installed.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
IF_IT_ANSWERS = ("--retries=0", "--timeout=10")

TORCH = re.compile(r"(?i)^torch\s*==")
# torch, and packages that belong to one build of it: each version exists for the CPU and for
# several CUDAs.
COMPANIONS = ("torchaudio", "torchvision")
BUILDS = re.compile(
    rf"(?i)^(?P<release>(?P<name>torch|{'|'.join(COMPANIONS)})\s*==\s*[0-9.]+)"
    r"(?:\+(?P<build>[\w.]+))?(?=\s|;|$)"
)
CUDA_LIBRARY = re.compile(r"(?i)^(nvidia-|cuda-|triton\b)")

# The libraries that a program on libtorch links.
TORCH_LIBRARIES = ("libtorch_cpu.so", "libtorch_cuda.so")


def logical_lines(lock: Path) -> list[str]:
    """The requirements and options of a lock, one per line, without comments."""
    text = re.sub(r"(^|\s)#.*", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = (" ".join(line.split()) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def download(lock: Path, *, without_torch: bool = False) -> None:
    """Downloads a lock. For a torch that is pinned without a build (`2.13.0`), it prefers the CPU
    build.

    A lock may allow several builds of one version. When pip must check hashes, it prefers the
    builds of an index to those of `--find-links`, so it must be asked for the CPU build by its full
    version (`2.13.0+cpu`). Then gigabytes of libraries that only CUDA needs are left out. The same
    holds for torchvision and torchaudio, which can only be imported beside their build of torch.
    """
    shutil.rmtree(WHEELS, ignore_errors=True)
    WHEELS.mkdir()
    requirements = logical_lines(lock)
    if without_torch:
        requirements = [r for r in requirements if not (TORCH.match(r) or CUDA_LIBRARY.match(r))]
    requirements = download_cpu_builds(requirements)
    if all(line.startswith("-") for line in requirements):
        return
    if (trouble := run_pip(PIP_DOWNLOAD, requirements)) is not None:
        sys.exit(f"pip could not install {lock}:\n{trouble}{advice(requirements)}")


def download_cpu_builds(requirements: list[str]) -> list[str]:
    """Downloads the CPU builds that the lock allows. Returns the remaining requirements."""
    found = [(line, match) for line in requirements if (match := BUILDS.match(line))]
    # torch comes first, because the others must match it.
    for line, match in sorted(found, key=lambda pair: pair[1]["name"].lower() != "torch"):
        is_torch = match["name"].lower() == "torch"
        if match["build"] not in (None, "cpu"):
            if is_torch:
                return requirements
            continue
        if not download_cpu_build(requirements, line, match):
            if is_torch:
                return requirements
            continue
        requirements = [left for left in requirements if left != line]
        if is_torch and match["build"] is None:
            requirements = [left for left in requirements if not CUDA_LIBRARY.match(left)]
    return requirements


def download_cpu_build(requirements: list[str], line: str, match: re.Match[str]) -> bool:
    """Downloads one CPU build; returns False if there is none that the lock's hashes allow."""
    options = [option for option in requirements if option.startswith("-")]
    wanted = [*options, f"{match['release']}+cpu{line[match.end() :]}"]
    # First with the configuration of the machine's pip: it may only reach a mirror.
    if run_pip(PIP_DOWNLOAD, wanted) is None:
        return True
    command = (*PIP_DOWNLOAD, "--extra-index-url", CPU_INDEX, *IF_IT_ANSWERS)
    return run_pip(command, wanted, attempts=1) is None


def advice(requirements: Sequence[str]) -> str:
    """Advice about CPU builds that pip did not find."""
    matches = (BUILDS.match(line) for line in requirements)
    wanted = [f"{match['release']}+cpu" for match in matches if match and match["build"] == "cpu"]
    if not wanted:
        return ""
    return (
        f"\n{' and '.join(wanted)} is looked for in pip's own indexes and in {CPU_INDEX}.\n"
        "Have pip reach that or a mirror of it (PIP_EXTRA_INDEX_URL), or a folder with the wheel\n"
        "(PIP_FIND_LINKS), and see that the lock has the wheel's hash."
    )


def cuda_builds(wheels: Sequence[Path]) -> list[str]:
    """The wheels of torchvision and torchaudio that are for CUDA: `torchvision 0.28.0+cu130`.

    PyPI's wheels have no build in their names, but contain a file that says what they were built
    for.
    """
    found = []
    for path in wheels:
        name = path.name.partition("-")[0]
        if name not in COMPANIONS:
            continue
        with zipfile.ZipFile(path) as wheel:
            try:
                text = wheel.read(f"{name}/version.py").decode("utf-8", "replace")
            except KeyError:
                continue
        if match := re.search(r"__version__\s*=\s*['\"]([^'\"]*\+cu[^'\"]*)['\"]", text):
            found.append(f"{name} {match[1]}")
    return found


class Site:
    """The contents of all wheels, as if they were unpacked into one site-packages folder."""

    def __init__(self, wheels: Sequence[zipfile.ZipFile]) -> None:
        self._files = {name: (wheel, info) for wheel in wheels for name, info in contents(wheel)}

    def below(self, folder: str) -> dict[str, str]:
        """The files below a folder: maps the path relative to the folder to the whole path."""
        prefix = folder + "/"
        return {name[len(prefix) :]: name for name in self._files if name.startswith(prefix)}

    def read(self, name: str) -> bytes:
        wheel, info = self._files[name]
        return wheel.read(info)

    def libraries(self) -> list[str]:
        """The paths of the shared libraries that programs on libtorch need."""
        here = {name.rpartition("/")[2]: name for name in sorted(self._files) if ".so" in name}
        # torch's own libraries come first: another package may bundle a library of the same name.
        own = self.below("torch/lib")
        here.update({name: path for name, path in own.items() if ".so" in name})
        names = library_closure(here, lambda name: self._needed(here[name]), TORCH_LIBRARIES)
        return [here[name] for name in names]

    def _needed(self, name: str) -> list[str]:
        # The dependencies of a library are at the end of its file, so it must be unpacked
        # completely.
        wheel, info = self._files[name]
        with tempfile.NamedTemporaryFile(dir=".") as file, wheel.open(info) as source:
            shutil.copyfileobj(source, file, 1 << 20)
            file.flush()
            return needed_libraries(Path(file.name))


def lay_out_headers(site: Site) -> None:
    """Makes `torch_headers/`, the additional headers in `stable_headers/`, and
    `pybind11_headers/`.
    """
    include = site.below("torch/include")
    headers = TorchHeaders(include, lambda header: site.read(include[header]))
    headers.write(Path("torch_headers"), site.read(CONTAINER))
    headers.write_stable(Path("stable_headers"))
    for header, path in sorted(site.below("pybind11/include").items()):
        if header.endswith(".h"):
            write(Path("pybind11_headers") / header, site.read(path))


def torch_version(wheels: Sequence[Path]) -> str:
    """The full version of torch, such as `2.13.0+cpu`, from the name of its wheel."""
    (wheel,) = (path for path in wheels if path.name.startswith("torch-"))
    return wheel.name.split("-")[1]


def describe(wheels: Sequence[Path], *, torch: bool) -> dict[str, object]:
    """The names that the BUILD file needs; extracts the headers if torch is among the wheels."""
    facts: dict[str, object] = {
        "cuda_builds": cuda_builds(wheels),
        "wheels": [wheel.name for wheel in wheels],
    }
    if torch:
        with contextlib.ExitStack() as stack:
            site = Site([stack.enter_context(zipfile.ZipFile(wheel)) for wheel in wheels])
            lay_out_headers(site)
            facts["libraries"] = site.libraries()
        facts["torch_version"] = torch_version(wheels)
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lock", type=Path)
    torch = parser.add_mutually_exclusive_group()
    torch.add_argument("--torch", action="store_true", help="lay out its headers")
    torch.add_argument("--without-torch", action="store_true", help="leave out torch and CUDA")
    args = parser.parse_args()
    download(args.lock, without_torch=args.without_torch)
    try:
        facts = describe(sorted(WHEELS.glob("*.whl")), torch=args.torch)
    except PatchError as error:
        sys.exit(f"the locked torch is not the one that rules_aoti knows: {error}")
    except WheelError as error:
        sys.exit(str(error))
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
