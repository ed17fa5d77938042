"""What is fused into a convolution, what is not, and that the program computes the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.export import precision
from aoti_driver.inductor import convolution_fusion
from aoti_driver.inductor.convolution_epilogue import OPERATOR, Activation
from aoti_driver.program.graph_nodes import value_of
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional

from tests.unit.driver.inductor import harness, models


class Net(nn.Module):
    """Convolutions of 8 channels, batch normalizations, and a function of them."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.first = nn.Conv2d(8, 8, 3, **({"padding": 1} | options))
        self.second = nn.Conv2d(8, 8, 1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.bare = nn.BatchNorm2d(8, affine=False)
        for norm in (self.norm, self.bare):
            nn.init.normal_(norm.running_mean)  # type: ignore[arg-type]
            nn.init.uniform_(norm.running_var, 0.5, 2)  # type: ignore[arg-type]
        for values in (self.norm.weight, self.norm.bias):
            nn.init.normal_(values)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def fused(net: nn.Module, x: Tensor) -> list[tuple[Any, ...]]:
    """The arguments of the operators in the graph, which computes the same as the net."""
    net.eval()
    with torch.no_grad():
        program = torch.export.export(net, (x.clone(),), dynamic_shapes=({0: Dim.AUTO},))
        module: Any = program.module(check_guards=False)
        convolution_fusion.fuse(module)
        given = x.clone()
        torch.testing.assert_close(module(given), net(x), rtol=1e-5, atol=1e-5)
    return [node.args for node in module.graph.find_nodes(op="call_function", target=OPERATOR)]


def image(*sizes: int) -> Tensor:
    return torch.randn(*(sizes or (3, 8, 9, 10)), generator=torch.Generator().manual_seed(1))


_ACTIVATIONS = {
    "relu": (torch.relu, (Activation.CLAMP, 0.0, float("inf"))),
    "relu_": (torch.relu_, (Activation.CLAMP, 0.0, float("inf"))),
    "relu6": (functional.relu6, (Activation.CLAMP, 0.0, 6.0)),
    "hardtanh": (lambda y: functional.hardtanh(y, -2, 3), (Activation.CLAMP, -2.0, 3.0)),
    "clamp": (lambda y: y.clamp(max=1), (Activation.CLAMP, -float("inf"), 1.0)),
    "silu": (functional.silu, (Activation.SILU, 0.0, 0.0)),
    "hardswish": (functional.hardswish, (Activation.HARDSWISH, 0.0, 0.0)),
    "leaky_relu": (lambda y: functional.leaky_relu(y, 0.2), (Activation.LEAKY_RELU, 0.2, 0.0)),
    "gelu": (functional.gelu, (Activation.GELU, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", _ACTIVATIONS)
def test_activations(name: str) -> None:
    function, (activation, low, high) = _ACTIVATIONS[name]
    (arguments,) = fused(Net(lambda net, x: function(net.norm(net.first(x)))), image())
    assert arguments[2] is not None and arguments[3] is not None
    assert arguments[10:] == (activation, False, low, high, False, False)


# What is around the convolution: how many operators there are, whether the residual is added last.
_SHAPES: dict[str, tuple[Callable[..., Any], int, bool]] = {
    "bare norm": (lambda net, x: net.bare(net.first(x)), 1, False),
    "residual": (lambda net, x: net.norm(net.first(x)) + x, 1, False),
    "residual, then ReLU": (lambda net, x: torch.relu(x + net.norm(net.second(x))), 1, False),
    "SiLU, then residual": (lambda net, x: x + functional.silu(net.first(x)), 1, True),
    "in place": (lambda net, x: torch.relu_(net.norm(net.second(x)).add_(x)), 1, False),
    "two": (lambda net, x: torch.relu(net.second(torch.relu(net.first(x)))), 2, False),
    "twice": (lambda net, x: torch.relu(net.first(torch.relu(net.first(x)))), 2, False),
    "both sides": (lambda net, x: torch.relu(net.first(x) + net.second(x)), 2, False),
}


@pytest.mark.parametrize("name", _SHAPES)
def test_shapes(name: str) -> None:
    function, count, last = _SHAPES[name]
    found = fused(Net(function), image())
    # Of two sums, one is the other's residual, and a convolution alone remains one.
    assert len(found) == (1 if name == "both sides" else count)
    assert found[0][11] is last


def wider(x: Tensor, *around: int, value: float = 0.0) -> Tensor:
    """The first 4 channels, and others."""
    return functional.pad(x[:, :4], around, value=value)


@pytest.mark.parametrize(
    ("function", "channels", "last"),
    [
        (lambda net, x: torch.relu(net.first(x) + wider(x, 0, 0, 0, 0, 0, 4)), 4, False),
        (
            lambda net, x: wider(x, 0, 0, 0, 0, 0, 4, 0, 0) + torch.relu(net.norm(net.first(x))),
            4,
            True,
        ),
        # What adds something else is left.
        (lambda net, x: net.first(x) + wider(x, 0, 0, 0, 0, 1, 3), 8, False),
        (lambda net, x: net.first(x) + wider(x, 0, 0, 0, 0, 0, 4, value=1.0), 8, False),
        (lambda net, x: net.first(x) + wider(x[:, :, 1:], 0, 0, 1, 0, 0, 4), 8, False),
        (lambda net, x: net.first(x) + wider(x[:2], 0, 0, 0, 0, 0, 4, 0, 1), 8, False),
        (
            lambda net, x: net.first(x) + (lambda y: y + y.sum())(wider(x, 0, 0, 0, 0, 0, 4)),
            8,
            False,
        ),
    ],
)
def test_fewer_channels(function: Any, channels: int, last: bool) -> None:
    found = fused(Net(function), image())
    assert [(value_of(args[4]).shape[1], args[11]) for args in found] == [(channels, last)]


def test_read_twice() -> None:
    def function(net: Any, x: Tensor) -> Any:
        more = wider(x, 0, 0, 0, 0, 0, 4)
        return torch.relu(net.first(x) + more), more

    (arguments,) = fused(Net(function), image())
    assert value_of(arguments[4]).shape[1] == 8


@pytest.mark.parametrize(
    ("pads", "options", "before", "after"),
    [
        ([0, 1, 0, 1], {"padding": 0, "stride": 2}, [0, 0], [1, 1]),
        ([1, 2, 3, 0], {"padding": 1}, [4, 2], [1, 3]),
        ([2, 1], {"padding": 0, "dilation": 2}, [0, 2], [0, 1]),
        ([0, 0, 0, 0], {"padding": "same", "kernel_size": 4}, [1, 1], [2, 2]),
        ([0, 0, 1, 0], {"padding": "valid"}, [1, 0], [0, 0]),
    ],
)
def test_padding(
    pads: list[int], options: dict[str, Any], before: list[int], after: list[int]
) -> None:
    net = Net(lambda net, x: net.first(functional.pad(x, pads)))
    net.first = nn.Conv2d(8, 8, **({"kernel_size": 3} | options), groups=4)
    (arguments,) = fused(net, image())
    assert (arguments[6], arguments[7]) == (before, after)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed(dims: int, options: dict[str, int]) -> None:
    net = Net(lambda net, x: torch.relu(net.norm(net.first(x))))
    net.first = getattr(nn, f"ConvTranspose{dims}d")(8, 8, 3, groups=2, **options)
    net.norm = getattr(nn, f"BatchNorm{dims}d")(8)
    (arguments,) = fused(net, image(2, 8, *(5, 6, 7)[:dims]))
    padding, more = options.get("padding", 0), options.get("output_padding", 0)
    assert (arguments[6], arguments[7]) == ([padding] * dims, [padding - more] * dims)
    assert arguments[14] is True


def _written_between(net: Any, x: Tensor) -> Tensor:
    x = x * 1
    y = net.first(x)
    x.add_(1)
    return torch.relu(y) + x


def _written_after_copy(net: Any, x: Tensor) -> Tensor:
    part = x[:, :4] * 1
    more = wider(part, 0, 0, 0, 0, 0, 4)
    part.add_(1)
    return torch.relu(net.first(x) + more)


# What is computed as it is.
_REFUSED: dict[str, Callable[..., Any]] = {
    "alone": lambda net, x: net.first(x),
    "two users": lambda net, x: (lambda y: torch.relu(y) * y)(net.first(x)),
    "padded with ones": lambda net, x: net.first(functional.pad(x, (1, 1), value=1.0)),
    "negative padding": lambda net, x: net.first(functional.pad(x, (-1, 0))),
    "broadcast residual": lambda net, x: net.first(x) + x[:1],
    "a number": lambda net, x: net.first(x) + 1,
    "scaled residual": lambda net, x: torch.add(net.first(x), x, alpha=2),
    "doubled": lambda net, x: (lambda y: y + y)(net.first(x)),
    "written into the other": lambda net, x: (x * 1).add_(net.first(x)),
    "read before it is written": _written_between,
    "clamped by tensors": lambda net, x: net.first(x).clamp(min=x),
    "gelu of tanh": lambda net, x: functional.gelu(net.first(x), approximate="tanh"),
    "transposed, alone": lambda net, x: functional.conv_transpose2d(x, net.second.weight),
    "written after it was copied": _written_after_copy,
    "no batch": lambda net, x: torch.relu(net.first(x[0])),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_refused(name: str) -> None:
    assert fused(Net(_REFUSED[name]), image()) == []


def line(net: Any, x: Tensor) -> Tensor:
    weight = net.first.weight[:, :, 0]
    lines = functional.conv1d(functional.pad(x[:, :, 0], (2, 0)), weight, padding=1)
    return torch.relu(functional.batch_norm(lines, net.norm.running_mean, net.norm.running_var))


def volume(net: Any, x: Tensor) -> Tensor:
    volumes = torch.stack([x, x + 1, x - 1], 2)
    y = functional.pad(volumes, (0, 1, 1, 0, 2, 2))
    return functional.silu(functional.conv3d(y, net.first.weight[:, :, None]))


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (line, [3], [1]),
        (lambda net, x: functional.conv1d(x[:, :, 0], net.second.weight[:, :, 0]), [0], [0]),
        (volume, [2, 1, 0], [2, 0, 1]),
        (
            lambda net, x: functional.conv3d(x[..., None], net.second.weight[..., None]),
            [0] * 3,
            [0] * 3,
        ),
    ],
)
def test_other_dims(function: Any, before: list[int], after: list[int]) -> None:
    (arguments,) = fused(Net(function), image())
    assert (arguments[6], arguments[7]) == (before, after)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_dtypes(dtype: torch.dtype) -> None:
    net = Net(lambda net, x: torch.relu(net.first(x))).to(dtype)
    assert fused(net, image().to(dtype)) == []


class Narrow(nn.Module):
    """Convolutions of bfloat16 with results of float32, as precision = "bfloat16" makes them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.second = nn.Conv2d(32, 32, 1)
        self.third = nn.Conv2d(32, 8, 2, padding="same")
        nn.init.normal_(self.norm.running_mean)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.first(x)))
        y = y + functional.silu(self.second(y))
        return self.third(y)  # type: ignore[no-any-return]


def narrow_program() -> Any:
    with torch.no_grad():
        x = torch.randn(2, 16, 9, 10)
        program = torch.export.export(Narrow().eval(), (x,), dynamic_shapes=({0: Dim.AUTO},))
    precision.lower(program, precision.BFLOAT16)
    return program


def test_bfloat16_that_becomes_float32() -> None:
    program = narrow_program()
    x = torch.randn(3, 16, 9, 10)
    with torch.no_grad():
        expected = program.module(check_guards=False)(x)
        module = program.module(check_guards=False)
        convolution_fusion.fuse(module)
        got = module(x)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, expected, rtol=0.02, atol=0.02)
    first, second = module.graph.find_nodes(op="call_function", target=OPERATOR)
    for node in (first, second):
        assert [value_of(operand).dtype for operand in node.args[:2]] == [torch.bfloat16] * 2
        # Only other convolutions read it, and a sum with the result of one.
        assert value_of(node).dtype == torch.bfloat16 and node.args[15]
    # The norm's factor, and a bias that is rounded as the program says, in float32.
    assert first.args[2] is not None and second.args[2] is None
    assert value_of(second.args[3]).dtype == torch.float32
    assert (first.args[10], second.args[10]) == (Activation.CLAMP, Activation.SILU)
    assert second.args[4] is first
    # More zeros behind than before: libtorch would have to copy the image.
    convolutions = [n for n in module.graph.nodes if n.target == torch.ops.aten.conv2d.padding]
    assert len(convolutions) == 1


def test_statistics_of_the_batch() -> None:
    net = Net(lambda net, x: functional.batch_norm(net.first(x), None, None, training=True))
    assert fused(net, image()) == []


def test_generated_code(tmp_path: Path) -> None:
    harness.freeze(tmp_path, *models.image())
    manifest = harness.generate(tmp_path, "image")
    text = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    assert len(re.findall(r"= aoti_convolution::Run\(", text)) == 5
    # The operator takes the picture as it is given: no loop puts its three channels together.
    assert re.search(r"= aoti_convolution::Run\(arg\d+_1, c_stem_weight,", text)
    # Which function a runtime must have, for which nodes, and the packed weights.
    (shim,) = [s for s in manifest.codegen.shims if s.name == "aoti_torch_cpu_convolution"]
    assert len(shim.nodes) == 5 and shim.dtypes == ("float32->float32",)
    assert {p.source: p.kind for p in manifest.codegen.packed} == {
        "stem.weight": "conv_f32",
        "body.weight": "conv_depthwise_f32",
        "wider.weight": "conv_f32",
        "line.weight": "conv_f32",
        "volume.weight": "conv_f32",
    }
