"""What a user reads when a model can't be built: the text, and nothing left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.nested_bazel import NestedBazel, Run

# By target of tests/e2e/errors: phrases that the message must have, all of them.
EXPECTED = {
    "unknown_dim": [
        'inputs["x"]: unknown dim "bach" (did you mean "batch"?)',
        "    float32[bach, 8]\n            ^~~~",
        "dims declared in dynamic_dims: batch",
    ],
    "unknown_dtype": ['inputs["x"]: unknown dtype "flaot32" (did you mean "float32"?)'],
    "unused_dim": ['dynamic_dims["batch"]: no input has a dim "batch"'],
    "reversed_range": [
        'dynamic_dims["batch"]: the range is empty: 8 is larger than 2',
        'did you mean "2..8"?',
    ],
    "reversed_values": ['inputs["x"]: the range is empty: 5 is larger than -5'],
    "divided_dim": ["a size must be an integer", "// divides and rounds down"],
    "two_dims_in_one": ['"batch + more" needs the value of "batch", which no other size gives'],
    "circular_dims": ["dims are derived from each other: a -> b -> a"],
    "sample_out_of_range": ['sample_inputs: "x", dim 0 (batch) is 9, must be in 1..4'],
    "extra_input": ['forward() has no argument "z"', "Its arguments: x"],
    "missing_input": ["forward() needs y, which inputs does not give"],
    "no_such_module": [
        'entry_point "mistaeks:Fine": no module "mistaeks"',
        'did you mean "mistakes"?',
    ],
    "no_such_attribute": [
        'entry_point "mistakes:Fien": module mistakes has no "Fien" (did you mean "Fine"?)',
    ],
    "malformed_entry_point": [
        'entry_point "mistakes.Fine": expected "package.module:name"',
        'got "mistakes.Fine"',
    ],
    "not_callable": ['entry_point "mistakes:NOT_A_MODULE": int is not callable'],
    "not_a_module": ["it returned dict, expected a torch.nn.Module"],
    "raises": [
        'entry_point "mistakes:raises": it failed',
        "mistakes.py:",
        'raise RuntimeError("the shop is closed")',
        "RuntimeError: the shop is closed",
    ],
    "undeclared_import": [
        'it needs the module "make_weights", which no dep of "module" provides',
        "mistakes.py:",
        'importlib.import_module("make_weights")',
    ],
    "undeclared_file": ['it reads the file "BUILD.bazel", which "module" does not declare'],
    "undeclared_file_beside_the_source": [
        'it reads the file "BUILD.bazel", which "module" does not declare',
        "beside.read_text(",
    ],
    "branches_on_data": [
        "forward() branches on the values of a tensor",
        "mistakes.py:",
        "if x.sum() > 0:",
        "guard_or_false",  # torch's own suggestion
        "torch.where or torch.cond",
    ],
    "branches_on_data_strict": [
        "forward() branches on the values of a tensor",
        "mistakes.py:",
        "if x.sum() > 0:",
        "Hint: Use `torch.cond`",  # torch's own suggestion
    ],
    "specialised_dim": [
        "batch",
        "a constant (8)",
        "mistakes.py:",
        "return x + torch.ones(8, 1)",
        "Write 8 in place of batch in inputs",
    ],
    "needs_relation": [
        "mistakes.py:",
        "return x[1:] + y",
        'dynamic_dims = {"long": "short + 1", "short": "2..15"},',
    ],
    "forgets": ["forward() changes self.calls from call to call", "register_buffer"],
    "missing_tensor": ["1 tensor missing:", "linear.bias"],
    "extra_tensor": ["1 tensor not in the module:", "linear.scale"],
    "wrong_shape": ["1 tensor of another shape:", "linear.weight", "[4, 9]", "[4, 8]"],
    "imported_text": ["imported_text", "torch.export.save"],
    "merged_files": [
        "graph.json and manifest.json do not belong together",
        "Freeze the program anew",
    ],
    "other_schema_files": [
        "frozen manifest.json: manifest has schema_version 1, this rules_aoti reads 2",
        "Freeze the program anew",
    ],
    "without_weights": [
        "the frozen program comes without its weights: sha256 ",
        "Give them as `weights` of torch_import",
    ],
    "of_other_weights": [
        "weights //:wrong_shape.safetensors: these are not the weights that the program was",
        "tensors that differ: linear.weight",
        "give them as `weights` of aoti_library",
    ],
    "replaced_by_others": [
        "weights = //:wrong_shape.safetensors: the file does not fit the program:",
        "linear.weight  is float32[4, 9], the program has float32[4, 8]",
    ],
    "not_on_slim": [
        'shim = "slim", but the slim runtime lacks what this model needs:',
        "  aten.cholesky.default (aten::",
        "    used at mistakes.py:",
        "torch.cholesky(x @ x.mT",
        'Either link libtorch (shim = "libtorch", or "auto")',
        "decompositions = [",
    ],
}

# Places on this machine, which tell a user nothing.
LEAKS = re.compile(
    r"/sandbox/|/execroot/|/bazel-out/|processwrapper|linux-sandbox|/tmp/|/site-packages/|"
    r"aoti_driver|Traceback \(most recent call last\)"
)


@dataclass(frozen=True)
class Build:
    """One build of everything in the module, with all errors."""

    run: Run
    messages: dict[str, str]
    outputs: Path


@pytest.fixture(scope="module")
def bazel() -> Iterator[NestedBazel]:
    nested = NestedBazel("errors")
    nested.compile_runtime()
    yield nested
    nested.close()


@pytest.fixture(scope="module")
def build(bazel: NestedBazel) -> Build:
    run = bazel.run("build", "--keep_going", "//:all", check=False)
    return Build(run, run.messages(), Path(bazel.output("info", "bazel-bin")))


def test_exactly_the_bad_targets_fail(build: Build) -> None:
    assert build.run.code == 1, build.run.text
    assert sorted(build.messages) == sorted(f"//:{name}" for name in EXPECTED), build.run.text


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_message(build: Build, name: str) -> None:
    message = build.messages.get(f"//:{name}", "")
    assert f"//:{name}" in message, f"the message does not name its target:\n{message}"
    missing = [phrase for phrase in EXPECTED[name] if phrase not in message]
    assert not missing, f"{missing} not in:\n{message}"


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_message_tells_nothing_of_the_machine(build: Build, name: str) -> None:
    message = build.messages[f"//:{name}"]
    assert not LEAKS.search(message), message


def program_files(build: Build, name: str) -> list[str]:
    """The outputs of torch_export and torch_import that are there."""
    suffixes = ["graph.json", "weights.safetensors", "program.json", "export.pt2"]
    return [s for s in suffixes if (build.outputs / f"{name}.{s}").exists()]


# A frozen program's graph and weights come by two actions; the one that doesn't fail may have run.
_GRAPH = {"graph.json", "program.json"}
OF_THE_OTHER_ACTION = {
    "merged_files": {"weights.safetensors"},
    "of_other_weights": _GRAPH,
    "other_schema_files": {"weights.safetensors"},
    "without_weights": _GRAPH,
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_failed_action_leaves_nothing(build: Build, name: str) -> None:
    assert set(program_files(build, name)) <= OF_THE_OTHER_ACTION.get(name, set())


def test_good_target_was_built(build: Build) -> None:
    """So that the test above can fail: it looks in the right place."""
    assert program_files(build, "good_weights") == [
        "graph.json",
        "weights.safetensors",
        "program.json",
    ]


def test_a_models_test_fails_on_a_difference(bazel: NestedBazel) -> None:
    """Of two tests of one model, the one that demands more than float32 can give fails."""
    tests = ["//numerics:sums_test", "//numerics:sums_exact_test"]
    run = bazel.run("test", "--keep_going", "--test_output=errors", *tests, check=False)
    assert run.code == 3, run.text
    assert re.search(r"//numerics:sums_test\s+(\(cached\) )?PASSED", run.text), run.text
    assert re.search(r"//numerics:sums_exact_test\s+FAILED", run.text), run.text
    assert re.search(r"largest absolute error: \d", run.text), run.text
    assert re.search(r"largest relative error: \d", run.text), run.text
