"""Each change of Inductor is needed: without it, some program's code is another one, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from aoti_driver.inductor import packed_constants
from aoti_driver.torch_internals import inductor_changes, patching
from torch import Tensor, nn
from torch.export import Dim

from tests.unit.driver.inductor import harness, models

Model = tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any]


class Loops(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(), x.argmax(), x.softmax(-1), x.transpose(1, 2).contiguous() + 1


class Lookup(nn.Module):
    def forward(self, table: Tensor, places: Tensor, divisor: Tensor) -> tuple[Tensor, ...]:
        return table[places], places // divisor, table[:, 0][places]


class Select(nn.Module):
    def forward(self, table: Tensor, row: Tensor) -> Tensor:
        return table[row] + 1


class Additions(nn.Module):
    """Rows that are added to others: alone, of transposed tensors, and of a softmax."""

    def forward(self, x: Tensor, y: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        rows = torch.zeros(7, 300).index_add(0, places, x)
        turned = x.t() * y.t() * x[0][:, None]
        tiles = torch.zeros(300, 40).index_add(0, torch.arange(300), turned)
        return rows, tiles, torch.zeros(7, 300).index_add(0, places, x.softmax(-1))


class AdditionAndSum(nn.Module):
    def forward(self, x: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        return torch.zeros(7, 300).index_add(0, places, x * 2), (x * 2).sum(-1)


class Calls(nn.Module):
    """Operators whose calls Inductor writes by lines of different kinds."""

    def forward(self, x: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        product = x @ x.t()
        spread = torch.zeros(9).scatter_reduce(0, places, x[0], "prod")
        put = places.index_put((places,), places, accumulate=True)
        return product, x.sort(-1)[0], spread, put, torch.linalg.inv(product)


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x) - 1j)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result


class Int4(nn.Module):
    weight: Tensor
    scales: Tensor

    def __init__(self) -> None:
        super().__init__()
        numbers = torch.randint(0, 16, (32, 64), dtype=torch.int32)
        pack = torch.ops.aten._convert_weight_to_int4pack_for_cpu
        self.register_buffer("weight", pack(numbers, 1))
        self.register_buffer("scales", torch.ones(2, 32, 2, dtype=torch.bfloat16))

    def forward(self, x: Tensor) -> Tensor:
        multiply = torch.ops.aten._weight_int4pack_mm_for_cpu
        result: Tensor = multiply(x, self.weight, 32, self.scales)
        return result


class Scaled(nn.Module):
    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return (x / scale.item()).softmax(-1)


class Tanh(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x > 0, x.tanh(), x)


class WithOut(nn.Module):
    """Operators that have another one, which writes into a given tensor."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        ops = torch.ops.aoti_changes_test
        return ops.found(x), ops.registered(x)


def _loops() -> Model:
    return Loops(), (torch.randn(5, 33, 70),), {}, {"x": {0: Dim("rows", min=1, max=5000)}}


def _lookup() -> Model:
    indices = torch.zeros(40, dtype=torch.int64)
    return Lookup(), (torch.randn(9, 4), indices, indices + 1), {}, None


def _additions() -> Model:
    x = torch.randn(40, 300)
    return Additions(), (x, x + 1, torch.arange(40) % 7), {}, None


MODELS: dict[str, Callable[[], Model]] = {
    "addition and sum": lambda: (
        AdditionAndSum(),
        (torch.randn(40, 300), torch.arange(40) % 7),
        {},
        None,
    ),
    "additions": _additions,
    "calls": lambda: (Calls(), (torch.randn(9, 9), torch.arange(9)), {}, None),
    "complex": lambda: (Complex(), (torch.randn(4, 2),), {}, None),
    "convolution": lambda: (Convolution().eval(), (torch.randn(1, 3, 8, 8),), {}, None),
    "int4": lambda: (Int4(), (torch.randn(4, 64, dtype=torch.bfloat16),), {}, None),
    "lookup": _lookup,
    "loops": _loops,
    "numbers": models.numbers,
    "odd": models.odd,
    "pool": lambda: (
        nn.AvgPool2d((2, 1), ceil_mode=True),
        (torch.randn(1, 10, 4),),
        {},
        {"input": {1: Dim.AUTO}},
    ),
    "scalar additions": _additions,
    "scalar lookup": _lookup,
    "select": lambda: (Select(), (torch.randn(3, 4), torch.tensor(1)), {}, None),
    "scaled": lambda: (Scaled(), (torch.randn(3, 4), torch.ones(()).double()), {}, None),
    "tanh": lambda: (Tanh(), (torch.randn(7),), {}, None),
    "out": lambda: (WithOut(), (torch.randn(3),), {}, None),
}
# Change: the model that shows it.
SHOWN_BY = {
    "torch._inductor.codecache:AotCodeCompiler.compile": "complex",
    "torch._inductor.compile_fx:clone_preserve_strides": "odd",
    "torch._inductor.compile_fx:_extract_inputs_from_exported_gm": "numbers",
    "torch._inductor.graph:normalize_name": "odd",
    "torch._inductor.codegen.cpp_wrapper_cpu:normalize_name": "odd",
    "torch._inductor.graph:GraphLowering.graph_inputs": "numbers",
    "torch._inductor.fx_passes.joint_graph:UniformValueConstantFolder._deduce_value": "odd",
    "torch._inductor.pattern_matcher:Match.replace_by_example": "scaled",
    "torch.fx.graph:Graph._codegen": "odd",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_model_constructor": "numbers",
    "torch._inductor.codegen.cpp_wrapper_cpu:"
    "CppWrapperCpu.generate_input_output_runtime_checks": "numbers",
    "torch._inductor.codegen.cpp_wrapper_cpu:"
    "CppWrapperCpu.generate_fallback_kernel_with_runtime_lookup": "calls",
    "torch._library._out_variant:to_out_variant": "out",
    "torch._library._out_variant:lookup_manual_out_variant": "out",
    "torch._inductor.decomposition:decompositions": "complex",
    "torch._inductor.lowering:pooling_size": "pool",
    "torch._inductor.kernel.conv:ir": "convolution",
    "torch._inductor.codegen.cpp:WorkSharing": "loops",
    "torch._inductor.codegen.cpp:reduction_prefix_array": "loops",
    "torch._inductor.codegen.cpp:CppKernel.codegen_loops_impl": "loops",
    "torch._inductor.codegen.cpp:CppKernel.decide_parallel_depth": "loops",
    "torch._inductor.codegen.cpp:CppKernel._gen_parallel_reduction_buffers": "loops",
    "torch._inductor.codegen.cpp:LoopNest.mark_parallel": "loops",
    "torch._inductor.codegen.cpp:LoopLevel.lines": "loops",
    "torch._inductor.codegen.cpp:CppKernel.store": "scalar additions",
    "torch._inductor.codegen.cpp:CppVecKernel.store": "additions",
    "torch._inductor.codegen.cpp:CppTile2DKernel.store": "additions",
    "torch._inductor.codegen.cpp:CppScheduling._can_fuse_horizontal_impl": "addition and sum",
    "torch._inductor.codegen.cpp:CppScheduling._get_outer_loop_fusion_depth": "additions",
    "torch._inductor.codegen.cpp:TilingSelect.select_tiling": "tanh",
    "torch._inductor.codegen.common:CSEProxy.indirect_indexing": "lookup",
    "torch._inductor.codegen.common:Kernel.indirect_assert": "scalar lookup",
    "torch._inductor.codegen.cpp:CppKernel.check_bounds": "lookup",
    "torch._inductor.codegen.cpp:CppVecKernel.indirect_assert": "lookup",
    "torch._inductor.codegen.cpp:KernelGroup.codegen_group": "lookup",
    "torch._inductor.codegen.cpp_wrapper_cpu:CppWrapperCpu.codegen_dynamic_select_index": "select",
    "torch._inductor.scheduler:Scheduler.codegen_extern_call": "calls",
    "torch._inductor.codegen.wrapper:ExternKernelAllocLine.codegen": "calls",
    "torch._inductor.codegen.wrapper:ExternKernelOutLine.codegen": "calls",
    "torch._inductor.codegen.wrapper:IndexPutFallbackLine.codegen": "calls",
    "torch._inductor.codegen.wrapper:ScatterFallbackLine.codegen": "calls",
    "torch._inductor.utils:IndentedBuffer.writeline": "calls",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.writeline": "calls",
}


@pytest.fixture(scope="module", autouse=True)
def _operators() -> Iterator[None]:
    library: Any = getattr(torch.library, "Library")("aoti_changes_test", "DEF")  # noqa: B009
    for name, out in (("found", "found.out"), ("registered", "registered_out")):
        library.define(f"{name}(Tensor x) -> Tensor")
        tags = (torch.Tag.out,) if "." in out else ()
        library.define(f"{out}(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", tags=tags)
        library.impl(name, torch.clone, "CPU")
        library.impl(name, torch.empty_like, "Meta")
    ops = torch.ops.aoti_changes_test
    from torch._library import _out_variant

    _out_variant.register_out_variant(ops.registered.default, ops.registered_out.default)
    yield
    library._destroy()


def outcome(folder: Path, name: str) -> str:
    """All that was generated, or the error."""
    torch.manual_seed(0)
    module, args, kwargs, shapes = MODELS[name]()
    harness.freeze(folder, module, args, kwargs, shapes)
    try:
        harness.generate(folder, "m", "x86-64" if name.startswith("scalar") else "x86-64-v4")
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    files = [*harness.sources(folder), folder / "compiled.json"]
    return "".join(path.read_text(encoding="utf-8") for path in files)


def leave_out(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced, entries_kept = patching.replaced, patching.entries_kept
    replaced_on, replace_on = patching.replaced_on, patching.replace_on

    def others(values: Mapping[str, object]) -> Any:
        return replaced({p: value for p, value in values.items() if p != place})

    @contextlib.contextmanager
    def copied(p: str, keys: Any) -> Iterator[Any]:
        with entries_kept(p, keys) as table:
            yield dict(table) if p == place else table

    def on(instance: object, p: str, value: object) -> Any:
        return contextlib.nullcontext() if p == place else replaced_on(instance, p, value)

    def for_good(instance: object, p: str, value: object) -> None:
        if p != place:
            replace_on(instance, p, value)

    monkeypatch.setattr(patching, "replaced", others)
    monkeypatch.setattr(patching, "entries_kept", copied)
    monkeypatch.setattr(patching, "replaced_on", on)
    monkeypatch.setattr(patching, "replace_on", for_good)


@pytest.fixture(scope="module")
def with_all(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    known: dict[str, str] = {}

    def of(name: str) -> str:
        if name not in known:
            known[name] = outcome(tmp_path_factory.mktemp(name), name)
            assert outcome(tmp_path_factory.mktemp(name), name) == known[name]
        return known[name]

    return of


@pytest.mark.parametrize("place", SHOWN_BY)
def test_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_all: Callable[[str], str], place: str
) -> None:
    expected = with_all(SHOWN_BY[place])
    leave_out(place, monkeypatch)
    assert outcome(tmp_path, SHOWN_BY[place]) != expected


def test_nothing_is_written_for_the_proxy_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.virtualized import V

    written: list[int] = []
    find = packed_constants.find

    def count(graph: Any, blocks: packed_constants.Blocks) -> Any:
        written.append(len(V.extern_kernel_nodes))
        return find(graph, blocks)

    monkeypatch.setattr(packed_constants, "find", count)
    outcome(tmp_path, "calls")
    assert written == [0]


def test_four_bit_products_are_called_by_name(tmp_path: Path) -> None:
    """And only while code is generated."""
    from torch._inductor import lowering

    operator = torch.ops.aten._weight_int4pack_mm_for_cpu.default
    before = lowering.lowerings[operator], operator in lowering.fallbacks
    text = outcome(tmp_path, "int4")
    assert 'aoti_dispatch::Call("aten::_weight_int4pack_mm_for_cpu", ""' in text
    assert (lowering.lowerings[operator], operator in lowering.fallbacks) == before


def test_checks_name_the_same_symbol_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import ir

    symbols = sympy.symbols("u0:40")
    scalar = sympy.Le(sum(symbols), 5)
    orders: list[list[str]] = []
    find = packed_constants.find

    def ask(graph: Any, blocks: packed_constants.Blocks) -> Any:
        found = ir.AssertScalar.get_free_symbol_uses(SimpleNamespace(scalar=scalar), False)
        orders.append([str(symbol) for symbol in found])
        return find(graph, blocks)

    monkeypatch.setattr(packed_constants, "find", ask)
    outcome(tmp_path, "complex")
    assert orders == [sorted(map(str, symbols))]


def test_all_are_tried() -> None:
    tried = [c.place for c in inductor_changes.CHANGES if c.test.endswith("::test_it_is_needed")]
    assert sorted(tried) == sorted(SHOWN_BY)
