"""A manifest with everything that bindings know: the golden files are made from it."""

from __future__ import annotations

from aoti_driver.bindings.model import Spec
from aoti_driver.contract.code_parts import Codegen, Packed, ProgramConstant
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.program_parts import Constant, Dim, Input, Output
from aoti_driver.contract.size_expr import Name, Number, SizeExpr, affine
from aoti_driver.contract.size_json import from_json as size

BATCH = Name("batch")
SEQ = affine(2, "half", 0)


def static(size: int) -> SizeExpr:
    return Number(size)


SPEC = Spec(
    namespace="models::text",
    class_name="Encoder",
    header="models/text/encoder.h",
    py_module="encoder",
    weights_runfile="_main/models/text/encoder.safetensors",
    embedded=False,
    threads=2,
)

PROGRAM = ProgramManifest(
    label="//models/text:encoder",
    name="encoder",
    torch_version="2.13.0+cpu",
    strict=False,
    dims=(
        Dim("batch", 1, 64),
        Dim("half", 1, 256),
        Dim("seq", 2, 512, SEQ),
        Dim("count", -5, 5),
        Dim("k", 0, 9),
    ),
    inputs=(
        Input("tokens", "tokens", "int64", (BATCH, SEQ), (SEQ, Number(1)), values=(0, 99)),
        Input(
            "image",
            "images[0]",
            "float32",
            (BATCH, static(3), affine(1, "half", 1), static(8)),
            (affine(24, "half", 24), Number(1), Number(24), Number(3)),
            values=(0.0, 1.0),
        ),
        Input(
            "class",
            "class",
            "bfloat16",
            (static(1), BATCH, static(4)),
            (size(["*", 4, ["max", 1, "batch"]]), Number(4), Number(1)),
            mutated=True,
        ),
        Input("lambda", "lambda", "bool", (), ()),
        Input("count", "count", "int64", (), (), value="count", number="int"),
        Input("scale", "scale", "float64", (), (), values=(0.5, 2), number="float", default=1),
        Input("k", "k", "int64", (), (), value="k", number="int", default=5),
    ),
    outputs=(
        Output("logits", "logits", "float32", (BATCH, SEQ, Number(99))),
        Output("low", "[1]", "bfloat16", ()),
        Output("import", "import", "complex64", (BATCH,)),
    ),
    constants=(
        Constant('layer."0".weight', "parameter", "float32", (2, 3)),
        Constant("count", "buffer", "int64", (), mutated=True),
        Constant("naïve", "constant", "float16", (3,)),
    ),
    guards=(
        size(["or", ["==", ["%", "batch", 8], 0], ["!=", "half", 3]]),
        size(["<=", ["//", "seq", "batch"], ["*", 2.5, "half"]]),
    ),
    graph_sha256="",
)

LIBRARY = LibraryManifest(
    program=PROGRAM,
    codegen=Codegen(
        program_id="models_text_encoder",
        device="cpu",
        isa="x86-64-v3",
        options={},
        shims=(),
        constants=(
            ProgramConstant("w", 'layer."0".weight', "float32", (3, 2), (1, 3)),
            ProgramConstant("h", "naïve", "float16", (2,), (1,), 1),
            ProgramConstant("c", "count", "int64", (), ()),
        ),
        packed=(Packed('layer."0".weight', "gemm_f32", {}, only=True),),
    ),
    shim="slim",
)
