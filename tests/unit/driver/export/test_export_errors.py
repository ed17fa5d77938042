"""The errors of an export. Each text here is the whole message or its important part."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from aoti_driver.contract.dims import parse_dims
from aoti_driver.export.source import SourceTree
from aoti_driver.export.translate import Context, translate
from safetensors.torch import save_file
from torch._subclasses.fake_tensor import UnsupportedOperatorException

from tests.unit.driver.harness import BATCH, HEAD, Export, X, fails, module

XY = {"x": "float32[a, 4]", "y": "float32[b, 4]"}
AB = {"a": "1..64", "b": "1..64"}


def test_unknown_argument(export: Export) -> None:
    source = module("return tokens", arguments="tokens, mask=None")
    assert fails(export, source, {"token": "float32[2]"}, {}) == (
        '//pkg:m: inputs: forward() has no argument "token" (did you mean "tokens"?). Its '
        "arguments: tokens, mask.\n  forward(tokens, mask=None)\n"
    )


def test_missing_argument(export: Export) -> None:
    source = module("return tokens", arguments="tokens, mask, *, kind=1")
    assert fails(export, source, {"tokens": "float32[2]"}, {}) == (
        "//pkg:m: inputs: forward() needs mask, which inputs does not give.\n"
        "  forward(tokens, mask, *, kind=1)\n"
        '  Add for example "mask": "float32[1, 8]".\n'
    )


@pytest.mark.parametrize(
    ("source", "entry", "message"),
    [
        (
            "build = 3\n",
            "pkg.n:build",
            'no module "pkg.n" among the sources of "module" (did you mean "pkg.m"?). Modules '
            "there: pkg.m.",
        ),
        (
            "import no_such_package\nbuild = 3\n",
            "pkg.m:build",
            'pkg.m cannot be imported: it needs the module "no_such_package", which no dep of '
            '"module" provides. Add the target that provides "no_such_package" to the deps of the '
            "py_library that imports it:\n"
            "  pkg/m.py:1 in <module>\n"
            "    import no_such_package\n"
            "ModuleNotFoundError: No module named 'no_such_package'",
        ),
        (
            "def biuld():\n    pass\n",
            "pkg.m:build",
            'module pkg.m has no "build" (did you mean "biuld"?). It has: biuld.',
        ),
        ("build = 3\n", "pkg.m:build", "int is not callable: name a function that returns the "
         "module, or the module's class"),
        ("def build():\n    return 3\n", "pkg.m:build", "it returned int, expected a "
         "torch.nn.Module"),
        (
            "def build():\n    raise ValueError('no config')\n",
            "pkg.m:build",
            "it failed:\n  pkg/m.py:2 in build\n    raise ValueError('no config')\n"
            "ValueError: no config",
        ),
        # As transformers wraps what a lazily imported module raised: it names no module.
        (
            "try:\n    raise RuntimeError('operator other::op does not exist')\n"
            "except RuntimeError as e:\n"
            "    raise ModuleNotFoundError('Could not import module X.') from e\n",
            "pkg.m:build",
            "pkg.m cannot be imported:\n"
            "  pkg/m.py:4 in <module>\n"
            "    raise ModuleNotFoundError('Could not import module X.') from e\n"
            "ModuleNotFoundError: Could not import module X.\n"
            "  caused by RuntimeError: operator other::op does not exist",
        ),
        (
            "try:\n    import no_such_package\nexcept ImportError:\n"
            "    raise ImportError('install it')\n",
            "pkg.m:build",
            'pkg.m cannot be imported: it needs the module "no_such_package", which no dep of '
            '"module" provides. Add the target that provides "no_such_package" to the deps of the '
            "py_library that imports it:\n"
            "  pkg/m.py:4 in <module>\n"
            "    raise ImportError('install it')\n"
            "ImportError: install it\n"
            "  caused by ModuleNotFoundError: No module named 'no_such_package'",
        ),
        (
            "def build():\n    import no_such_package\n",
            "pkg.m:build",
            'it failed: it needs the module "no_such_package", which no dep of "module" provides. '
            'Add the target that provides "no_such_package" to the deps of the py_library that '
            "imports it:\n"
            "  pkg/m.py:2 in build\n    import no_such_package\n"
            "ModuleNotFoundError: No module named 'no_such_package'",
        ),
        (
            "def build():\n    open('pkg/table.txt')\n",
            "pkg.m:build",
            'it failed: it reads the file "pkg/table.txt", which "module" does not declare. Add it '
            "to the data of the py_library that reads it, or to weights:\n"
            "  pkg/m.py:2 in build\n    open('pkg/table.txt')\n"
            "FileNotFoundError: [Errno 2] No such file or directory: 'pkg/table.txt'",
        ),
        (
            "from pathlib import Path\nPath(__file__).with_name('table.txt').read_text()\n",
            "pkg.m:build",
            'pkg.m cannot be imported: it reads the file "pkg/table.txt", which "module" does not '
            "declare. Add it to the data of the py_library that reads it, or to weights:\n"
            "  pkg/m.py:2 in <module>\n    Path(__file__).with_name('table.txt').read_text()\n"
            "FileNotFoundError: [Errno 2] No such file or directory: 'pkg/table.txt'",
        ),
        (
            "def build(a, b):\n    pass\n",
            "pkg.m:build",
            "it takes (a, b), and was called with no weights: build() missing 2 required "
            "positional arguments: 'a' and 'b'",
        ),
        ("x = 1\n", "pkg.m.build", 'expected "package.module:name", as in "models.encoder:build", '
         'got "pkg.m.build"'),
        (
            "def build(:\n",
            "pkg.m:build",
            "pkg.m cannot be imported:\nSyntaxError: invalid syntax (m.py, line 1)\n"
            "  in pkg/m.py, line 1: def build(:",
        ),
    ],
)  # fmt: skip
def test_entry_point(export: Export, source: str, entry: str, message: str) -> None:
    error = fails(export, source, {"x": "float32[2]"}, {}, entry=entry)
    assert error == f'//pkg:m: entry_point "{entry}": {message}\n'


@pytest.mark.parametrize("strict", [False, True])
def test_data_dependent_control_flow(export: Export, strict: bool) -> None:
    source = module("if x.sum() > 0:\n    return x + 1\nreturn x")
    error = fails(export, source, strict=strict)
    assert error.startswith(
        "//pkg:m: torch.export failed: forward() branches on the values of a tensor\n"
        "  pkg/m.py:8 in forward\n"
        "    if x.sum() > 0:\n"
    )
    suggestion = "torch.cond" if strict else "consider using data-dependent friendly APIs such as"
    assert suggestion in error
    assert "use torch.where or torch.cond in place of Python's if" in error


@pytest.mark.parametrize("strict", [False, True])
def test_dims_that_must_be_equal(export: Export, strict: bool) -> None:
    error = fails(export, module("return x + y", arguments="x, y"), XY, AB, strict=strict)
    assert error == (
        "//pkg:m: the model does not work for every size that dynamic_dims declares\n"
        "  pkg/m.py:8 in forward\n"
        "    return x + y\n"
        '  - The values of b = dim 0 of input "y" and a = dim 0 of input "x" '
        "must always be equal.\n"
        "  Suggested fix:\n"
        '    dynamic_dims = {"a": "1..64", "b": "a"},\n'
        "  Or write a in place of b in inputs.\n"
    )


def test_a_relation_that_is_suggested_works_when_pasted(export: Export) -> None:
    source = module("return x + y[1:]", arguments="x, y")
    error = fails(export, source, XY, AB)
    assert '    dynamic_dims = {"a": "1..63", "b": "a + 1"},\n' in error
    assert export(source, XY, {"a": "1..63", "b": "a + 1"}).code == 0


def test_a_multiple_that_is_suggested_works_when_pasted(export: Export) -> None:
    source = module("return x.view(x.shape[0] // 2, 2, 4)")
    error = fails(export, source)
    assert '    dynamic_dims = {"batch": "2*batch_half", "batch_half": "1..32"},\n' in error
    assert export(source, X, {"batch": "2*batch_half", "batch_half": "2..32"}).code == 0


def test_a_narrower_range_that_is_suggested_works_when_pasted(export: Export) -> None:
    source = module("return x + 1 if x.shape[0] > 32 else x")
    error = fails(export, source)
    assert '    dynamic_dims = {"batch": "2..32"},\n' in error
    assert export(source, X, {"batch": "2..32"}).code == 0


@pytest.mark.parametrize("strict", [False, True])
def test_a_dim_that_is_specialised(export: Export, strict: bool) -> None:
    error = fails(export, module("return x + torch.ones(8, 4)"), strict=strict)
    assert "  pkg/m.py:8 in forward\n    return x + torch.ones(8, 4)\n" in error
    assert (
        "You declared batch as dynamic but your code specialized it to be a constant (8)" in error
    )
    assert "  Write 8 in place of batch in inputs: the model works for this size only." in error


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_steps_of_a_recurrent_layer(export: Export, kind: str) -> None:
    layer = f"self.layer = nn.{kind}(4, 8, num_layers=2, dropout=0.5, batch_first=True)"
    source = module("self.layer.train()\nreturn self.layer(x)[0]", layer)
    error = fails(export, source, {"x": "float32[2, seq, 4]"}, {"seq": "2..64"})
    assert error.startswith(
        "//pkg:m: the model does not work for every size that dynamic_dims declares\n"
        "  pkg/m.py:9 in forward\n"
        "    return self.layer(x)[0]\n"
        "  torch.export unrolls a recurrent layer with dropout in training: its number of steps "
        "has to be a constant. After eval() it may be a dim.\n"
        "  - You declared seq as dynamic but your code specialized it to be a constant (11).\n"
    )


def test_a_size_that_becomes_a_float(export: Export) -> None:
    error = fails(export, module("return x * float(x.shape[0])"))
    assert "  pkg/m.py:8 in forward\n    return x * float(x.shape[0])\n" in error
    assert "unexpectedly" not in error


@pytest.mark.parametrize("strict", [False, True])
def test_a_loop_over_a_dim(export: Export, strict: bool) -> None:
    source = module("y = 0\nfor i in range(x.shape[0]):\n    y = y + x[i] * i\nreturn y")
    error = fails(export, source, strict=strict)
    assert "  pkg/m.py:9 in forward\n    for i in range(x.shape[0]):\n" in error
    assert "code specialized it to be a constant (11)" in error


def test_other_guards_are_not_quoted(export: Export) -> None:
    source = module("z = x * 1 if x.shape[0] > 1 else x\nreturn z + torch.ones(8, 4)")
    error = fails(export, source)
    assert "pkg/m.py:9" in error and "pkg/m.py:8" not in error


def test_values_beyond_the_table(export: Export) -> None:
    source = module("return self.e(x)", "self.e = nn.Embedding(100, 4)")
    assert fails(export, source, {"x": "int64[batch] in 0..100"}) == (
        '//pkg:m: inputs["x"]: its values are declared as 0..100, but forward() uses them as '
        "indices, and 0..99 are all that exist there.\n"
        '  Suggested fix: "in 0..99"\n'
    )
    assert export(source, {"x": "int64[batch] in 0..99"}, BATCH).code == 0


def test_a_sample_beyond_the_table(export: Export) -> None:
    source = module("return self.e(x)", "self.e = nn.Embedding(100, 4)")
    assert fails(export, source, {"x": "int64[batch] in 200..300"}).endswith(
        "IndexError: index out of range in self\n"
        "  The inputs are declared as\n"
        '    "x": "int64[batch] in 200..300",\n'
    )


def test_an_input_of_the_wrong_dtype(export: Export) -> None:
    source = module("return self.l(x)", "self.l = nn.Linear(4, 4)")
    assert fails(export, source, {"x": "float16[batch, 4] in -1..1"}) == (
        "//pkg:m: forward() fails for batch = 11:\n"
        "  pkg/m.py:8 in forward\n"
        "    return self.l(x)\n"
        "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float\n"
        "  The inputs are declared as\n"
        '    "x": "float16[batch, 4] in -1..1",\n'
    )


def test_a_dim_that_decides(export: Export) -> None:
    error = fails(export, module("return x * 2 if x.shape[0] == 11 else x"))
    assert 'guard dim 0 of input "x" != 11' in error or "constant (11)" in error


def test_forward_itself_fails(export: Export) -> None:
    assert fails(export, module("return x @ torch.ones(3, 3)")) == (
        "//pkg:m: forward() fails for batch = 11:\n"
        "  pkg/m.py:8 in forward\n"
        "    return x @ torch.ones(3, 3)\n"
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (11x4 and 3x3)\n"
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("init", "forward", "name"),
    [
        ("self.n = 0", "self.n += 1\nreturn x * self.n", "n"),
        ("self.seen = []", "self.seen.append(1)\nreturn x * len(self.seen)", "seen"),
        ("self.t = torch.zeros(1)", "self.t = self.t + 1\nreturn x * self.t", "t"),
    ],
)
def test_attributes_that_change(
    export: Export, strict: bool, init: str, forward: str, name: str
) -> None:
    error = fails(export, module(forward, init), strict=strict)
    assert error.startswith(f"//pkg:m: forward() changes self.{name} from call to call.")
    assert f'self.register_buffer("{name}"' in error


def test_an_attribute_that_is_filled_once_is_fine(export: Export) -> None:
    source = module(
        "if self.table is None:\n    self.table = torch.arange(4.0)\nreturn x * self.table",
        "self.table = None",
    )
    assert export(source, X, BATCH, strict=True).code == 0


def test_a_buffer_that_is_assigned(export: Export) -> None:
    source = module("self.t = self.t + 1\nreturn x * self.t",
                    "self.register_buffer('t', torch.zeros(1))")  # fmt: skip
    assert export(source, X, BATCH, strict=False).code == 0
    assert fails(export, source, strict=True) == (
        "//pkg:m: forward() assigns the buffer self.t, and the exported program does not: it would "
        "return the first call's result for ever.\n"
        "  Update it in place: self.state.copy_(new) in place of self.state = new.\n"
    )


def test_state_outside_of_the_module(export: Export) -> None:
    source = module("N[0] += 1\nreturn x * N[0]").replace("class M", "N = [0]\nclass M")
    assert "forward() remembers something outside of the module's buffers" in fails(export, source)


@pytest.mark.parametrize(
    "forward", ["return x * 2 if x.shape[0] == 1 else x", "return x.squeeze(0).sum(0)"]
)
@pytest.mark.parametrize("low", [0, 1])
def test_something_else_for_the_size_one(export: Export, forward: str, low: int) -> None:
    error = fails(export, module(forward), dims={"batch": f"{low}..64"})
    assert 'dynamic_dims["batch"]: the exported program is wrong for batch = 1' in error
    assert 'Declare "2..64"' in error
    assert export(module(forward), X, BATCH).code == 0


def test_argument_of_an_unknown_type(export: Export) -> None:
    source = module("return x", arguments="x, o") + (
        "class O: pass\ndef samples():\n    return torch.zeros(3, 4), O()\n"
    )
    error = fails(export, source, None, {}, sample_inputs="pkg.m:samples")
    assert "an argument of forward() is a pkg.m.O" in error
    assert "torch.export.register_dataclass" in error


def test_result_of_an_unknown_type(export: Export) -> None:
    source = module("c = Cache()\nc.x = x + 1\nreturn x, c") + "class Cache: pass\n"
    error = fails(export, source)
    assert "forward() returns a pkg.m.Cache, which torch does not know" in error
    assert "use_cache=False" in error


def test_custom_operator_without_shapes(tmp_path: Path) -> None:
    """One in C++: torch's error for it."""
    error = RuntimeError("There was no fake impl registered for <OpOverload(op='lib.op')>.")
    tree = SourceTree(tmp_path, [])
    translated = translate(error, Context("//pkg:m", tree, {}, parse_dims({}, ""), {}))
    assert "a custom operator does not say what shapes it returns" in str(translated)
    assert "lib.op" in str(translated) and "torch.library.register_fake" in str(translated)


def test_operator_of_custom_ops_without_a_fake_kernel(tmp_path: Path) -> None:
    error = UnsupportedOperatorException(torch.ops.aten.relu.default)
    tree = SourceTree(tmp_path, [])
    translated = translate(error, Context("//pkg:m", tree, {}, parse_dims({}, ""), {}))
    assert str(translated) == (
        "//pkg:m: the operator aten::relu has no fake kernel: it does not say what it returns\n"
        "  Register one in the Python files of its torch_custom_ops target: a function with the "
        'operator\'s arguments under @torch.library.register_fake("aten::relu"), which '
        "returns an empty tensor of the result's sizes and dtype."
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("torchao::packed_linear", '"unpacked_to_int8"'),
        ("torchvision::nms", "compiled code has nms, roi_align and deform_conv2d"),
    ],
)
def test_custom_operator_with_a_known_remedy(export: Export, name: str, remedy: str) -> None:
    operator = (
        f"@torch.library.custom_op('{name}', mutates_args=())\n"
        "def known(x: torch.Tensor) -> torch.Tensor:\n"
        "    return torch.from_numpy(x.numpy().copy())\n"
        "known.register_fake(torch.empty_like)\n"
    )
    error = fails(export, module("return known(x)") + operator)
    assert f"  {name}, which is registered in Python\n    used at pkg/m.py:8: " in error
    assert remedy in error


def test_graph_break(export: Export) -> None:
    error = fails(export, module("torch._dynamo.graph_break()\nreturn x"), strict=True)
    assert "  pkg/m.py:8 in forward\n    torch._dynamo.graph_break()\n" in error
    assert "Hint: Remove the `torch._dynamo.graph_break()` call." in error


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("(torch.zeros(9, 4),)", 'sample_inputs: "x", dim 0 (batch) is 9, must be in 1..8'),
        ("(torch.zeros(1, 4),)", 'sample_inputs: "x", dim 0 (batch) is 1: torch.export takes a '
         "size of 0 or 1 for a constant. Return a sample with another size; 1..8 stays the range."),
        ("(torch.zeros(3, 5),)", 'inputs["x"]: dim 1 is 4, the sample has 5'),
        ("(torch.zeros(3, 4).int(),)", 'inputs["x"]: the spec says float32, the sample is int32'),
        ("(torch.zeros(3),)", 'inputs["x"]: the spec has 2 dimensions, the sample 1 ([3])'),
        ("3", "sample_inputs: expected a tuple of arguments, a dict of keyword arguments, or a "
         "tuple of both, got int"),
        ("{'z': 1}", "sample_inputs: forward(x) does not take what it returned: missing a required "
         "argument: 'x'"),
    ],
)  # fmt: skip
def test_samples(export: Export, returned: str, message: str) -> None:
    source = module("return x + 1") + f"def samples():\n    return {returned}\n"
    error = fails(export, source, X, {"batch": "1..8"}, sample_inputs="pkg.m:samples")
    assert error == f"//pkg:m: {message}\n"


def test_weights_that_do_not_fit(export: Export, tmp_path: Path) -> None:
    save_file(
        {"a.weight": torch.zeros(4, 4), "b.wieght": torch.zeros(1, 2)}, tmp_path / "w.safetensors"
    )
    source = module("return x", "self.a = nn.Linear(4, 8); self.b = nn.Linear(2, 1, bias=False)")
    error = fails(export, source, weights={"_main/pkg/w.safetensors": tmp_path / "w.safetensors"})
    assert error == (
        "//pkg:m: weights: the files do not fit the module:\n"
        "  2 tensors missing:\n"
        "    a.bias  [8]\n"
        '    b.weight  [1, 2] (did you mean "b.wieght"?)\n'
        "  1 tensor not in the module:\n"
        "    b.wieght  [1, 2]\n"
        "  1 tensor of another shape:\n"
        "    a.weight  is [4, 4], the module has [8, 4]\n"
        "  Change the files, or let the entry point take the paths as arguments and load them "
        "itself.\n"
    )


def test_a_missing_tensor_is_compared_with_those_of_its_shape(
    export: Export, tmp_path: Path
) -> None:
    save_file(
        {"a.wieght": torch.zeros(8, 4), "b.weight": torch.zeros(8, 4)}, tmp_path / "w.safetensors"
    )
    source = module("return x", "self.a = nn.Linear(4, 4, bias=False)")
    error = fails(export, source, weights={"_main/w.safetensors": tmp_path / "w.safetensors"})
    assert "    a.weight  [4, 4]\n" in error and "did you mean" not in error


def test_weights_that_the_entry_point_loads(export: Export, tmp_path: Path) -> None:
    torch.save({"a.weight": torch.zeros(4, 4), "c": torch.zeros(1)}, tmp_path / "w.pt")
    source = module("return x", "self.a = nn.Linear(4, 8)").replace(
        "def build():\n    return M()",
        "def build(path):\n    m = M()\n    m.load_state_dict(torch.load(path))\n    return m",
    )
    error = fails(export, source, weights={"_main/pkg/w.pt": tmp_path / "w.pt"})
    assert error.startswith(
        "//pkg:m: weights: they do not fit the module that pkg.m:build builds:\n"
        "  pkg/m.py:11 in build"
    )
    assert "  1 tensor missing:\n    a.bias\n  1 tensor not in the module:\n    c\n" in error
    assert "size mismatch for a.weight" in error


def test_a_torchscript_module(export: Export, tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(4, 4)), tmp_path / "w.pt")
    source = "import torch\ndef build(path):\n    return torch.jit.load(path)\n"
    assert fails(export, source, weights={"_main/w.pt": tmp_path / "w.pt"}) == (
        '//pkg:m: entry_point "pkg.m:build": it returned a TorchScript module, which torch.export '
        "does not take. Load its weights into the Python module, with load_state_dict("
        "torch.jit.load(path).state_dict()), or convert it as docs/recipes.md shows.\n"
    )


def test_the_module_of_an_exported_program(export: Export) -> None:
    source = HEAD + (
        "def build():\n"
        "    return torch.export.export(nn.Linear(4, 4), (torch.zeros(3, 4),)).module()\n"
    )
    assert export(source, {"input": "float32[3, 4]"}).code == 0


def test_weights_that_are_no_state_dict(export: Export, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"nothing")
    (tmp_path / "w.npz").write_bytes(b"nothing")
    for name, text in (("w.safetensors", "is not a safetensors file"), ("w.npz", "by name, not")):
        error = fails(export, module("return x"), weights={f"_main/{name}": tmp_path / name})
        assert text in error and name in error


def test_another_torch(export: Export, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.1.0+cu118'\n")
    error = fails(export, module("return x"), extra={"_main/torch": tmp_path / "torch"})
    assert "the module's deps bring torch 2.1.0+cu118 (torch/version.py)" in error
    assert f"but the toolchain is torch {torch.__version__}" in error


@pytest.mark.parametrize(
    ("built_for", "explained"), [("0.28.0+OTHER", True), ("0.28.0+BUILD", False)]
)
def test_torchvision_for_another_torch(
    export: Export, tmp_path: Path, built_for: str, explained: bool
) -> None:
    """PyPI's torchvision, which is built for CUDA, beside a CPU build of torch; or the reverse."""
    build = torch.__version__.partition("+")[2]
    if not build:
        build = "cpu"
    other = "cu130" if build == "cpu" else "cpu"
    package = tmp_path / "torchvision"
    package.mkdir()
    version = built_for.replace("BUILD", build).replace("OTHER", other)
    (package / "version.py").write_text(f"__version__ = '{version}'\n")
    (package / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')\n"
    )
    result = export(
        "import torchvision\nbuild = 3\n",
        {"x": "float32[2]"},
        extra={
            f"_main/torchvision/{name}": package / name for name in ("version.py", "__init__.py")
        },
    )
    assert result.code == 1
    assert "RuntimeError: operator torchvision::nms does not exist" in result.error
    expected = (
        f"pkg.m cannot be imported: torchvision {version} (torchvision) is built for another "
        f"torch than the toolchain's, which is {torch.__version__}: its operators do not load. "
        f"Lock torchvision==0.28.0+{build} with its hashes, from "
        f"https://download.pytorch.org/whl/{build} or a mirror of it that pip reaches "
        '(PIP_EXTRA_INDEX_URL): see "torchvision and torchaudio" in docs/toolchain.md of '
        "rules_aoti:"
    )
    assert (expected in result.error) is explained


def test_samples_read_by_absolute_places(export: Export) -> None:
    source = """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                return x.as_strided((2,), (1,), 3) * 2

        def sample():
            return (torch.arange(10.0)[OFFSET:],)

        build = M
        """
    result = export(source.replace("OFFSET", "3"), sample_inputs="pkg.m:sample")
    assert result.error.startswith(
        '//pkg:m: forward() calls as_strided with a storage offset on the input "x", and the '
        "sample is a view that begins at element 3 of its memory: "
    )
    assert export(source.replace("OFFSET", "0"), sample_inputs="pkg.m:sample").code == 0


@pytest.mark.parametrize(
    ("name", "entry", "others"),
    [
        ("json", "json.w:build", "a module of Python's standard library"),
        ("sympy", "sympy.w:build", "a package of the torch toolchain"),
        ("json", "pkg.m:build", "a module of Python's standard library"),
    ],
)
def test_a_package_with_the_name_of_another(
    export: Export, tmp_path: Path, name: str, entry: str, others: str
) -> None:
    (tmp_path / "w.py").write_text("build = 3\n", encoding="utf-8")
    extra = {f"_main/{name}/w.py": tmp_path / "w.py"}
    source = f"import {name}.w\nbuild = 3\n"
    error = fails(export, source, {"x": "float32[4]"}, {}, entry=entry, extra=extra)
    assert (
        f'"{name}.w" of "module" is hidden by {others}, which is called "{name}" too and was '
        f'imported before. Give the package "{name}" another name.'
    ) in error
    assert "did you mean" not in error


def test_a_model_that_ends_the_process(export: Export) -> None:
    source = module("sys.exit(0)", arguments="x").replace("import torch", "import sys, torch", 1)
    error = fails(export, source, {"x": "float32[2]"}, {})
    assert error.startswith("//pkg:m: forward() fails")
    assert error.endswith(
        "in forward\n    sys.exit(0)\n"
        "it ends the process that builds the model (sys.exit(0)): remove that call\n"
    )
