"""The same source in another place: the same bytes, and no more actions than a change asks for.

A copy of the source tree is built in another folder and output base, by another user with another
HOME, host name, time zone and language, without workers, in an environment full of variables that
PyTorch, Python and compilers obey. Then the copy is edited, and Bazel's log says what ran.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.differences import different_files
from tests.integration.execution_log import Log
from tests.integration.nested_bazel import NestedBazel, copy_workspace, state

MODELS = os.environ["MODELS"].split(",")
# Not added to what Bazel builds by default: that has the Python module for the runfiles.
GROUPS = f"--output_groups=default,{os.environ['OUTPUT_GROUPS']}"
# By suffix: what the output groups bring. The packages have the graph and the library in them.
ARTIFACTS = (
    ".weights.safetensors",
    ".export.pt2",
    ".manifest.json",
    ".program.cpp",
    ".kernels.cpp/kernels_0.cpp",
    ".binding.cc",
    ".h",
    ".pt2",
    ".provenance.json",
    ".report.txt",
)
# Of a model for GPUs: its kernels' machine code and PTX are in one file.
CUDA_GROUPS = f"--output_groups=default,{os.environ['CUDA_OUTPUT_GROUPS']}"
CUDA_ARTIFACTS = (
    "mlp.weights.safetensors",
    "mlp.export.pt2",
    "mlp.manifest.json",
    "mlp.program.cpp",
    "mlp.cuda_images.bin",
    "mlp.binding.cc",
    "mlp.h",
    "mlp.provenance.json",
    "mlp.report.txt",
)
# Compared where they are: a build that finds in a cache what it makes of them leaves them out.
MORE = (".graph.json", ".cpp", ".pyi", ".o", ".so", ".safetensors", ".cuda_images.bin")
# The driver's steps run in each build. C++ may come from a cache, but it was compiled there too.
RUN_AGAIN = "--modify_execution_info=^(Torch|Aoti).*=+no-cache"
# The build that runs this test has workers.
NO_WORKER = "--spawn_strategy=sandboxed"

LAYERS = "tests/integration/layers.py"

Edit = Callable[[str, str, str], None]
Build = Callable[[], Log]


def outer(package: str) -> Path:
    """The folder in which the build that runs this test has left what it made of a package."""
    runfiles = Path(os.environ["TEST_SRCDIR"])
    folders = [folder for folder in runfiles.parents if folder.parent.parent.name == "bazel-out"]
    return folders[0] / package


def other_user_and_host() -> list[str]:
    """A command that runs Bazel as another user on a host of another name."""
    user = ["--map-user=12345", "--map-group=12345", "--keep-caps"]
    rename = 'hostname elsewhere && exec "$0" "$@"'
    return ["unshare", *user, "--uts", "sh", "-c", rename]


def test_the_user_and_the_host_are_others() -> None:
    command = [*other_user_and_host(), "sh", "-c", "id -u && uname -n"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.stdout.split() == ["12345", "elsewhere"], run.stderr


def poison(place: Path) -> dict[str, str]:
    """Variables, and files in HOME, that would change a result if anything looked at them."""
    home = place / "home"
    (home / ".torch").mkdir(parents=True, exist_ok=True)
    (home / ".torch" / "config").write_text("wrong\n", encoding="utf-8")
    modules = place / "python"
    modules.mkdir(exist_ok=True)
    for name in ("torch", "numpy", "sympy"):
        wrong = f"raise ImportError('the {name} of PYTHONPATH was imported')\n"
        (modules / f"{name}.py").write_text(wrong, encoding="utf-8")
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "USER": "somebody-else",
        "LOGNAME": "somebody-else",
        "TZ": "Pacific/Auckland",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "12345",
        "PYTHONPATH": str(modules),
        "CXX": "/bin/false",
        "CXXFLAGS": "-march=native -Ofast",
        "CFLAGS": "-march=native -Ofast",
        "LDFLAGS": "-Wl,--no-such-flag",
        "CPATH": str(modules),
        "OMP_NUM_THREADS": "7",
        "MKL_NUM_THREADS": "7",
        "ATEN_CPU_CAPABILITY": "default",
        "TORCH_LOGS": "+all",
        "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"),
        "TORCHINDUCTOR_FREEZING": "1",
        "TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "TORCHINDUCTOR_CPP_WRAPPER": "0",
        "TORCH_COMPILE_DEBUG": "1",
        "SOURCE_DATE_EPOCH": "1",
    }


@pytest.fixture(scope="module")
def copy() -> Path:
    """The source tree, somewhere else."""
    place = state() / "elsewhere" / "in" / "another_folder"
    copy_workspace(place)
    return place


@pytest.fixture(scope="module")
def bazel(copy: Path) -> Iterator[NestedBazel]:
    nested = NestedBazel(
        "elsewhere_output",
        module=copy,
        environment=poison(copy.parents[1]),
        prefix=other_user_and_host(),
        disk_cache="elsewhere_disk_cache",
    )
    yield nested
    nested.close()


def artifacts(folder: Path) -> set[str]:
    names = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        runfiles = ".runfiles" in name or "_solib" in name
        if path.is_file() and not runfiles and name.endswith(ARTIFACTS + MORE):
            names.add(name)
    return names


def test_same_bytes(bazel: NestedBazel) -> None:
    labels = [f"//models:{model}" for model in MODELS]
    options = [GROUPS, RUN_AGAIN, NO_WORKER, "--remote_download_outputs=all"]
    bazel.run("build", *labels, *options)
    here = outer("models")
    there = Path(bazel.output("info", "bazel-bin")) / "models"
    common = artifacts(here) & artifacts(there)
    for model in MODELS:
        of_model = [name for name in common if model in name]
        missing = [end for end in ARTIFACTS if not any(n.endswith(end) for n in of_model)]
        assert not missing, f"{model}: not in both builds: {missing}"
    differences = different_files(here, there, sorted(common))
    assert not differences, "\n".join(differences)


def test_same_bytes_for_gpus(bazel: NestedBazel) -> None:
    """The wrapper, the machine code of each architecture, and the PTX."""
    options = [CUDA_GROUPS, RUN_AGAIN, NO_WORKER, "--remote_download_outputs=all"]
    bazel.run("build", "//tests/cuda:mlp", *options)
    here = outer("tests/cuda")
    there = Path(bazel.output("info", "bazel-bin")) / "tests/cuda"
    common = [
        name for name in sorted(artifacts(here) & artifacts(there)) if name.startswith("mlp.")
    ]
    assert set(CUDA_ARTIFACTS) <= set(common)
    differences = different_files(here, there, common)
    assert not differences, "\n".join(differences)


def test_same_runtime(bazel: NestedBazel) -> None:
    """The libraries of which a release's archive is made."""
    bazel.run("build", "//runtime/prebuilt", "--remote_download_outputs=all")
    here = outer("runtime/prebuilt")
    there = Path(bazel.output("info", "bazel-bin")) / "runtime/prebuilt"
    differences = different_files(here, there, ["libruntime.pic.a", "libslim.pic.a"])
    assert not differences, "\n".join(differences)


@pytest.fixture(scope="module")
def build(bazel: NestedBazel, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds the model whose source the tests edit."""
    log = tmp_path_factory.mktemp("log") / "executions.json"

    def run() -> Log:
        label = "//tests/integration:layers"
        bazel.run("build", label, GROUPS, f"--execution_log_json_file={log}")
        return Log.read(log)

    return run


@pytest.fixture
def edit(copy: Path, build: Build) -> Iterator[Edit]:
    """Builds, then replaces text in a file of the copy, until the test is over."""
    before: dict[Path, str] = {}
    build()

    def replace(file: str, old: str, new: str) -> None:
        path = copy / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has {text.count(old)} times {old!r}"
        before.setdefault(path, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    yield replace
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")


def test_nothing_changed(build: Build) -> None:
    build()
    assert not build().actions


def test_a_comment(build: Build, edit: Edit) -> None:
    """The program is exported again and is the same, so that no later step runs."""
    edit(LAYERS, "class Layers(", "# A comment.\nclass Layers(")
    assert build().actions == {"TorchExport": 1}


def test_weights(build: Build, edit: Edit) -> None:
    """No code is generated or compiled for other weights."""
    edit(LAYERS, "torch.manual_seed(0)", "torch.manual_seed(1)")
    actions = build().actions
    assert actions["TorchExport"] == 1
    assert actions["AotiPackage"] == 1
    assert not actions.keys() & {"AotiCodegen", "AotiBindings", "AotiShim", "CppCompile"}, actions


def test_a_kernel(build: Build, edit: Edit) -> None:
    """Its file alone is compiled, and the note that says what the program was made of."""
    edit(LAYERS, "self.numbers[20] = 99.0", "self.numbers[20] = 77.0")
    log = build()
    assert log.actions["AotiCodegen"] == 1
    objects = log.outputs("CppCompile", ".o")
    names = {Path(output).name.removesuffix(".o").removesuffix(".pic") for output in objects}
    assert {name for name in names if not name.endswith(".provenance")} == {"kernels_1"}


def test_another_model(build: Build, edit: Edit) -> None:
    edit("tests/isa/programs.py", "nn.Linear(2048, 32)", "nn.Linear(2048, 16)")
    assert not build().actions
