"""The frozen program's files: they restore the program, and hold nothing about the host."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.program import aliasing, graph_file, loading, schema_reader, weights_file
from safetensors.torch import load_file
from torch import Tensor, nn
from torch._export.serde import schema, serialize
from torch.export import Dim, ExportedProgram

from tests.unit.driver.inductor import harness, models


def _odd() -> tuple[nn.Module, ExportedProgram]:
    module, args, kwargs, shapes = models.odd()
    copy, *_ = models.odd()
    return copy, torch.export.export(module, args, kwargs, dynamic_shapes=shapes)


def test_a_graph_with_an_unknown_operator(tmp_path: Path) -> None:
    harness.freeze(tmp_path, nn.ReLU(), (torch.randn(3),))
    graph = tmp_path / "graph.json"
    text = graph.read_text(encoding="utf-8")
    graph.write_text(text.replace("torch.ops.aten.relu.default", "torch.ops.lib.relu.default"))
    with pytest.raises(DriverError) as raised:
        loading.load_program(graph)
    assert str(raised.value) == (
        'graph.json: the graph can\'t be loaded: it calls the operator "lib.relu.default", '
        "which is not PyTorch's own. Compiled code can't call it: write the model with PyTorch's "
        "operators, or give the operator to custom_ops, and export it again."
    )


def test_round_trip(tmp_path: Path) -> None:
    eager, ep = _odd()
    graph_file.save_graph(ep, tmp_path / "graph.json")
    weights_file.write_weights(tmp_path / "weights.safetensors", graph_file.stored_tensors(ep))
    loaded = loading.load_program(
        tmp_path / "graph.json", None, weights_file.read_weights(tmp_path / "weights.safetensors")
    )
    assert loaded.range_constraints.keys() == ep.range_constraints.keys()
    assert {k: t.stride() for k, t in loaded.state_dict.items()} == {
        k: t.stride() for k, t in ep.state_dict.items()
    }
    assert loaded.state_dict["left"].data_ptr() + 8 == loaded.state_dict["right"].data_ptr()
    module = loaded.module()
    for n in (2, 6, 16):
        x = torch.randn(n, 4)
        torch.testing.assert_close(module(x, unused=None), eager(x))
    with pytest.raises(AssertionError, match=r"size\(\)\[0\] <= 16"):
        module(torch.randn(18, 4), unused=None)


def test_graph_holds_no_place(tmp_path: Path) -> None:
    _, ep = _odd()
    graph_file.save_graph(ep, tmp_path / "graph.json")
    text = (tmp_path / "graph.json").read_text(encoding="utf-8")
    assert "stack_trace" in json.dumps(
        [n.meta.get("stack_trace") and "stack_trace" for n in ep.graph.nodes]
    )
    for word in ("stack_trace", "site-packages", str(Path(__file__).parent), ".py"):
        assert word not in text


def test_constants_say_what_is_written() -> None:
    _, ep = _odd()
    constants = {c.name: c for c in graph_file.constants(ep)}
    assert [c.name for c in constants.values() if c.mutated] == ["count"]
    assert constants["first.weight"].kind == "parameter" and "second.weight" not in constants
    assert constants["table"].kind == "buffer" and constants["plain"].kind == "constant"
    assert constants["left"].shape == (6,)  # both views' memory, and no more
    assert constants["images"].shape == (2, 3, 3, 4)  # as it lies in memory
    assert {n: tuple(t.shape) for n, t in graph_file.stored_tensors(ep).items()} == {
        n: c.shape for n, c in constants.items()
    }


def test_written_inputs() -> None:
    module, args, kwargs, shapes = models.cached()
    ep = torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
    assert aliasing.mutated_inputs(ep) == {"cache"}


def test_written_through_a_reshape() -> None:
    class Writes(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            x.reshape(-1)[0].fill_(1.0)  # reshape: a view here, which its schema doesn't say
            (y * 2).reshape(-1).add_(1)
            return x + y

    ep = torch.export.export(Writes(), (torch.zeros(2, 3), torch.zeros(2, 3)))
    assert aliasing.mutated_inputs(ep) == {"x"}


def test_without_weights_it_costs_no_memory(tmp_path: Path) -> None:
    class Large(nn.Module):
        table: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.empty(1 << 28, dtype=torch.float32))  # 1 GiB

        def forward(self, x: Tensor) -> Tensor:
            return self.table[x]

    ep = torch.export.export(Large(), (torch.arange(3),))
    graph_file.save_graph(ep, tmp_path / "graph.json")
    before = _resident()
    loaded = loading.load_program(tmp_path / "graph.json")
    assert loaded.state_dict["table"].numel() == 1 << 28
    assert _resident() - before < 256 << 20
    assert loaded.state_dict["table"][12345].item() == 0.0


def test_weights_file(tmp_path: Path) -> None:
    tensors = {
        "small": torch.tensor([True]),
        "large": torch.randn(16, 3),
        "empty": torch.empty(0, 2),
        "wide": torch.randn(3, dtype=torch.float64),
        "short": torch.randn(5).bfloat16(),
        "turned": torch.randn(4, 8).t(),
    }
    path = tmp_path / "w.safetensors"
    weights_file.write_weights(path, tensors)
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    header = json.loads(path.read_bytes()[8 : 8 + length])
    assert (8 + length) % 64 == 0
    for name, entry in header.items():
        begin = entry["data_offsets"][0]
        assert begin % tensors[name].element_size() == 0
        if tensors[name].nbytes % 64 == 0:
            assert begin % 64 == 0
    for read in (load_file(path), weights_file.read_weights(path)):
        assert {n: torch.equal(t, tensors[n]) for n, t in read.items()} == dict.fromkeys(
            tensors, True
        )
    storages = [t.untyped_storage().data_ptr() for t in weights_file.read_weights(path).values()]
    assert len(set(storages)) >= len(tensors) - 1


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, struct.pack("<Q", 4) + b"{{{{"])
def test_not_a_weights_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(DriverError, match=r"w\.safetensors: not a safetensors file"):
        weights_file.read_weights(path)


def test_wrong_weights(tmp_path: Path) -> None:
    _, ep = _odd()
    graph_file.save_graph(ep, tmp_path / "graph.json")
    weights = graph_file.stored_tensors(ep)
    weights["table"] = torch.zeros(5)
    with pytest.raises(DriverError, match=r"'table' is float32\[5\], the graph needs float32\[4\]"):
        loading.load_program(tmp_path / "graph.json", None, weights)
    del weights["table"]
    with pytest.raises(DriverError, match="the weights file has no tensor 'table'"):
        loading.load_program(tmp_path / "graph.json", None, weights)


def test_written_buffer_that_overlaps_another() -> None:
    class Overlap(nn.Module):
        a: Tensor
        b: Tensor

        def __init__(self) -> None:
            super().__init__()
            whole = torch.zeros(4)
            self.register_buffer("a", whole[:3])
            self.register_buffer("b", whole[1:])

        def forward(self, x: Tensor) -> Tensor:
            self.a.reshape(-1).add_(1)
            return x + self.b

    ep = torch.export.export(Overlap(), (torch.zeros(3),))
    with pytest.raises(DriverError, match="shares its memory with another one"):
        aliasing.mutated_inputs(ep)


def test_unsupported_dtype() -> None:
    class Wide(nn.Module):
        w: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("w", torch.zeros(2, dtype=torch.complex128))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.w.real

    ep = torch.export.export(Wide(), (torch.zeros(2),))
    with pytest.raises(DriverError, match="w: dtype complex128 is not supported"):
        graph_file.stored_tensors(ep)


def test_derived_dims_keep_their_hint(tmp_path: Path) -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    half = Dim("half", min=2, max=8)
    ep = torch.export.export(Doubled(), (torch.zeros(6),), dynamic_shapes={"x": {0: 2 * half}})
    graph_file.save_graph(ep, tmp_path / "graph.json")
    loaded = loading.load_program(tmp_path / "graph.json", flat=True)
    (node,) = loaded.graph.find_nodes(op="placeholder")
    size = node.meta["val"].shape[0]
    hints = size.node.shape_env.backed_var_to_val
    assert {int(hints[s]) for s in size.node.expr.free_symbols} == {3}


def test_control_flow_where_inputs_share_a_dim(tmp_path: Path) -> None:
    class Branch(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            picked: Tensor = torch.cond(x.sum() > 0, torch.add, torch.sub, (x, y))
            return picked

    n = Dim("n", min=2, max=8)
    args = (torch.randn(3), torch.randn(3))
    harness.freeze(tmp_path, Branch(), args, None, ({0: n}, {0: n}))
    loaded = loading.load_program(tmp_path / "graph.json", flat=True)
    # Makes the program functional, which calls it.
    assert aliasing.mutated_inputs(loaded) == set()


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def test_named_results_become_tuples(tmp_path: Path) -> None:
    class Best(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            return {"best": x.topk(2), "all": [x.sort(), x + 1]}

    x = torch.randn(3, 5)
    ep = harness.freeze(tmp_path, Best(), (x,))
    weights = weights_file.read_weights(tmp_path / "weights.safetensors")
    loaded = loading.load_program(tmp_path / "graph.json", None, weights)
    result = loaded.module()(x)
    assert type(result["best"]) is tuple
    torch.testing.assert_close(tuple(result["best"]), tuple(x.topk(2)))
    torch.testing.assert_close(result["all"][0][1], x.sort().indices)
    # The program that was given is as before.
    assert type(ep.module()(x)["best"]) is torch.return_types.topk


def test_the_reader_of_programs_agrees_with_torchs(tmp_path: Path) -> None:
    _, ep = _odd()
    graph_file.save_graph(ep, tmp_path / "graph.json")
    program = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))["program"]
    program["of_a_later_torch"] = 1
    serde: Any = serialize
    expected = serde._dict_to_dataclass(schema.ExportedProgram, program)
    read = schema_reader.read_program(program)
    assert serde._dataclass_to_dict(read) == serde._dataclass_to_dict(expected)
    assert type(read.graph_module.graph.nodes[0].inputs[0].arg) is schema.Argument
