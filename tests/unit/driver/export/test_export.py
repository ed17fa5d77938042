"""Exporting small modules: what the manifest says, and that the frozen program computes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tests.unit.driver.harness import Export, codegen

ENCODER = """
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(50, 8)
            self.norm = torch.nn.LayerNorm(8)

        def forward(self, tokens, mask, *, scale=2.0):
            x = self.norm(self.table(tokens)) * scale
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    build = Encoder
"""
ENCODER_INPUTS = {"tokens": "int64[batch, seq] in 0..49", "mask": "float32[batch, 1, seq]"}
ENCODER_DIMS = {"batch": "1..64", "half": "1..256", "seq": "2*half"}


def test_manifest(export: Export) -> None:
    manifest = export(ENCODER, ENCODER_INPUTS, ENCODER_DIMS).manifest
    assert (manifest.label, manifest.name, manifest.strict) == ("//pkg:m", "m", False)
    assert manifest.torch_version == torch.__version__
    assert [(d.name, d.min, d.max, str(d.alias)) for d in manifest.dims] == [
        ("batch", 1, 64, "None"),
        ("half", 1, 256, "None"),
        ("seq", 2, 512, "2*half"),
    ]
    tokens, mask = manifest.inputs
    assert (tokens.name, tokens.path, tokens.dtype) == ("tokens", "tokens", "int64")
    assert [str(e) for e in tokens.shape] == ["batch", "2*half"]
    assert [str(s) for s in tokens.stride] == ["2*half", "1"] and tokens.values == (0, 49)
    assert [str(e) for e in mask.shape] == ["batch", "1", "2*half"] and not mask.mutated
    (output,) = manifest.outputs
    assert (output.name, output.dtype, tuple(map(str, output.shape))) == (
        "output",
        "float32",
        ("batch", "2*half", "8"),
    )
    assert [c.name for c in manifest.constants] == ["table.weight", "norm.weight", "norm.bias"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("batch", "seq"), [(1, 2), (1, 512), (64, 2), (3, 10)])
def test_program_computes_what_eager_does(
    export: Export, strict: bool, batch: int, seq: int
) -> None:
    result = export(ENCODER, ENCODER_INPUTS, ENCODER_DIMS, strict=strict)
    assert result.manifest.strict is strict
    program = result.program()
    tokens = torch.randint(0, 50, (batch, seq))
    mask = torch.randn(batch, 1, seq)
    weights = program.state_dict
    x = torch.nn.functional.layer_norm(
        weights["table.weight"][tokens], (8,), weights["norm.weight"], weights["norm.bias"]
    )
    x = x * 2
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    # Stock loading flattens the arguments; positions are the manifest's order.
    actual = torch.utils._pytree.tree_leaves(program.module(check_guards=False)(tokens, mask))
    torch.testing.assert_close(actual[0], expected)


def test_outputs_are_byte_identical(export: Export) -> None:
    first = export(ENCODER, ENCODER_INPUTS, ENCODER_DIMS)
    second = export(ENCODER, ENCODER_INPUTS, ENCODER_DIMS)
    for name in ("graph", "weights", "manifest_path"):
        one, two = getattr(first, name), getattr(second, name)
        assert one != two and one.read_bytes() == two.read_bytes()
    assert str(first.graph.parent).encode() not in first.graph.read_bytes()
    assert b"aoti_" not in first.graph.read_bytes()


def test_keywords_structures_and_mutation(export: Export) -> None:
    result = export(
        """
        import typing
        import torch

        class Result(typing.NamedTuple):
            logits: torch.Tensor
            cache: list

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(1))

            def forward(self, x, cache, unused=None, *, state, **kwargs):
                self.count.add_(1)
                cache[1].add_(x)
                y = x + cache[0] + state["h"] + kwargs["more"][1:]
                return Result(y > 0, [cache[1] * self.count, None, {"class": y}])

        def build():
            return M()
        """,
        {
            "x": "float32[b]",
            "cache[0]": "float32[b]",
            "cache[1]": "float32[b]",
            "state.h": "float32[b]",
            "more": "float32[b + 1]",
        },
        {"b": "2..9"},
    )
    manifest = result.manifest
    assert [(i.name, i.path, i.mutated) for i in manifest.inputs] == [
        ("x", "x", False),
        ("cache_0", "cache[0]", False),
        ("cache_1", "cache[1]", True),
        ("state_h", "state.h", False),
        ("more", "more", False),
    ]
    assert str(manifest.inputs[4].shape[0]) == "b + 1"
    assert [(o.name, o.path, o.dtype) for o in manifest.outputs] == [
        ("logits", "logits", "bool"),
        ("cache_0", "cache[0]", "float32"),
        ("cache_2_class", "cache[2].class", "float32"),
    ]
    assert [(c.name, c.mutated) for c in manifest.constants] == [("count", True)]


def test_unnamed_results(export: Export) -> None:
    result = export(
        """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                return x + 1, (x * 2, x * 3)

        build = M
        """,
        {"x": "bfloat16[n, 4]"},
        {"n": "2..8"},
    )
    names = [(o.name, o.path) for o in result.manifest.outputs]
    assert names == [("output_0", "[0]"), ("output_1_0", "[1][0]"), ("output_1_1", "[1][1]")]


def test_sample_inputs_with_named_dims(export: Export) -> None:
    result = export(
        """
        import torch

        class M(torch.nn.Module):
            def forward(self, x, past, flag=True):
                return x + past[0].sum() if flag else x

        build = M

        def samples(batch=5):
            return (torch.ones(batch, 4), [torch.ones(batch, 2)]), {"flag": False}
        """,
        {"x": "float32[batch, 4]", "past[0]": "float32[batch, 2]"},
        {"batch": "1..8"},
        sample_inputs="pkg.m:samples",
    )
    assert [(i.path, [str(e) for e in i.shape]) for i in result.manifest.inputs] == [
        ("x", ["batch", "4"]),
        ("past[0]", ["batch", "2"]),
    ]


def test_sample_inputs_are_asked_for_the_one_size_of_a_dim(export: Export) -> None:
    result = export(
        """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                return x + 1

        build = M

        def samples(batch=5, n=4):
            return (torch.ones(batch, n),)
        """,
        {"x": "float32[batch, n]"},
        {"batch": "1..1", "n": "2..8"},
        sample_inputs="pkg.m:samples",
    )
    assert [str(size) for size in result.manifest.inputs[0].shape] == ["1", "n"]


def test_inputs_without_a_pattern_are_static(export: Export) -> None:
    result = export(
        """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                return x.t()

        build = M

        def samples():
            return (torch.ones(3, 4).t(),)
        """,
        sample_inputs="pkg.m:samples",
    )
    (x,) = result.manifest.inputs
    assert [str(e) for e in x.shape] == ["4", "3"] and [str(s) for s in x.stride] == ["1", "4"]


TIED = """
    import torch

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(6, 4)
            self.head = torch.nn.Linear(4, 6, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    def build():
        return Tied()

    def load(path):
        module = Tied()
        module.load_state_dict(torch.load(path, weights_only=True))
        return module
"""


def test_weights_by_name(export: Export, tmp_path: Path) -> None:
    table = torch.arange(24.0).reshape(6, 4)
    save_file({"embed.weight": table}, tmp_path / "w.safetensors")
    result = export(
        TIED,
        {"x": "int64[3] in 0..5"},
        weights={"_main/pkg/w.safetensors": tmp_path / "w.safetensors"},
    )
    # The tied tensor is stored once.
    assert [c.name for c in result.manifest.constants] in (["embed.weight"], ["head.weight"])
    state = result.program().state_dict
    assert torch.equal(state["embed.weight"], table) and torch.equal(state["head.weight"], table)


def test_weights_as_an_argument(export: Export, tmp_path: Path) -> None:
    table = torch.arange(24.0).reshape(6, 4)
    torch.save({"embed.weight": table, "head.weight": table}, tmp_path / "w.pt")
    result = export(
        TIED,
        {"x": "int64[3] in 0..5"},
        entry="pkg.m:load",
        weights={"_main/pkg/w.pt": tmp_path / "w.pt"},
    )
    assert torch.equal(result.program().state_dict["head.weight"], table)


def test_random_weights_are_the_same_in_every_run(export: Export) -> None:
    runs = [export(TIED, {"x": "int64[3] in 0..5"}).weights.read_bytes() for _ in range(2)]
    assert runs[0] == runs[1]


def test_decompositions(export: Export) -> None:
    source = """
        import torch

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 4)

            def forward(self, x):
                return torch.nn.functional.gelu(self.linear(x))

        build = M
    """
    inputs = {"x": "float32[2, 4]"}

    def operators(names: list[str]) -> set[str]:
        program = export(source, inputs, decompositions=names).program()
        return {str(n.target) for n in program.graph.nodes if n.op == "call_function"}

    assert operators([]) == {"aten.linear.default", "aten.gelu.default"}
    assert "aten.linear.default" not in operators(["core_aten"])
    assert operators(["aten.linear"]) >= {"aten.gelu.default", "aten.addmm.default"}
    failed = export(source, inputs, decompositions=["aten.liner.default"])
    assert failed.code == 1
    assert 'decompositions: "aten.liner.default" is no operator of PyTorch' in failed.error


def test_decompositions_of_a_program_with_state(export: Export) -> None:
    """They make it functional: its signature has what it writes to."""
    source = """
        import torch

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x, cache):
                self.count.add_(1.0)
                cache.mul_(2)
                return torch.nn.functional.gelu(x) + self.count

        build = M
    """
    inputs = {"x": "float32[2, 4]", "cache": "float32[3]"}
    result = export(source, inputs, decompositions=["core_aten", "+aten.gelu"])
    assert [c.name for c in result.manifest.constants if c.mutated] == ["count"]
    assert [i.name for i in result.manifest.inputs if i.mutated] == ["cache"]
    run = result.program().module()
    x, cache = torch.zeros(2, 4), torch.ones(3)
    assert [float(run(x, cache)[0, 0]) for _ in range(3)] == [1, 2, 3]
    assert cache.tolist() == [8, 8, 8]


def test_tensor_subclasses_and_operators_that_are_made_of_others(export: Export) -> None:
    """As torchao has them: weights of a class of its own, functions registered as operators."""
    source = """
        import torch
        from torch import nn

        library = torch.library.Library("aoti_export_test", "FRAGMENT")
        library.define("dequantize(Tensor x, Tensor scale) -> Tensor")
        library.impl(
            "dequantize", lambda x, scale: x.float() * scale, "CompositeImplicitAutograd"
        )

        class Quantized(torch.Tensor):
            @staticmethod
            def __new__(cls, data, scale):
                return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)

            def __init__(self, data, scale):
                self.numbers, self.scale = data, scale

            def __tensor_flatten__(self):
                return ["numbers", "scale"], None

            @classmethod
            def __tensor_unflatten__(cls, tensors, context, size, stride):
                return cls(tensors["numbers"], tensors["scale"])

            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function is nn.functional.linear:
                    x, weight, bias = args
                    plain = torch.ops.aoti_export_test.dequantize(weight.numbers, weight.scale)
                    return nn.functional.linear(x, plain, bias)
                with torch._C.DisableTorchFunctionSubclass():
                    return function(*args, **(kwargs or {}))

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                if function is torch.ops.aten.detach.default:
                    return cls(args[0].numbers, args[0].scale)
                raise NotImplementedError(str(function))

        def build():
            model = nn.Linear(4, 3)
            weight = Quantized(torch.arange(-6, 6, dtype=torch.int8).view(3, 4), torch.ones(3, 1))
            model.weight = nn.Parameter(weight, requires_grad=False)
            return model
    """
    result = export(source, {"input": "float32[2, 4]"})
    assert result.code == 0, result.error
    ep = result.program()
    assert not [n for n in ep.graph.nodes if "aoti_export_test" in str(n.target)]
    stored = {name: tensor.dtype for name, tensor in ep.state_dict.items()}
    assert stored == {
        "bias": torch.float32,
        "parametrizations.weight.original0": torch.int8,
        "parametrizations.weight.original1": torch.float32,
    }
    x = torch.randn(2, 4)
    expected = torch.nn.functional.linear(
        x, torch.arange(-6, 6).view(3, 4).float(), ep.state_dict["bias"]
    )
    torch.testing.assert_close(ep.module()(x), expected)


def test_parameters_of_dtypes_that_no_weights_file_has(export: Export) -> None:
    source = """
        import torch
        from torch import nn

        class M(nn.Module):
            def __init__(self):
                super().__init__()
                f8 = torch.tensor([0.5, -448.0, 1.25]).to(torch.float8_e4m3fn)
                self.f8 = nn.Parameter(f8, requires_grad=False)
                self.register_buffer("u16", torch.tensor([1, 40000, 65535], dtype=torch.uint16))
                self.c = nn.Parameter(torch.tensor([1j, 2 + 3j, -1 / 3], dtype=torch.complex128))

            def forward(self, x):
                return x * self.f8.float(), x * self.u16.float(), (x * self.c).abs()

        build = M
    """
    result = export(source, {"x": "float32[2, 3]"})
    assert result.code == 0, result.error
    ep = result.program()
    stored = {name: tensor.dtype for name, tensor in ep.state_dict.items()}
    assert stored == {
        "parametrizations.f8.original0": torch.uint8,
        "parametrizations.u16.original0": torch.int16,
        "parametrizations.c.original0": torch.float64,
    }
    x = torch.randn(2, 3)
    expected = (
        x * torch.tensor([0.5, -448.0, 1.25]),
        x * torch.tensor([1.0, 40000.0, 65535.0]),
        (x * torch.tensor([1j, 2 + 3j, -1 / 3], dtype=torch.complex128)).abs(),
    )
    for one, other in zip(ep.module()(x), expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", ["N", "S", "E", "lambda_"])
def test_dims_may_have_names_that_sympy_knows(export: Export, name: str) -> None:
    source = """
        import torch

        class M(torch.nn.Module):
            def forward(self, x):
                return x[1:] * 2

        build = M
    """
    result = export(source, {"x": f"float32[2*{name} + 1]"}, {name: "2..9"})
    assert str(result.manifest.outputs[0].shape[0]) == f"2*{name}"


def test_containers_of_other_libraries(export: Export) -> None:
    """Classes that torch can flatten but has no name for: as libraries register theirs."""
    result = export(
        """
        import collections
        import torch
        from torch.utils import _pytree as pytree

        class ModelOutput(collections.OrderedDict):
            pass

        pytree.register_pytree_node(
            ModelOutput,
            lambda d: (list(d.values()), list(d)),
            lambda values, names: ModelOutput(zip(names, values)),
        )

        class M(torch.nn.Module):
            def forward(self, input_ids=None, attention_mask=None, labels=None, **kwargs):
                return ModelOutput(logits=input_ids * attention_mask, past=(input_ids + 1, None))

        build = M
        """,
        {"input_ids": "int64[b, s]", "attention_mask": "int64[b, s]"},
        {"b": "1..4", "s": "1..16"},
    )
    assert [o.name for o in result.manifest.outputs] == ["logits", "past_0"]
    assert result.program() is not None


LINES = """
    import torch
    from pkg import blocks

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = blocks.Block()

        def forward(self, tokens, x):
            best = torch.topk(x, 2)[0]  # the best
            return self.block(tokens), best

    build = Model
"""
BLOCKS = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, tokens):
        return torch.nn.functional.relu(self.table(tokens))
"""


def test_locations(export: Export, tmp_path: Path) -> None:
    blocks = tmp_path / "blocks.py"
    blocks.write_text(BLOCKS, encoding="utf-8")
    inputs = {"tokens": "int64[batch]", "x": "float32[batch, 5]"}
    result = export(LINES, inputs, {"batch": "1..9"}, extra={"_main/pkg/blocks.py": blocks})
    assert result.code == 0, result.error
    text = result.locations.read_text(encoding="utf-8")
    table = json.loads(text)
    assert table["topk"] == {
        "file": "pkg/m.py",
        "line": 11,
        "code": "best = torch.topk(x, 2)[0]  # the best",
        "module": "",
    }
    line = {"file": "pkg/blocks.py", "line": 10, "module": "block"}
    code = "return torch.nn.functional.relu(self.table(tokens))"
    assert table["relu"] == {**line, "code": code}
    assert table["embedding"] == {**line, "code": code, "module": "block.table"}
    assert str(tmp_path) not in text and "site-packages" not in text
    # A comment more changes the lines, and nothing else.
    other = export(
        "\n    # more" + LINES, inputs, {"batch": "1..9"}, extra={"_main/pkg/blocks.py": blocks}
    )
    assert json.loads(other.locations.read_text(encoding="utf-8"))["topk"]["line"] == 12
    assert other.graph.read_bytes() == result.graph.read_bytes()


def test_values_of_an_index_are_those_of_its_table(export: Export, tmp_path: Path) -> None:
    blocks = tmp_path / "blocks.py"
    blocks.write_text(BLOCKS, encoding="utf-8")
    for given, expected in ((" in 3..9", (3, 9)), ("", (0, 9))):
        inputs = {"tokens": f"int64[batch]{given}", "x": "float32[batch, 5]"}
        result = export(LINES, inputs, {"batch": "1..9"}, extra={"_main/pkg/blocks.py": blocks})
        tokens, x = result.manifest.inputs
        assert tokens.values == expected and x.values is None


def test_slices_that_end_where_data_says(export: Export) -> None:
    source = """
        import torch

        class M(torch.nn.Module):
            def forward(self, x, n):
                return x[:n.item()] * 2

        build = M
        """
    wrapper = codegen(export(source, {"x": "float32[10, 4]", "n": "int64[] in 1..9"}))
    assert "None" not in wrapper  # as Inductor writes it, which is no C++


def test_data_of_tensors(export: Export) -> None:
    source = """
        import torch

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):
                self.calls.data.add_(1)
                best = x.max(1).indices.data.view(-1)
                return best * self.calls.data

        build = M
        """
    result = export(source, {"x": "float32[batch, 4]"}, {"batch": "1..8"})
    program = result.program().module(check_guards=False)
    x = torch.rand(3, 4)
    for call in (1, 2):
        (actual,) = torch.utils._pytree.tree_leaves(program(x))
        torch.testing.assert_close(actual, x.max(1).indices * torch.tensor([float(call)]))


TRANSFORMER = """
    import torch

    class Text(torch.nn.Module):
        def __init__(self, kind, first):
            super().__init__()
            layer = getattr(torch.nn, f"Transformer{kind}Layer")(
                8, 2, 16, batch_first=True, norm_first=first
            )
            self.layers = getattr(torch.nn, f"Transformer{kind}")(layer, 2)
            self.kind = kind
            self.register_buffer("mask", torch.triu(torch.full((5, 5), -torch.inf), 1))

        def forward(self, x):
            if self.kind == "Decoder":
                return self.layers(x, x.flip(1), tgt_mask=self.mask)
            return self.layers(x, mask=self.mask)

    def build(kind, first):
        return lambda: Text(kind, first).eval()

    encoder, encoder_first = build("Encoder", False), build("Encoder", True)
    decoder, decoder_first = build("Decoder", False), build("Decoder", True)
"""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("model", ["encoder", "encoder_first", "decoder", "decoder_first"])
def test_masks_of_transformer_layers(export: Export, model: str, strict: bool) -> None:
    """The export itself compares the results with those of forward()."""
    inputs, dims = {"x": "float32[batch, 5, 8]"}, {"batch": "1..8"}
    result = export(TRANSFORMER, inputs, dims, entry_point=f"pkg.m:{model}", strict=strict)
    assert result.code == 0, result.error


CACHE = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, x, cache, mask):
            keys = torch.cat([cache, x], 1)
            scores = x @ keys.transpose(1, 2) + mask[:, None]
            return scores.softmax(-1) @ keys, keys

    class Apart(torch.nn.Module):  # does not relate the mask to the other inputs
        def forward(self, x, cache, mask):
            return x.sum() + cache.sum(), 2 * mask
"""
CACHE_INPUTS = {
    "mask": "float32[1, past + seq]",
    "x": "float32[1, seq, 4]",
    "cache": "float32[1, past, 4]",
}
CACHE_DIMS = {"past": "0..1000", "seq": "1..64"}


@pytest.mark.parametrize(
    ("entry_point", "shapes"),
    [
        ("Attention", ["float32[1, seq, 4]", "float32[1, past + seq, 4]"]),
        ("Apart", ["float32[]", "float32[1, past + seq]"]),
    ],
)
def test_a_size_is_a_sum_of_dims(export: Export, entry_point: str, shapes: list[str]) -> None:
    result = export(CACHE, CACHE_INPUTS, CACHE_DIMS, entry_point=f"pkg.m:{entry_point}")
    manifest = result.manifest
    (mask,) = [i for i in manifest.inputs if i.name == "mask"]
    assert [str(size) for size in mask.shape] == ["1", "past + seq"]
    assert [str(size) for size in mask.stride] == ["past + seq", "1"]
    assert [f"{o.dtype}[{', '.join(map(str, o.shape))}]" for o in manifest.outputs] == shapes
    assert not manifest.guards
    module = result.program().module(check_guards=False)
    for past, seq in ((0, 1), (1, 1), (0, 64), (1000, 1), (9, 3)):
        tensors = {
            "x": torch.randn(1, seq, 4),
            "cache": torch.randn(1, past, 4),
            "mask": torch.randn(1, past + seq),
        }
        actual = module(*(tensors[i.name] for i in manifest.inputs))
        x, cache, given = tensors.values()
        keys = torch.cat([cache, x], 1)
        expected = [((x @ keys.mT + given[:, None]).softmax(-1)) @ keys, keys]
        if entry_point == "Apart":
            expected = [x.sum() + cache.sum(), 2 * given]
        torch.testing.assert_close(torch.utils._pytree.tree_leaves(actual), expected)
