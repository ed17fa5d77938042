"""The precision attribute: which tensors become bfloat16, and what reads them then."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from aoti_driver.export import precision
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

aten = torch.ops.aten


def lowered(module: nn.Module, args: tuple[Any, ...], shapes: Any = None) -> ExportedProgram:
    with torch.no_grad():
        program = torch.export.export(module.eval(), args, dynamic_shapes=shapes)
    precision.lower(program, "bfloat16")
    return program


def targets(program: ExportedProgram) -> list[Any]:
    return [node.target for node in program.graph.nodes if node.op == "call_function"]


class Everything(nn.Module):
    """A table whose matrix is also a product's, products of three kinds, and a matrix that is
    added.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.first = nn.Linear(32, 64)
        self.last = nn.Linear(32, 50, bias=False)
        self.last.weight = self.table.weight
        self.matrix = nn.Parameter(torch.randn(64, 32) / 8)
        self.added = nn.Parameter(torch.randn(7, 32))
        self.norm = nn.LayerNorm(32)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.table(ids) + self.added
        x = self.norm(self.first(x).relu() @ self.matrix)
        return self.last(x), self.added


@pytest.fixture
def everything() -> Everything:
    torch.manual_seed(0)
    return Everything()


def test_matrices_are_stored_as_bfloat16(everything: Everything) -> None:
    program = lowered(everything, (torch.zeros(3, 7, dtype=torch.int64),))
    dtypes = {name: tensor.dtype for name, tensor in program.state_dict.items()}
    narrow = {name for name, dtype in dtypes.items() if dtype == torch.bfloat16}
    assert narrow == {"table.weight", "first.weight", "last.weight", "matrix", "added"}
    assert {dtypes[name] for name in dtypes.keys() - narrow} == {torch.float32}
    tied = program.state_dict["table.weight"], program.state_dict["last.weight"]
    assert tied[0].data_ptr() == tied[1].data_ptr()


def test_products_take_bfloat16_and_the_rest_is_float32(everything: Everything) -> None:
    program = lowered(everything, (torch.zeros(3, 7, dtype=torch.int64),))
    taken: dict[Any, list[tuple[torch.dtype, ...]]] = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            dtypes = tuple(operand.meta["val"].dtype for operand in node.all_input_nodes)
            taken.setdefault(node.target, []).append(dtypes)
    narrow, wide = torch.bfloat16, torch.float32
    assert taken[aten.linear.default] == [(narrow, narrow, narrow), (narrow, narrow)]
    assert taken[aten.matmul.default] == [(narrow, narrow)]
    assert taken[aten.embedding.default] == [(narrow, torch.int64)]
    assert set(taken[aten.add.Tensor]) == {(wide, wide)}
    assert taken[aten.layer_norm.default] == [(wide, wide, wide)]
    results = program.graph.output_node().args[0]
    assert [result.meta["val"].dtype for result in results] == [wide, wide]


@pytest.mark.parametrize("batch", [2, 5])
def test_results_are_those_of_rounded_weights(everything: Everything, batch: int) -> None:
    ids = torch.randint(0, 50, (3, 7))
    program = lowered(everything, (ids,), ({0: Dim("batch", min=2, max=8)},))
    ids = torch.randint(0, 50, (batch, 7))
    with torch.no_grad():
        expected = everything(ids)
        got = program.module()(ids)
    for g, e in zip(got, expected):
        assert g.dtype == torch.float32 and g.shape == e.shape
        error = (g - e).abs().max() / e.abs().max()
        assert 1e-4 < error < 1e-2  # it is rounded, and no more than that


def test_what_is_saved_can_be_exported_again(everything: Everything) -> None:
    """Names of results in the signature are those of nodes."""
    program = lowered(everything, (torch.zeros(3, 7, dtype=torch.int64),))
    names = {node.name for node in program.graph.nodes}
    assert {spec.arg.name for spec in program.graph_signature.output_specs} <= names
    program.validate()  # type: ignore[no-untyped-call]
    program.run_decompositions()


class Attention(nn.Module):
    """Attention of what a layer computes, and of a cache that is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.together = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        batch, steps, _ = x.shape
        q, k, v = self.together(x).view(batch, steps, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        attend = nn.functional.scaled_dot_product_attention
        y = self.out(attend(q, k, v).transpose(1, 2).reshape(batch, steps, 32))
        keys = torch.cat([cache, k], 2)
        return y, attend(q, keys, keys, is_causal=True)


def test_attention_between_activations_takes_bfloat16() -> None:
    torch.manual_seed(0)
    module = Attention()
    inputs = torch.randn(2, 5, 32), torch.randn(2, 4, 3, 8)
    program = lowered(module, inputs, ({0: (batch := Dim("batch", max=9))}, {0: batch}))
    first, second = program.graph.find_nodes(
        op="call_function", target=aten.scaled_dot_product_attention.default
    )
    assert {o.meta["val"].dtype for o in first.all_input_nodes} == {torch.bfloat16}
    assert {o.meta["val"].dtype for o in second.all_input_nodes} == {torch.float32}
    assert second.kwargs == {"is_causal": True} or second.args[5] is True
    inputs = torch.randn(3, 5, 32), torch.randn(3, 4, 3, 8)
    with torch.no_grad():
        for got, wanted in zip(program.module()(*inputs), module(*inputs), strict=True):
            assert got.dtype == torch.float32
            torch.testing.assert_close(got, wanted, rtol=0.02, atol=0.02)


def test_what_was_bfloat16_is_not_rounded_again() -> None:
    """Views of results between two products are views of the bfloat16 ones."""
    program = lowered(Attention(), (torch.randn(2, 5, 32), torch.randn(2, 4, 3, 8)))
    casts = program.graph.find_nodes(op="call_function", target=aten._to_copy.default)
    narrowed = [cast.args[0].name for cast in casts if cast.meta["val"].dtype == torch.bfloat16]
    assert sorted(narrowed) == ["p_out_bias", "p_together_bias", "x"]


class Others(nn.Module):
    """What stays float32: a matrix that forward() writes to, a buffer, vectors, kernels of
    convolutions, a parameter that shares its memory with a vector; and a scaled product.
    """

    written: Tensor
    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("written", torch.zeros(4, 4))
        self.register_buffer("table", torch.ones(4, 4))
        self.kernel = nn.Parameter(torch.randn(4, 2, 3))
        both = torch.randn(20)
        self.shared = nn.Parameter(both[:16].view(4, 4))
        self.vector = nn.Parameter(both[16:])
        self.scaled = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.written.add_(1)
        y = x @ self.table + self.written @ self.shared + self.vector
        y = nn.functional.conv1d(y[None], self.kernel, padding=1, groups=2)[0]
        return torch.addmm(y, x, self.scaled, alpha=2.0)


def test_what_stays_float32() -> None:
    torch.manual_seed(0)
    module = Others()
    x = torch.randn(4, 4)
    with torch.no_grad():
        expected = copy.deepcopy(module)(x)
    program = lowered(module, (x,))
    dtypes = {name: tensor.dtype for name, tensor in program.state_dict.items()}
    assert dtypes.pop("scaled") == torch.bfloat16
    assert set(dtypes.values()) == {torch.float32}
    # It has a factor: the matrix is widened, and the product is a float32 one.
    (product,) = program.graph.find_nodes(op="call_function", target=aten.addmm.default)
    assert {operand.meta["val"].dtype for operand in product.all_input_nodes} == {torch.float32}
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x), expected, rtol=0.02, atol=0.02)


class Quantized(nn.Module):
    """A product with 4-bit and one with 8-bit weights; others read the last scales as well."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("four", torch.randint(0, 256, (32, 32), dtype=torch.uint8))
        self.register_buffer("pairs", torch.rand(2, 32, 2) / 8)
        self.register_buffer("eight", torch.randint(-128, 128, (16, 32), dtype=torch.int8))
        self.scales = nn.Parameter(torch.rand(16) / 64)
        self.register_buffer("last", torch.randint(-128, 128, (16, 16), dtype=torch.int8))
        self.register_buffer("read", torch.rand(16) / 64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = aten._weight_int4pack_mm_for_cpu(x, self.four, 32, self.pairs)
        y = aten._weight_int8pack_mm(y.relu(), self.eight, self.scales)
        return y, aten._weight_int8pack_mm(y, self.last, self.read) + self.read


def test_products_with_quantized_weights_take_bfloat16() -> None:
    torch.manual_seed(0)
    module = Quantized()
    program = lowered(module, (torch.randn(5, 64),), ({0: Dim("rows", min=2, max=8)},))
    dtypes = {name: tensor.dtype for name, tensor in program.state_dict.items()}
    narrow = {name for name, dtype in dtypes.items() if dtype == torch.bfloat16}
    assert narrow == {"pairs", "scales"}  # the last scales are read for something else as well
    taken = [
        node.args[0].meta["val"].dtype
        for target in (
            aten._weight_int4pack_mm_for_cpu.default,
            aten._weight_int8pack_mm.default,
        )
        for node in program.graph.find_nodes(op="call_function", target=target)
    ]
    assert taken == [torch.bfloat16, torch.bfloat16, torch.float32]
    results = program.graph.output_node().args[0]
    assert [result.meta["val"].dtype for result in results] == [torch.float32] * 2
    program.validate()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("rows", [2, 7])
def test_results_of_quantized_weights_are_those_of_rounded_scales(rows: int) -> None:
    torch.manual_seed(0)
    module = Quantized()
    program = lowered(module, (torch.randn(5, 64),), ({0: Dim("rows", min=2, max=8)},))
    x = torch.randn(rows, 64)
    for g, e in zip(program.module()(x), module(x)):
        error = (g - e).abs().max() / e.abs().max()
        assert 1e-4 < error < 2e-2


class SharedScales(nn.Module):
    """Scales that a call writes, and scales that are part of a larger tensor."""

    first: Tensor
    second: Tensor
    written: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (16, 16), dtype=torch.int8))
        both = torch.rand(32) / 64
        self.register_buffer("first", both[:16])
        self.register_buffer("second", both[16:])
        self.register_buffer("written", torch.rand(16) / 64)

    def forward(self, x: Tensor) -> Tensor:
        for scales in (self.first, self.second, self.written):
            x = aten._weight_int8pack_mm(x, self.weight, scales)
        self.written.mul_(2)
        return x


def test_scales_that_share_memory_or_are_written_stay_float32() -> None:
    program = lowered(SharedScales(), (torch.randn(4, 16),))
    dtypes = {name: tensor.dtype for name, tensor in program.state_dict.items()}
    assert {dtypes[name] for name in ("first", "second", "written")} == {torch.float32}


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.cond(
            x.sum() > 0, lambda x, w: x @ w, lambda x, w: x - w, (x, self.weight)
        )
        return result


def test_branches_get_the_widened_matrix() -> None:
    torch.manual_seed(0)
    module = Branches()
    x = torch.ones(4, 4)
    program = lowered(module, (x,))
    assert program.state_dict["weight"].dtype == torch.bfloat16
    for sign in (1, -1):
        torch.testing.assert_close(
            program.module()(sign * x), module(sign * x), rtol=0.02, atol=0.02
        )


def test_float32_changes_nothing(everything: Everything) -> None:
    with torch.no_grad():
        program = torch.export.export(everything, (torch.zeros(3, 7, dtype=torch.int64),))
    before = targets(program)
    precision.lower(program, "float32")
    assert targets(program) == before
    assert {t.dtype for t in program.state_dict.values()} == {torch.float32}


class Convolutions(nn.Module):
    """Convolutions whose weights become bfloat16, and others."""

    def __init__(self) -> None:
        super().__init__()
        self.few = nn.Conv2d(3, 32, 3, padding=1)
        self.two = nn.Conv2d(2, 3, 1)
        self.wide = nn.Conv2d(32, 32, 3, 2, padding=1)
        self.same = nn.Conv2d(32, 32, 3, padding="same", bias=False)
        self.groups = nn.Conv2d(32, 32, 1, groups=2)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.small_groups = nn.Conv2d(32, 32, 1, groups=4)
        self.up = nn.ConvTranspose2d(32, 32, 2, 2)
        self.up_groups = nn.ConvTranspose2d(32, 16, 3, groups=2)
        self.up_small_groups = nn.ConvTranspose2d(16, 32, 1, groups=2)
        self.read = nn.Conv2d(32, 16, 1)
        self.line = nn.Conv1d(16, 8, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.same(self.wide(self.few(self.two(x)).relu()))
        y = self.up(self.small_groups(self.depthwise(self.groups(y))).relu())
        y = self.up_small_groups(self.up_groups(y.relu()).relu())
        y = self.read(y) * self.read.weight.sum()
        return y, self.line(y.flatten(2))


def test_kernels_that_only_convolutions_read_become_bfloat16() -> None:
    torch.manual_seed(0)
    module = Convolutions()
    program = lowered(module, (torch.randn(2, 2, 12, 10),), ({0: Dim("batch", max=9)},))
    dtypes = {name: tensor.dtype for name, tensor in program.state_dict.items()}
    narrow = {name for name, dtype in dtypes.items() if dtype == torch.bfloat16}
    convolutions = ("few", "wide", "same", "groups", "up", "up_groups", "line")
    assert narrow == {f"{name}.weight" for name in convolutions}
    for node in program.graph.nodes:
        if "conv" in str(node.target):
            taken = {operand.meta["val"].dtype for operand in node.all_input_nodes}
            assert taken == {node.meta["val"].dtype}
    # What another convolution reads at once is not widened in between.
    first, second = program.graph.find_nodes(op="call_function", target=aten.conv2d.default)[2:4]
    (same,) = program.graph.find_nodes(op="call_function", target=aten.conv2d.padding)
    assert same.args[0] is first
    assert second.args[0] is same
    (user,) = second.users
    assert user.meta["val"].dtype == torch.float32
    x = torch.randn(3, 2, 12, 10)
    with torch.no_grad():
        for got, wanted in zip(program.module()(x), module(x), strict=True):
            assert got.dtype == torch.float32
            torch.testing.assert_close(got, wanted, rtol=0.03, atol=0.03)
