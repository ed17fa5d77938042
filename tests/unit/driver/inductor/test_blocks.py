"""Blocks that repeat become one function of the generated code, with calls of it."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.inductor import block_calls, block_functions, short_programs
from torch import Tensor, nn
from torch.export import Dim

from tests.unit.driver.inductor import harness

WIDTH, PLACES = 16, 8
# Bytes of the wrapper for one block more: a row of the calls, and four of the table of weights.
LARGEST = 800
LEAST_SAVED = short_programs.LEAST_SAVED


class Block(nn.Module):
    """Reads a cache that all blocks share, each its own part; then a feed-forward network."""

    seen: Tensor

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.keys = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 24, bias=False)
        self.down = nn.Linear(24, WIDTH, bias=False)
        self.activation = getattr(nn.functional, activation)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor, cache: Tensor, layer: int, places: Tensor) -> Tensor:
        h = self.norm(x)
        cache[torch.full((1,), layer), places] = self.keys(h)
        past = cache[layer]
        x = x + torch.relu(h @ past.T) @ past * 0.01
        self.seen += x.mean() * 0.1
        x = x + self.down(self.activation(self.up(x)) * 0.5) + self.seen
        return x


class Decoder(nn.Module):
    cache: Tensor

    def __init__(self, activations: list[str]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(Block, activations))
        self.register_buffer("cache", torch.zeros(len(activations) + 1, PLACES, WIDTH))

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        for layer, block in enumerate(self.layers, 1):
            x = block(x, self.cache, layer, places)
        return x.tanh()


@pytest.fixture(autouse=True)
def _small_blocks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_programs, "LEAST_SAVED", 10)


def _freeze(folder: Path, module: nn.Module) -> None:
    seq = Dim("seq", max=PLACES)
    inputs = torch.randn(3, WIDTH), torch.arange(3)
    harness.freeze(folder, module, inputs, None, ({0: seq}, {0: seq}))


def _decoder(activations: list[str]) -> Decoder:
    torch.manual_seed(0)
    return Decoder(activations).eval()


def _calls(folder: Path) -> list[str]:
    """The blocks that are called, in order."""
    wrapper = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    alone = re.findall(r"= (block_\d)\(this->", wrapper)
    return [*alone, *_merged_calls(folder)]


def _merged_calls(folder: Path) -> list[str]:
    """The calls that are one operator for Inductor."""
    wrapper = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    blocks = [re.findall(r"block_\d", call) for call in re.findall(r"call_blocks<.*", wrapper)]
    return [
        of_run[row[0]] for rows, of_run in zip(_tables(folder), blocks, strict=True) for row in rows
    ]


def _tables(folder: Path) -> list[list[list[int]]]:
    """The rows of the tables of calls: see block_calls.CPP_HELPER."""
    wrapper = (folder / "wrapper.cpp").read_text(encoding="utf-8")
    tables = re.findall(r"_table\[\] = \{\n(.*?)\n    \};", wrapper, re.DOTALL)
    return [
        [[int(number) for number in re.findall(r"\d+", row)] for row in table.splitlines()]
        for table in tables
    ]


def _groups(folder: Path, module: nn.Module) -> list[list[str]]:
    """The modules that compute the same, by the names of their norms' weights."""
    harness.freeze(folder, module, (torch.randn(3, WIDTH), torch.arange(3)))
    program = json.loads((folder / "graph.json").read_text())["program"]
    short = short_programs.Shortened()
    short.shorten(program)
    names: list[list[str]] = [[] for _ in short.groups]
    for node in program["graph_module"]["graph"]["nodes"]:
        if re.match(r"torch.ops.aoti_repeats.(begin|again)", node["target"]):
            group, tensors, _ = (argument["arg"] for argument in node["inputs"])
            (norm,) = (
                tensor["name"]
                for tensor in tensors["as_tensors"]
                if "norm_weight" in tensor["name"]
            )
            names[group["as_int"]].append(norm.removeprefix("p_").removesuffix("_norm_weight"))
    return names


def _compiled(folder: Path, name: str) -> harness.Compiled:
    tables = folder / "tables.cpp"
    tables.write_text(harness.tables_source([name]), encoding="utf-8")
    objects = harness.compile_sources([*harness.sources(folder), tables])
    threads, _ = harness.compile_threads(folder)
    library = ctypes.CDLL(str(harness.link([*objects, threads], folder / f"{name}.so")))
    return harness.Compiled(library, name, folder)


def test_kernels_do_not_grow_with_the_number_of_blocks(tmp_path: Path) -> None:
    manifests = []
    for name, count in (("few", 3), ("many", 9)):
        _freeze(tmp_path / name, _decoder(["silu"] * count))
        manifests.append(harness.generate(tmp_path / name, "decoder"))
        assert _calls(tmp_path / name) == ["block_0"] * count
        assert _merged_calls(tmp_path / name) == ["block_0"] * count
    assert harness.kernels(tmp_path / "few") == harness.kernels(tmp_path / "many")
    few, many = (manifest.codegen for manifest in manifests)
    # Every block's weights are packed, and its nodes are in the records of what is called.
    assert len(few.packed) == 3 * 3
    assert len(many.packed) == 9 * 3
    assert all(packed.only for packed in many.packed)
    nodes = {shim.name: shim.nodes for shim in many.shims}["aoti_torch_cpu_mm_out"]
    assert {"linear_1", "linear_25"} <= {*nodes}


class Stateless(nn.Module):
    """A block without a buffer of its own. What Inductor lowers for one is a node for each."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 24, bias=False)
        self.down = nn.Linear(24, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.down(nn.functional.silu(self.up(self.norm(x))) * 0.5)
        return x


def test_inductor_lowers_no_more_nodes_for_more_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the code, only the tables of calls and of weights grow."""
    from torch._inductor.graph import GraphLowering

    run_node = GraphLowering.run_node
    lowered = 0

    def counted(graph: Any, node: Any) -> Any:
        nonlocal lowered
        lowered += node.op == "call_function"
        return run_node(graph, node)

    monkeypatch.setattr(GraphLowering, "run_node", counted)
    counts, functions, sizes, statements = [], [], [], []
    for count in (4, 12, 20):
        lowered, folder = 0, tmp_path / f"{count}"
        model = nn.Sequential(*(Stateless() for _ in range(count))).eval()
        harness.freeze(folder, model, (torch.randn(3, WIDTH),), None, ({0: Dim("seq", max=9)},))
        harness.generate(folder, "decoder")
        text = (folder / "wrapper.cpp").read_text(encoding="utf-8")
        counts.append(lowered)
        functions.append(len(re.findall(r"RAIIAtenTensorHandle, 1> block_\d\(", text)))
        sizes.append(len(text))
        table = text.partition("inputs_info_[0]")[2].partition("update_constants_map(")[0]
        calls = text.partition("::run_impl(")[2]
        statements.append((table.count(";"), calls.count(";")))
    assert len({*counts}) == 1
    assert functions == [1, 1, 1]
    # Weights and calls are data, not code for each.
    assert len({*statements}) == 1, statements
    few, many = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert few <= 8 * LARGEST
    assert abs(many - few) <= 8 * 16  # numbers of two digits


def test_results(tmp_path: Path) -> None:
    """Two kinds alternate, and one block is like no other."""
    eager = _decoder(["silu", "gelu", "silu", "gelu", "silu", "tanh"])
    _freeze(tmp_path, eager)
    harness.generate(tmp_path, "decoder")
    assert _calls(tmp_path) == ["block_0", "block_1", "block_0", "block_1", "block_0"]
    assert _merged_calls(tmp_path) == _calls(tmp_path)
    compiled = _compiled(tmp_path, "decoder")
    begin = 0
    for count in (3, 1, 2):
        inputs = torch.randn(count, WIDTH), torch.arange(begin, begin + count)
        begin += count
        with torch.no_grad():
            expected = eager(*inputs)
        assert 0.1 < expected.abs().mean() < 0.9  # a tanh() of large numbers hides differences
        torch.testing.assert_close(compiled(*inputs), [expected])


def test_what_differs_stays_apart(tmp_path: Path) -> None:
    decoder = _decoder(["silu"] * 6)
    assert _groups(tmp_path, decoder) == [[f"layers_{i}" for i in range(6)]]
    first: Any = decoder.layers[0]
    first.up, first.down = nn.Linear(WIDTH, 32, bias=False), nn.Linear(32, WIDTH, bias=False)
    second: Any = decoder.layers[1]
    second.norm.eps = 1e-3
    third: Any = decoder.layers[2]
    third.seen = torch.zeros(1, dtype=torch.float64)
    assert _groups(tmp_path, decoder) == [["layers_3", "layers_4", "layers_5"]]


class Pair(nn.Module):
    """Returns two tensors, and reads a size of what it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 24)
        self.down = nn.Linear(24, WIDTH)

    def forward(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.relu(self.up(torch.cat([x, before]))).chunk(2, dim=1)
        x = self.down(torch.cat(h, dim=1))[before.shape[0] :]
        return x / x.shape[0], x.tanh().mul_(0.5)


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Pair() for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        before, kept = x, []
        for layer in self.layers:
            x, before = layer(x, before)
            kept.append(before)
        return (x, *kept[1:])


def test_blocks_with_several_results(tmp_path: Path) -> None:
    """Most of them are results of the program too. The first block reads one tensor twice."""
    eager = Pairs().eval()
    harness.freeze(tmp_path, eager, (torch.randn(3, WIDTH),), None, ({0: Dim("seq", max=9)},))
    harness.generate(tmp_path, "pairs")
    assert _merged_calls(tmp_path) == ["block_0"] * 3
    _check_pairs(tmp_path, eager)


def _check_pairs(folder: Path, eager: Pairs) -> None:
    compiled = _compiled(folder, "pairs")
    for count in (1, 3, 5):
        x = torch.randn(count, WIDTH)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), [*eager(x)])


def _peak_memory() -> int:
    """Bytes since the last call."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert match is not None
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return int(match[1]) * 1024


def test_memory_does_not_grow_with_the_number_of_blocks(tmp_path: Path) -> None:
    """A result is freed when the next block has read it."""
    libc = ctypes.CDLL(None)
    x = torch.randn(100_000, WIDTH)
    peaks = []
    for count in (4, 16):
        folder = tmp_path / f"{count}"
        model = nn.Sequential(*(Stateless() for _ in range(count))).eval()
        harness.freeze(folder, model, (x[:3],), None, ({0: Dim("seq", max=len(x))},))
        harness.generate(folder, "decoder")
        compiled = _compiled(folder, "decoder")
        compiled(x[:3])
        libc.malloc_trim(0)  # what earlier calls freed would be used again
        _peak_memory()
        before = _peak_memory()
        compiled(x)
        peaks.append(_peak_memory() - before)
    few, many = peaks
    assert few > x.nbytes
    assert many - few < 4 * x.nbytes


def test_results_that_nobody_needs_any_more_are_listed(tmp_path: Path) -> None:
    """In each row, the number of results follows after the block and its tensors."""
    _freeze(tmp_path, _decoder(["silu"] * 5))
    harness.generate(tmp_path, "decoder")
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    match = re.search(r"std::array<AtenTensorHandle, (\d+)>& input_handles", wrapper)
    assert match is not None
    (rows,) = _tables(tmp_path)
    after = [row[1 + int(match[1]) :] for row in rows]
    assert after == [[0], [1, 0], [1, 1], [1, 2], [1, 3]]


def test_tables_with_large_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_calls, "_SHORT", 10)
    eager = Pairs().eval()
    harness.freeze(tmp_path, eager, (torch.randn(3, WIDTH),), None, ({0: Dim("seq", max=9)},))
    harness.generate(tmp_path, "pairs")
    assert "uint32_t buf" in (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    _check_pairs(tmp_path, eager)


class Viewing(nn.Module):
    """All blocks read a view of what is computed before them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Pair() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        view = (x @ x.T @ torch.cat([x, -x], 1))[:, WIDTH:]
        for layer in self.layers:
            x, _ = layer(x, view)
        return x


def test_arguments_that_are_views(tmp_path: Path) -> None:
    eager = Viewing().eval()
    harness.freeze(tmp_path, eager, (torch.randn(3, WIDTH),), None, ({0: Dim("seq", max=9)},))
    harness.generate(tmp_path, "viewing")
    wrapper = (tmp_path / "wrapper.cpp").read_text(encoding="utf-8")
    (call,) = re.findall("call_blocks<.*", wrapper)
    assert "reinterpret_tensor_wrapper" in call
    compiled = _compiled(tmp_path, "viewing")
    x = torch.randn(4, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), [eager(x)])


class Enlarging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Conv2d(3, 3, 3, padding=1) for _ in range(4)))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(torch.max_pool2d(torch.tanh(x), 2, padding=1)).relu()
        return x + nn.functional.interpolate(torch.sigmoid(y), size=x.shape[-2:], mode="nearest")


def test_a_block_with_an_operator_of_others(tmp_path: Path) -> None:
    """What it is made of depends on the sizes: it is right for all of them."""
    torch.manual_seed(0)
    eager = nn.Sequential(*(Enlarging() for _ in range(4))).eval()
    harness.freeze(tmp_path, eager, (torch.randn(3, 3, 4, 5),), None, ({0: Dim("n", max=9)},))
    harness.generate(tmp_path, "enlarging")
    assert _calls(tmp_path) == ["block_0"] * 4
    compiled = _compiled(tmp_path, "enlarging")
    x = torch.randn(5, 3, 4, 5)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), [eager(x)])


class Masked(nn.Module):
    """Ends with a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(PLACES, PLACES, 1, bias=False)

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.arange(WIDTH)[None] >= count[:, None]
        return self.convolution(x.masked_fill(hidden[:, None], 0)), count * 2 - count


class Convolutions(nn.Module):
    def __init__(self, count: int, *, norms: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Masked() for _ in range(count))
        self.norms = nn.ModuleDict({f"norm{i}": nn.BatchNorm1d(PLACES) for i in range(count)})
        self.normed = norms

    def forward(self, x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        for layer, norm in zip(self.layers, self.norms.values(), strict=True):
            y, count = layer(x, count)
            x = torch.relu(norm(y) if self.normed else x + y)
        return x, count


@pytest.mark.parametrize("norms", [False, True])
def test_convolutions_before_what_they_are_fused_with(tmp_path: Path, norms: bool) -> None:
    """A residual is added behind a block, as it would else be one operator with a convolution of
    the first block alone. For batch norms, each of which saves a loop, there is no block.
    """
    torch.manual_seed(0)
    folder, module = tmp_path / f"convolutions_{norms}", Convolutions(6, norms=norms).eval()
    inputs = (torch.randn(3, PLACES, WIDTH), torch.tensor([5, 16, 9]))
    harness.freeze(folder, module, inputs, None, ({0: Dim("batch", max=8)},) * 2)
    harness.generate(folder, folder.name)
    assert set(_calls(folder)) == (set() if norms else {"block_0"})
    actual, count = _compiled(folder, folder.name)(*inputs)
    torch.testing.assert_close(actual, module(*inputs)[0], rtol=1e-4, atol=1e-5)
    assert torch.equal(count, inputs[1])


class Many(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.ones(WIDTH)) for _ in range(70))

    def forward(self, x: Tensor) -> Tensor:
        for weight in self.weights:
            x = torch.relu(x) * weight
        return x


def test_more_weights_than_an_operator_has_arguments(tmp_path: Path) -> None:
    """PyTorch allows 64 arguments."""
    harness.freeze(tmp_path, nn.Sequential(Many(), Many()), (torch.randn(3, WIDTH),))
    harness.generate(tmp_path, "many")
    assert _calls(tmp_path) == ["block_0"] * 2


class Branches(Decoder):
    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        x = super().forward(x, places)
        result: Tensor = torch.cond(x.sum() > 0, lambda v: (v * 2).relu() + v, torch.neg, (x,))
        return result


def test_branches_have_names_of_their_own(tmp_path: Path) -> None:
    _freeze(tmp_path, Branches(["silu"] * 3).eval())
    document = json.loads((tmp_path / "graph.json").read_text())
    nodes = document["program"]["graph_module"]["graph"]["nodes"]
    assert "add" in [name for node in nodes for name in short_programs.made(node)]
    assert '"as_graph"' in json.dumps(nodes)
    harness.generate(tmp_path, "branches")
    assert _calls(tmp_path) == ["block_0"] * 3


class Written(nn.Module):
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        for one in self.layers:
            x = torch.relu(one(x)) * before
        self.seen.add_(x.mean())
        return x.tanh()


class Neighbours(nn.Module):
    """A block reads what the one before it wrote, through a view from before all blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Written() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        layers: Any = self.layers
        views = [block.seen.expand(1, 1) for block in layers]
        for layer, block in enumerate(layers):
            x = block(x, views[layer - 1])
        return x


def test_calls_that_share_memory_are_apart(tmp_path: Path) -> None:
    harness.freeze(tmp_path, Neighbours().eval(), (torch.randn(3, WIDTH),))
    harness.generate(tmp_path, "neighbours")
    assert _calls(tmp_path) == ["block_0"] * 3
    assert _merged_calls(tmp_path) == []


def test_few_nodes_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_programs, "LEAST_SAVED", 10_000)
    assert _groups(tmp_path, _decoder(["silu"] * 3)) == []


def test_eight_small_layers_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are not. The layers of MiniLM, which has six, are larger."""
    monkeypatch.setattr(short_programs, "LEAST_SAVED", LEAST_SAVED)
    (layers,) = _groups(tmp_path, _decoder(["silu"] * 8))
    assert len(layers) == 8
    assert _groups(tmp_path, _decoder(["silu"] * 2)) == []


def test_without_functions_if_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _freeze(tmp_path, _decoder(["silu"] * 2))
    harness.generate(tmp_path, "decoder")
    assert _calls(tmp_path) == ["block_0"] * 2
    monkeypatch.setattr(block_functions, "_MEMBERS", re.compile("ConstantHandle"))
    harness.generate(tmp_path, "decoder")
    after = harness.kernels(tmp_path)
    assert _calls(tmp_path) == []
    monkeypatch.setattr(short_programs, "LEAST_SAVED", 10_000)
    harness.generate(tmp_path, "decoder")
    assert harness.kernels(tmp_path) == after
