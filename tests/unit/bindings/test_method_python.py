"""The Python module of a model with several methods, as it is generated, and its stub."""

from __future__ import annotations

import ast
import dataclasses

from aoti_driver.bindings import method_bindings, method_pymodule, method_stub
from aoti_driver.bindings.model import Methods
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.program_parts import Input, Output
from aoti_driver.contract.result_tree import Result
from aoti_driver.contract.size_expr import Name, Number

from tests.unit.bindings.test_method_bindings import SPEC, TABLE, library

LOSS = Output("loss", "loss", "float64", (), number="float")
COUNT = Output("count", "count", "int64", (), number="int")
X = Output("x", "x", "float32", (Name("n"), Number(2)))


def pair(first: str, second: str, *keys: str, name: str = "Pair") -> Result:
    leaves = (Result("output", first), Result("output", second))
    return Result("object", name, keys=keys, items=leaves)


def method(name: str, result: Result | None, *outputs: Output) -> LibraryManifest:
    made = library(name, [TABLE])
    inputs = (
        *made.program.inputs,
        Input("k", "k", "int64", (), (), number="int", default=5),
    )
    program = dataclasses.replace(
        made.program, inputs=inputs, outputs=outputs or made.program.outputs, result=result
    )
    return dataclasses.replace(made, program=program)


def build(**methods: LibraryManifest) -> Methods:
    return method_bindings.build(
        dataclasses.replace(SPEC, methods=tuple(methods)), list(methods.values())
    )


def in_dict(**items: Result) -> Result:
    return Result("dict", keys=tuple(items), items=tuple(items.values()))


METHODS = build(
    encode=method("encode", None),
    decode_step=method("decode_step", in_dict(a=pair("x", "loss", "x", "y")), X, LOSS),
    forward=method(
        "forward",
        in_dict(a=pair("x", "count", "x", "y"), b=pair("x", "loss", "x", "y")),
        *(X, LOSS, COUNT),
    ),
)


def test_the_module() -> None:
    text = method_pymodule.generate(METHODS)
    assert "PyInit_whisper() {" in text
    assert '      .name = "whisper",\n      .label = "//models:whisper",\n' in text
    assert "InitModule(kModule, ::models::Whisper::Specs());" in text
    assert text.count('constexpr const char* kInputs[] = {"x", "k"};') == 3
    encode = text[text.index("kMethods[] = {") :].split("},\n")[0]
    assert '.name = "encode",' in encode and ".result" not in encode
    assert '.outputs_class = "EncodeOutputs",' in encode
    assert ".result = method_decode_step::kResult," in text
    assert "encode(x, k):\\012" in text  # the module's text


def test_results_of_methods_have_one_class_where_their_fields_are_alike() -> None:
    text = method_pymodule.generate(METHODS)
    for row in ('"Pair", "a"', '"Pair_2", "a"', '"Pair", "b"'):
        assert text.count(row) == 1
    assert method_stub.generate(METHODS).count("class Pair(NamedTuple):") == 1


def test_classes_do_not_take_the_names_of_methods_and_their_outputs() -> None:
    result = Result(
        "list",
        items=(
            pair("x", "loss", "x", "y", name="EncodeOutputs"),
            pair("x", "loss", "x", "y", name="Method"),
            pair("x", "loss", "x", "y", name="decode"),
        ),
    )
    methods = build(encode=method("encode", None), decode=method("decode", result, X, LOSS))
    text = method_pymodule.generate(methods)
    for name in ("EncodeOutputs_2", "Method_2", "decode_2"):
        assert f'{{ResultKind::kObject, 2, "{name}"}}' in text


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def test_the_stub() -> None:
    text = method_stub.generate(METHODS)
    tree = ast.parse(text)
    functions = {
        node.name: ast.unparse(node.args) + " -> " + ast.unparse(node.returns or ast.Constant(0))
        for node in _class(tree, "Model").body
        if isinstance(node, ast.FunctionDef)
    }
    parameters = "self, x: TensorLike, k: SupportsIndex=5"
    assert functions == {
        "encode": f"{parameters} -> EncodeOutputs",
        "decode_step": f"{parameters} -> _DecodeStepOutputs",
        "forward": f"{parameters} -> _ForwardOutputs",
        "__call__": f"{parameters} -> _ForwardOutputs",
        "swap_weights": "self, weights: str | os.PathLike[str] | None=None, "
        "copy_weights: bool=False, adapter: str | os.PathLike[str] | None=None -> None",
        "manual_seed": "self, seed: int -> None",
    }
    for name in ("encode", "decode_step", "forward"):
        assert f"\n{name}: Method\n" in text
    assert (
        "class Pair_2(NamedTuple):\n    x: numpy.typing.NDArray[numpy.float32]\n    y: int\n"
        in (text)
    )
    assert ast.get_docstring(_class(tree, "Model").body[1], clean=True).startswith(  # type: ignore[arg-type,union-attr]
        "encode(x, k)\n\nThe program //models:whisper_encode.\n\nDims:\n  n  1..64\n"
    )


def test_without_forward_a_model_is_not_called() -> None:
    text = method_stub.generate(build(encode=method("encode", None)))
    assert "__call__" not in text and "def session(" not in text
