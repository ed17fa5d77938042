"""The generated files against golden ones, and the mistakes that the generator reports.

To write the golden files anew: run this file as a program, with PYTHONPATH=.:toolchain/driver.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aoti_driver.base.errors import DriverError
from aoti_driver.bindings import (
    bindings,
    build_model,
    cpp_sizes,
    digest_source,
    header,
    implementation,
    model,
    names,
    operator,
    operator_cc,
    pymodule,
    stub,
    text,
)
from aoti_driver.contract.code_parts import Variant
from aoti_driver.contract.manifest import LibraryManifest
from aoti_driver.contract.manifest_file import to_json
from aoti_driver.contract.program_parts import Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number, SizeExpr, Unknown, affine, operation
from aoti_driver.export.python_sizes import parse

from tests.unit.bindings.samples import LIBRARY, PROGRAM, SPEC

HERE = Path(__file__).parent

_OUTPUTS = ("header", "cc", "digest", "pymodule", "pyi")

OPERATOR = operator.Spec(
    label="//models/text:encoder_op",
    operator="models_text::encoder_op",
    library="models.text.encoder",
    training=(),
    classes=(operator_cc.CppClass("models/text/encoder.h", "::models::text::Encoder"),),
)


def _operator(built: model.Model) -> str:
    """Of the same model without state, which an operator can't have."""
    constants = [dataclasses.replace(c, mutated=False) for c in built.program.constants]
    program = dataclasses.replace(built.program, constants=tuple(constants))
    return operator.generate(OPERATOR, [dataclasses.replace(built.library, program=program)])


def _registration(built: model.Model) -> str:
    return operator_cc.generate(OPERATOR.label, OPERATOR.operator, built.library, OPERATOR.classes)


def _digest(built: model.Model) -> str:
    return digest_source.generate(built.program_id, label=built.program.label, digest="1f2e")


GENERATORS = {
    "encoder.h": header.generate,
    "encoder.binding.cc": implementation.generate,
    "encoder.digest.cc": _digest,
    "encoder.python.cc": pymodule.generate,
    "encoder.pyi": stub.generate,
    "encoder_op.py": _operator,
    "encoder_op.registration.cc": _registration,
}


def golden(name: str) -> Path:
    return HERE / "golden" / f"{name}.golden"


@pytest.mark.parametrize("name", GENERATORS)
def test_golden(name: str) -> None:
    generated = GENERATORS[name](build_model.build(SPEC, LIBRARY))
    assert generated == golden(name).read_text(encoding="utf-8")


def test_another_graph_changes_the_digest_alone() -> None:
    """Else each edit of a model would compile all of its bindings anew."""
    program = dataclasses.replace(PROGRAM, graph_sha256="1f2e")
    other = dataclasses.replace(LIBRARY, program=program)
    for generate in GENERATORS.values():
        assert generate(build_model.build(SPEC, LIBRARY)) == generate(
            build_model.build(SPEC, other)
        )


def with_mask(size: str) -> LibraryManifest:
    """The model with one more input, whose size is in the dims batch, half and count."""
    shape = (parse(size),)
    mask = Input("mask", "mask", "float32", shape, (Number(1),))
    program = dataclasses.replace(PROGRAM, inputs=(*PROGRAM.inputs, mask))
    return dataclasses.replace(LIBRARY, program=program)


@pytest.mark.parametrize(
    ("size", "code"),
    [
        (
            "batch + 2*half - 1",
            "(Wide(dims[0]) + (Wide(2LL) * Wide(dims[1]))) - Wide(1LL)",
        ),
        ("(half + 1)//2", "FloorDiv((Wide(dims[1]) + Wide(1LL)), Wide(2LL), defined)"),
    ],
)
def test_a_sum_or_quotient_of_dims_is_a_function(size: str, code: str) -> None:
    built = build_model.build(SPEC, with_mask(size))
    number = len(PROGRAM.inputs)
    dims = "    0,\n    1,\n" if "batch" in size else "    1,\n"
    code = f"({code})" if "batch" in size else code
    assert f"""\
// {size}
std::int64_t InputSize{number}_0(const std::int64_t* dims) {{
  [[maybe_unused]] bool defined = true;
  return Narrow({code});
}}

constexpr std::int32_t kInputSize{number}_0Dims[] = {{
{dims}}};

constexpr Extent kInputSizes{number}[] = {{
    {{0, -1, 0, "{size}", &InputSize{number}_0, kInputSize{number}_0Dims}},
}};""" in implementation.generate(built)
    assert f"float32[{size}]" in header.generate(built)


@pytest.mark.parametrize(
    "size", ["batch + batch*half", "batch - half", "batch + other", "(batch - half)//2"]
)
def test_other_sizes_are_refused(size: str) -> None:
    with pytest.raises(DriverError) as caught:
        build_model.build(SPEC, with_mask(size))
    assert str(caught.value) == (
        f'//models/text:encoder: the size "{size}" is not a sum of multiples and quotients of dims '
        "that other sizes have alone"
    )


INCLUDE = HERE.parents[2] / "runtime" / "include"
NEEDS_CXX20 = (
    'rules_aoti needs C++20: put "build --cxxopt=-std=c++20 --host_cxxopt=-std=c++20" into '
    '.bazelrc, or "-std=c++20" into the copts of the target that is compiled here'
)


def compiler_errors(header: Path, standard: str) -> list[str]:
    done = subprocess.run(
        ["g++", f"-std={standard}", "-fsyntax-only", "-x", "c++", f"-I{INCLUDE}", header],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert (done.returncode == 0) == (not errors), done.stderr
    return [error.split("error: ", 1)[1] for error in errors]


@pytest.mark.parametrize("standard", ["c++14", "c++17"])
def test_headers_say_that_they_need_cxx20(tmp_path: Path, standard: str) -> None:
    generated = tmp_path / "encoder.h"
    generated.write_text(header.generate(build_model.build(SPEC, LIBRARY)), encoding="utf-8")
    public = sorted((INCLUDE / "aoti").glob("*.h"))
    assert {"cxx20.h", "model.h", "tensor.h"} <= {path.name for path in public}
    for path in [generated, *public]:
        first, *rest = compiler_errors(path, standard)
        assert first == f"#error {NEEDS_CXX20}", path
        assert len(rest) == 1 and "the_compiler_is_not_told_to_use_cxx20" in rest[0], path


def test_headers_take_cxx20(tmp_path: Path) -> None:
    generated = tmp_path / "encoder.h"
    generated.write_text(header.generate(build_model.build(SPEC, LIBRARY)), encoding="utf-8")
    assert compiler_errors(generated, "c++20") == []


def test_stub_is_python() -> None:
    tree = ast.parse(stub.generate(build_model.build(SPEC, LIBRARY)))
    doc = ast.get_docstring(tree)
    assert doc is not None and doc.startswith("The model //models/text:encoder, compiled for torch")


def build(**changes: Any) -> model.Model:
    program = dataclasses.replace(PROGRAM, **changes)
    return build_model.build(SPEC, dataclasses.replace(LIBRARY, program=program))


def build_with_input(**changes: Any) -> model.Model:
    first = dataclasses.replace(PROGRAM.inputs[0], **changes)
    return build(inputs=(first, *PROGRAM.inputs[1:]))


def build_with_code(**changes: Any) -> model.Model:
    codegen = dataclasses.replace(LIBRARY.codegen, **changes)
    return build_model.build(SPEC, dataclasses.replace(LIBRARY, codegen=codegen))


def test_model_without_anything() -> None:
    program = dataclasses.replace(PROGRAM, dims=(), guards=(), inputs=(), outputs=(), constants=())
    codegen = dataclasses.replace(LIBRARY.codegen, constants=(), packed=())
    empty = build_model.build(SPEC, LibraryManifest(program, codegen, "slim"))
    assert "struct Inputs {};" in header.generate(empty)
    assert "std::array<::aoti::TensorView, 0> views = {};" in implementation.generate(empty)
    assert "kInputs" not in pymodule.generate(empty)
    ast.parse(stub.generate(empty))


def test_calls_of_a_model_for_cuda_have_options() -> None:
    cuda = build_with_code(device="cuda")
    options = ",\n                                const ::aoti::RunOptions& options = {}) const;"
    assert f"Run(const Inputs& inputs{options}" in header.generate(cuda)
    source = implementation.generate(cuda)
    assert "Run(const Inputs& inputs, const ::aoti::RunOptions& options) const {" in source
    assert "model_.Run(views, options)" in source


def test_variants_share_tables_of_constants() -> None:
    first, second, third = LIBRARY.codegen.constants
    renamed = (dataclasses.replace(first, symbol="other"), second, third)
    variants = (
        Variant("x86-64-v5", "highest", (second, first, third)),
        Variant("x86-64-v4", "higher", renamed),
        Variant("x86-64-v2", "none", ()),
    )
    library = dataclasses.replace(LIBRARY, variants=variants)
    text = implementation.generate(build_model.build(SPEC, library))
    assert re.findall(r"ConstantSpec (kConstants\d*)\[\]", text) == ["kConstants", "kConstants1"]
    table = text[text.index("ProgramVariant kVariants[]") :].splitlines()[1:5]
    assert [line.strip() for line in table] == [
        '{"x86-64-v5", kConstants, &::aoti_programs::Find_highest},',
        '{"x86-64-v4", kConstants1, &::aoti_programs::Find_higher},',
        '{"x86-64-v2", {}, &::aoti_programs::Find_none},',
        '{"x86-64-v3", kConstants1, &::aoti_programs::Find_models_text_encoder},',
    ]


def test_devices() -> None:
    on_cuda = Variant("x86-64-v3", "models_text_encoder_cuda", (), device="cuda")
    library = dataclasses.replace(LIBRARY, variants=(on_cuda,))
    model = build_model.build(SPEC, library)
    assert (
        '{"x86-64-v3", {}, &::aoti_programs::Find_models_text_encoder_cuda, '
        "::aoti::DeviceType::kCuda},"
    ) in implementation.generate(model)
    assert "compiled for torch 2.13.0+cpu, cpu, cuda, x86-64-v3." in header.generate(model)
    assert "const ::aoti::RunOptions& options" in header.generate(model)
    text = stub.generate(model)
    assert '    device: Literal["cpu", "cuda"] | None = None,\n' in text
    assert "from typing import Any, Literal, NamedTuple" in text


def test_packed_tensors_are_for_slim() -> None:
    slim = implementation.generate(build_model.build(SPEC, LIBRARY))
    on_libtorch = build_model.build(SPEC, dataclasses.replace(LIBRARY, shim="libtorch"))
    libtorch = implementation.generate(on_libtorch)
    assert "PackedSpec kPacked[]" in slim and ".packed = kPacked," in slim
    assert "kPacked" not in libtorch and ".packed = {}," in libtorch


def test_run_writes_all_files(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(to_json(LIBRARY), encoding="utf-8")
    outputs = {flag: str(tmp_path / flag) for flag in _OUTPUTS}
    parser = argparse.ArgumentParser()
    bindings.add_arguments(parser)
    flags = [f"--out_{flag}={path}" for flag, path in outputs.items()]
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(dataclasses.asdict(SPEC)), encoding="utf-8")
    bindings.run(parser.parse_args([f"--spec={spec}", f"--manifest={manifest}", *flags]))
    assert Path(outputs["cc"]).read_text(encoding="utf-8") == golden(
        "encoder.binding.cc"
    ).read_text(encoding="utf-8")
    digest = digest_source.generate(
        LIBRARY.codegen.program_id, label=PROGRAM.label, digest=PROGRAM.graph_sha256
    )
    assert Path(outputs["digest"]).read_text(encoding="utf-8") == digest


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}", encoding="utf-8")
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(dataclasses.asdict(SPEC)), encoding="utf-8")
    args = argparse.Namespace(
        spec=spec,
        manifest=manifest,
        **{f"out_{flag}": str(tmp_path / flag) for flag in _OUTPUTS},
    )
    with pytest.raises(DriverError, match="schema_version None"):
        bindings.run(args)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["manifest.json", "spec.json"]


@pytest.mark.parametrize(
    ("name", "cpp", "python", "field"),
    [
        ("tokens", "tokens", "tokens", "tokens"),
        ("class", "class_", "class_", "class_"),
        ("new", "new_", "new", "new"),
        ("lambda", "lambda", "lambda_", "lambda_"),
        ("_x", "_x", "_x", "x"),
        ("_X", "x_X", "_X", "X"),
        ("a__b", "x_a_b", "a__b", "a__b"),
        ("__", "x_", "__", "output"),
    ],
)
def test_names(name: str, cpp: str, python: str, field: str) -> None:
    assert names.cpp_name(name) == cpp
    assert names.python_name(name) == python
    assert names.python_field(name) == field


def error_of(function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(DriverError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_names_that_are_none() -> None:
    assert error_of(build_with_input, name="a-b") == (
        '//models/text:encoder: the input "a-b" can\'t be a name in C++ and Python: use letters, '
        'digits and "_", and no digit first'
    )


def test_names_that_collide() -> None:
    assert error_of(build_with_input, name="class_") == (
        '//models/text:encoder: inputs "class_" and "class" both become "class_" in the generated '
        "code; rename one of them"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"namespace": "a::class"}, 'the C++ namespace "class" is reserved in C++'),
        ({"class_name": "3D"}, 'the C++ class "3D" can\'t be a name in C++ and Python'),
        ({"py_module": "import"}, 'the Python module "import" is a keyword'),
    ],
)
def test_wrong_spec(changes: dict[str, Any], message: str) -> None:
    assert message in error_of(dataclasses.replace, SPEC, **changes)


def test_unknown_dtype() -> None:
    assert error_of(build_with_input, dtype="float8_e5m2").startswith(
        '//models/text:encoder: input "tokens" has dtype float8_e5m2; available: uint8, int8,'
    )


def test_constant_without_weights() -> None:
    assert error_of(build, constants=PROGRAM.constants[1:]) == (
        '//models/text:encoder: the program uses "layer."0".weight", which has no weights'
    )


def test_state_in_a_class_of_the_name_of_sessions() -> None:
    named = dataclasses.replace(SPEC, class_name="Session")
    with pytest.raises(DriverError) as error:
        build_model.build(named, LIBRARY)
    assert str(error.value) == (
        "//models/text:encoder: its C++ class can't be called Session, because the model has "
        "state, and Session is the class of its sessions; rename the target"
    )


def test_a_model_without_state_has_no_sessions() -> None:
    constants = [dataclasses.replace(c, mutated=False) for c in PROGRAM.constants]
    program = dataclasses.replace(PROGRAM, constants=tuple(constants))
    stateless = build_model.build(SPEC, dataclasses.replace(LIBRARY, program=program))
    for generate in GENERATORS.values():
        assert "ession" not in generate(stateless)


def test_size_of_a_derived_dim() -> None:
    assert error_of(build_with_input, shape=(Name("seq"), Number(1))) == (
        '//models/text:encoder: the size "seq" is not an increasing function of a free dim'
    )


def test_wrong_strides() -> None:
    assert error_of(build_with_input, stride=(Number(1),)) == (
        '//models/text:encoder: input "tokens" has 2 sizes, but 1 strides'
    )
    uneven = operation("+", operation("//", Number(2), Name("half")), Number(1))
    assert error_of(build_with_input, stride=(uneven, Number(1))) == (
        '//models/text:encoder: input "tokens": stride: can\'t use "2//half" in the size '
        '"(2//half) + 1": expected integers and dims (batch, half, count, k, seq) with +, -, * and '
        "// by a positive integer"
    )


def test_wrong_sizes() -> None:
    assert error_of(build_with_input, shape=(operation("*", Name("batch"), Name("half")),)) == (
        '//models/text:encoder: the size "batch*half" is not a sum of multiples and quotients of '
        "dims that other sizes have alone"
    )


def test_guard_of_an_unknown_dim() -> None:
    assert error_of(build, guards=(operation("==", Name("n"), Number(3)),)) == (
        '//models/text:encoder: guard "n == 3": there is no dim "n"'
    )


@pytest.mark.parametrize(
    ("text", "cpp"),
    [
        ("0", "0"),
        ("-3", "-3"),
        ("a*b + b*a", "2 * dims[0] * dims[1]"),
        ("(a + 1)*(a - 1)", "dims[0] * dims[0] + -1"),
        ("a**3", "dims[0] * dims[0] * dims[0]"),
        ("max(1, a)", "dims[0]"),
        ("a - a", "0"),
        ("twice + 1", "2 * dims[0] + 1"),
    ],
)
def test_strides_in_cpp(text: str, cpp: str) -> None:
    dims = [Dim("a", 1, 8), Dim("b", 1, 8), Dim("twice", 2, 16, affine(2, "a", 0))]
    assert cpp_sizes.CppSizes(dims).stride(parse(text)) == cpp


def test_strides_that_are_contiguous() -> None:
    built = build_with_input(stride=(Name("seq"), Number(1)))
    assert built.inputs[0].strides is None
    built = build_with_input(stride=(Number(1), Name("batch")))
    assert built.inputs[0].strides == (Number(1), Name("batch"))


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ((0, 9), "int32", (0, 9)),
        ((0.0, 9.0), "uint8", (0, 9)),
        ((0, 1), "float32", None),
        (None, "int64", None),
    ],
)
def test_only_ranges_of_integers_are_checked(
    values: tuple[float, float] | None, dtype: str, expected: tuple[int, int] | None
) -> None:
    assert build_with_input(values=values, dtype=dtype).inputs[0].checked_values == expected


def test_strings() -> None:
    assert text.cpp_string('a"\\\n1é') == '"a\\"\\\\\\0121\\303\\251"'


def test_text_can_not_leave_a_comment() -> None:
    evil = build(label="//a:b\n#error \\")
    for generate in GENERATORS.values():
        assert "\n#error" not in generate(evil).replace("\\n", "")


def test_an_operator_keeps_nothing_between_calls() -> None:
    with pytest.raises(DriverError) as error:
        operator.generate(OPERATOR, [LIBRARY])
    assert str(error.value) == (
        '//models/text:encoder_op: //models/text:encoder writes to its buffer "count", but an '
        "operator keeps nothing between calls. Make the buffer an argument of forward(), and write "
        "to that"
    )


@pytest.mark.parametrize("size", ["batch + half", "half//2"])
def test_an_operator_has_no_sizes_that_follow_from_others(size: str) -> None:
    with pytest.raises(DriverError) as error:
        _operator(build_model.build(SPEC, with_mask(size)))
    assert str(error.value) == (
        '//models/text:encoder_op: input "mask" of //models/text:encoder has the size '
        f'"{size}", but each size of an operator\'s input has one dim at most, without a division. '
        "Give this size a dim of its own in dynamic_dims"
    )


@pytest.mark.parametrize(
    ("size", "code"),
    [
        (
            operation("max", Number(1), operation("//", Name("n"), Number(2))),
            "sizes.max(1, n // 2)",
        ),
        (operation("trunc", operation("*", Number(0.5), Name("n"))), "sizes.trunc(0.5 * n)"),
        (operation("OpaqueUnaryFn_log2", Name("n")), "None"),
        (operation("+", Number(1), Unknown()), "None"),
        (Name("lambda"), "lambda_"),
    ],
)
def test_sizes_of_an_operators_outputs(size: SizeExpr, code: str) -> None:
    assert operator.size_code(size) == code


def test_names_of_the_manifest_stay() -> None:
    plain = Input("x", "x", "float32", (), ())
    twice = Output("x", "x", "float32", ())
    built = build(inputs=(plain,), outputs=(twice,))
    assert (
        ".x = ::aoti::TypedTensor<float, 0>(std::move((*results)[0]))"
        in implementation.generate(built)
    )


if __name__ == "__main__":
    for _name, _generate in GENERATORS.items():
        golden(_name).parent.mkdir(exist_ok=True)
        golden(_name).write_text(_generate(build_model.build(SPEC, LIBRARY)), encoding="utf-8")


def _named(inputs: Sequence[str], outputs: Sequence[str]) -> LibraryManifest:
    """A library of vectors."""
    program = dataclasses.replace(
        PROGRAM,
        dims=(),
        inputs=tuple(Input(n, n, "float32", (Number(4),), (Number(1),)) for n in inputs),
        outputs=tuple(Output(n, n, "float32", (Number(4),)) for n in outputs),
        constants=(),
        guards=(),
    )
    return dataclasses.replace(LIBRARY, program=program)


def test_the_training_step_of_an_operator() -> None:
    spec = dataclasses.replace(OPERATOR, training=(("op_training", "op_backward"),))
    forward = _named(["x", "y"], ["output_sum", "output_y", "saved_0"])
    backward = _named(
        ["input_y", "output_y", "saved_0", "grad_sum", "grad_y"], ["grad_x", "grad_y"]
    )
    module = operator.generate(
        spec, [_named(["x", "y"], ["sum", "y"])], [(forward, backward)]
    ).replace("\n        ", " ")
    step = "forward=TRAINING_FORWARD,\n    backward=TRAINING_BACKWARD,"
    kept = 'kept=( Kept("input", 1), Kept("output", 1), Kept("output", 2),\n    )'
    assert f"TRAINING = Training(\n    {step}\n    {kept},\n)" in module
    assert "name='models_text::encoder_op_training'," in module
    assert "name='models_text::encoder_op_backward'," in module
    assert "training=TRAINING," in module
