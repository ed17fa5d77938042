"""Runs only Inductor's C++ code generator.

No C++ compiler is called, the host's instruction set is not probed, no cache remains after the
call, and the text does not contain the host's paths or its number of cores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from aoti_driver.base import environment, quiet
from aoti_driver.contract.isa import Isa
from aoti_driver.contract.tiles import ProductTiles
from aoti_driver.cuda import attention, cells, device, launches, retarget
from aoti_driver.cuda.archs import Arch
from aoti_driver.cuda.images import Kernel
from aoti_driver.cuda.tuning_file import Tuning
from aoti_driver.inductor import (
    attention_calls,
    attention_heads,
    attention_patterns,
    batch_norm,
    block_calls,
    block_functions,
    called_functions,
    complex_numbers,
    concatenated_parts,
    concatenation,
    constant_sizes,
    convolution_chain,
    convolution_chain_fusion,
    convolution_epilogue,
    convolution_fusion,
    dispatch,
    enlargement,
    float8_products,
    grid_samples,
    heavy_functions,
    int8_product,
    kernel_checks,
    ordered_additions,
    outline,
    packed_constants,
    parallel_loops,
    pooling,
    product_activation,
    quantized,
    recurrent,
    reduction_tails,
    runs,
    selects,
    slices,
    vector_functions,
)
from aoti_driver.inductor.config_options import DEFAULTS, Options, decided_options
from aoti_driver.inductor.instruction_set import target
from aoti_driver.program import (
    aliasing,
    convolutions,
    result_shapes,
    signature,
    triton_operators,
)
from aoti_driver.torch_internals import patching

_CONFIG = "torch._inductor.config"
_WRAPPER = "torch._inductor.codegen.cpp_wrapper_cpu"


@dataclasses.dataclass(frozen=True)
class GeneratedConstant:
    """A row of the generated code's constants table."""

    symbol: str
    tensor: torch.Tensor
    fqn: str


@dataclasses.dataclass(frozen=True)
class Generated:
    """Inductor's unmodified output.

    calls: the functions with the nodes that they are called for. refused: operators that can't be
    called, with reasons. replaced: symbols of sizes that are known to be something else.
    cuda_kernels, cuda_products: for a GPU.
    """

    wrapper: str
    kernels: str
    constants: tuple[GeneratedConstant, ...]
    packed: tuple[packed_constants.PackedSymbol, ...]
    calls: called_functions.Calls
    refused: Mapping[str, str]
    model_class: str
    inputs: tuple[str, ...]
    outputs: int
    replaced: Mapping[sympy.Symbol, sympy.Expr]
    cuda_kernels: tuple[Kernel, ...] = ()
    cuda_products: tuple[ProductTiles, ...] = ()


def generate(
    ep: ExportedProgram,
    isa: Isa,
    *,
    suffix: str,
    call_spec: tuple[str, str],
    options: Options,
    written: Container[str] = (),
    share_blocks: bool = False,
    cuda_archs: Sequence[Arch] = (),
    tuning: Tuning | None = None,
) -> Generated:
    """Generates C++ for ``ep`` (loaded flat: inputs and outputs are tuples of leaves).

    suffix: makes the name of the model's class unique. call_spec: the pytree specs of the original
    program, which the code passes to Python callers. written: the parameters and buffers that the
    program writes to. share_blocks: whether blocks that repeat are
    functions (outline.py); UnfitError if they can't be. cuda_archs: the GPUs to compile for, the
    lowest first; none for the CPU. tuning: the tiles that were measured for them.
    """
    from torch._inductor import compile_fx

    results: list[Generated] = []
    known = packed_constants.Blocks()
    operators: dict[Any, outline.Block | runs.Run] = {}

    def capture(graph: Any, wrapper: str, kernels: str, *_: object, **__: object) -> list[str]:
        rows = []
        for name in graph.constants:
            tensor = graph.get_original_value_of_constant(name)
            fqn = graph.dynamo_flat_name_to_original_fqn.get(
                name, graph.allocated_constant_name.get(name, name)
            )
            if fqn in stored:
                tensor = stored[fqn]
            elif (own := retarget.stored_tensor(tensor)) is not None:
                tensor = own  # one that forward() makes of numbers, by a name of Inductor's
            rows.append(GeneratedConstant(name, tensor, fqn))
        model_class = f"AOTInductorModel{suffix}"
        packed = () if cuda_archs else packed_constants.find(graph, known)
        results.append(
            Generated(
                wrapper=wrapper,
                kernels=kernels,
                constants=tuple(rows),
                packed=packed,
                calls=calls,
                refused=refused,
                model_class=model_class,
                inputs=tuple(graph.graph_input_names),
                outputs=len(graph.graph_outputs),
                replaced=dict(graph.sizevars.shape_env.replacements),
                cuda_kernels=tuple(launched.kernels),
                cuda_products=tuple(launched.products),
            )
        )
        return []

    # Of a program for GPUs, the tensors that fake ones stand for.
    stored: dict[str, torch.Tensor] = {}
    launched = launches.Launched()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="aoti_codegen_"))
        stack.enter_context(environment.changed("TORCHINDUCTOR_CACHE_DIR", scratch))
        isa_options = stack.enter_context(target(isa))
        values = {
            "torch._inductor.codecache:AotCodeCompiler.compile": capture,
            "torch._inductor.compile_fx:clone_preserve_strides": lambda tensor: tensor,
            "torch._inductor.graph:normalize_name": _constant_symbol,
            f"{_WRAPPER}:normalize_name": _constant_symbol,
            "torch._inductor.cpp_builder:cpp_compiler_search": lambda *_: "c++",
            "torch.fx.config:do_not_emit_stack_traces": True,
        }
        stack.enter_context(patching.replaced(values))
        stack.enter_context(_values_unknown())
        stack.enter_context(_symbols_in_order())
        stack.enter_context(_numbers_as_inputs())
        stack.enter_context(_floats_unknown())
        stack.enter_context(attention_patterns.compared())
        stack.enter_context(convolutions.layouts_of_every_host())
        stack.enter_context(packed_constants.weights_as_stored(known))
        stack.enter_context(quantized.called_by_name())
        stack.enter_context(pooling.right_for_all_sizes())
        stack.enter_context(constant_sizes.avoided())
        stack.enter_context(complex_numbers.decompositions())
        stack.enter_context(float8_products.in_float32())
        refused = stack.enter_context(dispatch.direct_calls(operators))
        stack.enter_context(parallel_loops.through_the_runtime())
        stack.enter_context(ordered_additions.written())
        if not cuda_archs:
            stack.enter_context(kernel_checks.throwing())
            stack.enter_context(triton_operators.computed_for_cpu(ep))
        stack.enter_context(selects.checked())
        stack.enter_context(vector_functions.in_vectors())
        stack.enter_context(convolution_epilogue.lowered())
        stack.enter_context(convolution_chain.lowered())
        stack.enter_context(concatenation.lowered())
        stack.enter_context(concatenated_parts.kept())
        stack.enter_context(heavy_functions.shared())
        stack.enter_context(reduction_tails.stored_apart())
        stack.enter_context(batch_norm.lowered())
        stack.enter_context(product_activation.lowered())
        stack.enter_context(enlargement.lowered())
        stack.enter_context(grid_samples.lowered())
        stack.enter_context(int8_product.lowered())
        calls = stack.enter_context(called_functions.recorded())
        stack.enter_context(quiet.silenced())
        stack.enter_context(torch.no_grad())
        if cuda_archs:
            tuning = tuning or Tuning()
            launched = stack.enter_context(device.generating(cuda_archs, scratch, tuning))
            stored = stack.enter_context(retarget.on_device(ep))
        decided = {**decided_options(suffix, scratch, call_spec), **isa_options}
        defaults = patching.listed_options(
            _CONFIG, {**DEFAULTS, **(device.DEFAULTS if cuda_archs else {})}
        )
        patches = {**defaults, **options, **patching.listed_options(_CONFIG, decided)}
        if cuda_archs:
            patches |= patching.listed_options(_CONFIG, device.OPTIONS)
        if tuning is not None and tuning.measured:
            patches |= patching.listed_options(_CONFIG, device.MEASURED_OPTIONS)
        alone = {"compile_threads": 1, "force_disable_caches": True}
        stack.enter_context(patching.options(_CONFIG, alone))
        result_shapes.declare()
        module = ep.module(check_guards=False)
        args, _ = ep.example_inputs or ((), {})
        patching.replace_on(module.graph, "torch.fx.graph:Graph._codegen", torch.fx.graph.CodeGen())
        aliasing.drop_floats(module)
        recurrent.called_whole(module, on_gpu=bool(cuda_archs))
        complex_numbers.resolve_outputs(module)
        aliasing.own_outputs(module)
        slices.explicit_bounds(module)
        if cuda_archs:
            cells.written_out(module)
            attention.in_kernels(module, cuda_archs)
        aliasing.written_parameters_as_buffers(module, ep, written)
        if not cuda_archs:
            attention_calls.put(module)
            attention_heads.made_contiguous(module)
            concatenation.join(module)
            convolution_fusion.fuse(module)
            convolution_chain_fusion.fuse(module)
            batch_norm.replace(module)
            product_activation.fuse(module)
            enlargement.replace(module)
            grid_samples.replace(module)
            int8_product.fuse(module)
        inputs: list[Any] = [
            leaf if is_input else None
            for leaf, is_input in zip(args, signature.is_input(ep), strict=True)
        ]
        blocks = stack.enter_context(outline.outlined(module)) if share_blocks else []
        operators.update({block.operator.overload: block for block in blocks})
        for block in blocks:
            known.weights = block.weights
            compile_fx.compile_fx_aot(block.module, block.inputs(), config_patches=patches)
            block.check(results[-1].constants)
            given = results[-1].inputs
            packed = {given.index(symbol.symbol): symbol for symbol in results[-1].packed}
            known.add(block.operator, packed)
        known.weights = ()
        merged = stack.enter_context(runs.merged(module, blocks))
        operators.update({run.operator.overload: run for run in merged})
        for run in merged:
            known.add_run(run)
        stack.enter_context(block_calls.lowered([*blocks, *merged]))
        compile_fx.compile_fx_aot(module, inputs, config_patches=patches)
    if len(results) != len(blocks) + 1:
        raise AssertionError(f"expected {len(blocks) + 1} programs from Inductor")
    if tuning is not None:
        tuning.refuse_unused()
    *functions, program = results
    wrapper, kernels = block_functions.merge(
        program.model_class,
        (program.wrapper, program.kernels),
        [(b, f.wrapper, f.kernels) for b, f in zip(blocks, functions, strict=True)],
    )
    return dataclasses.replace(program, wrapper=wrapper, kernels=kernels)


@functools.cache  # asked for each pair of constants
def _constant_symbol(fqn: str) -> str:
    """A unique C++ name for a parameter or buffer that is not a keyword.

    Inductor would use the name ``short`` for a buffer of that name, and ``inputs`` like its own
    variable.
    """
    symbol = re.sub(r"[^a-zA-Z0-9_]", "_", fqn)
    return symbol if symbol.startswith("_tensor_constant") else f"c_{symbol}"


@contextlib.contextmanager
def _numbers_as_inputs() -> Iterator[None]:
    """Lets a program take integers that stand for sizes.

    Inductor's C++ takes them as tensors of rank 0, but while it traces it replaces them by None,
    and the checks that it writes for stock callers only support tensors.
    """
    from torch._inductor.virtualized import V

    constructor = f"{_WRAPPER}:CppWrapperCpu.codegen_model_constructor"
    checks = f"{_WRAPPER}:CppWrapperCpu.generate_input_output_runtime_checks"
    write_constructor, write_checks = patching.original(constructor), patching.original(checks)

    def traced(module: torch.fx.GraphModule, _: object) -> list[Any]:
        values = [node.meta.get("val") for node in module.graph.find_nodes(op="placeholder")]
        return [v if isinstance(v, (torch.Tensor, torch.SymInt)) else None for v in values]

    def write_checks_of_tensors(wrapper: Any) -> None:
        if not any(isinstance(value, sympy.Expr) for value in V.graph.graph_inputs.values()):
            write_checks(wrapper)
            return
        wrapper.prefix.splice_aot(
            "static bool _check_aoti_runtime_check_inputs_env() { return false; }\n"
            "static void __check_inputs_outputs(AtenTensorHandle*, AtenTensorHandle*) {}"
        )

    def write_constructor_by_names(wrapper: Any) -> None:
        names: dict[str, None] = dict.fromkeys(V.graph.graph_inputs)
        inputs = "torch._inductor.graph:GraphLowering.graph_inputs"
        with patching.replaced_on(V.graph, inputs, names):
            write_constructor(wrapper)

    with patching.replaced(
        {
            constructor: write_constructor_by_names,
            checks: write_checks_of_tensors,
            "torch._inductor.compile_fx:_extract_inputs_from_exported_gm": traced,
        }
    ):
        yield


@contextlib.contextmanager
def _values_unknown() -> Iterator[None]:
    """Keeps Inductor from writing the values of one-element parameters and buffers into the code.

    Otherwise new weights would change the code, and a counter in a buffer would not count.
    """
    place = "torch._inductor.fx_passes.joint_graph:UniformValueConstantFolder._deduce_value"
    deduce = patching.original(place)

    def deduce_unless_stored(self: Any, node: torch.fx.Node) -> Any:
        return self.unknown_value if node.op == "get_attr" else deduce(self, node)

    with patching.replaced({place: deduce_unless_stored}):
        yield


@contextlib.contextmanager
def _floats_unknown() -> Iterator[None]:
    """Keeps Inductor from rewriting operators for the sign of a float that varies.

    Its patterns for the softmax of a scaled tensor ask whether the scale is negative.
    """
    place = "torch._inductor.pattern_matcher:Match.replace_by_example"
    replace = patching.original(place)

    def replace_unless_varying(
        match: Any, replacement: Any, args: Any, *rest: Any, **named: Any
    ) -> Any:
        nodes = (arg for arg in args if isinstance(arg, torch.fx.Node))
        if any(isinstance(node.meta.get("val"), torch.SymFloat) for node in nodes):
            return []
        return replace(match, replacement, args, *rest, **named)

    with patching.replaced({place: replace_unless_varying}):
        yield


@contextlib.contextmanager
def _symbols_in_order() -> Iterator[None]:
    """Makes the message of a check on sizes name the same size in every build.

    Inductor takes the first of a set, whose order changes with the hash seed of the process.
    """
    from torch.utils._ordered_set import OrderedSet

    place = "torch._inductor.ir:AssertScalar.get_free_symbol_uses"
    symbols_of = patching.original(place)

    def in_order(node: Any, unbacked_only: bool = False) -> Any:
        return OrderedSet(sorted(symbols_of(node, unbacked_only), key=str))

    with patching.replaced({place: in_order}):
        yield
