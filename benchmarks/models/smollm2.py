"""SmolLM2 with 8-bit and 4-bit weights, and as other runtimes take it.

Weights are rounded as they come, without any calibration: what is measured is speed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from models.smollm2 import model as smollm2
from models.smollm2.model import CONTEXT, VOCABULARY, Decoder, Rope

GROUP = 64  # weights that share a scale and a zero; divides 576 and 1,536
PACKED_ROWS = 32
# Case -> the tokens that it has seen before, and those that it is called with.
CASES = {
    "start": (0, 8),
    "prefill": (0, 128),
    "decode": (128, 1),
    "prefill1024": (0, 1024),
    "decode1500": (1500, 1),
}


class Linear8(nn.Module):
    """A linear layer with one scale per output: |weight| / scale <= 127."""

    weight: Tensor
    scales: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scales = weight.abs().amax(1).clamp(min=1e-8) / 127
        self.register_buffer("weight", (weight / scales[:, None]).round().to(torch.int8))
        self.register_buffer("scales", scales)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.aten._weight_int8pack_mm(x, self.weight, self.scales)
        return y

    def rows(self, index: Tensor) -> Tensor:
        """Some rows of the weight, as an embedding has them."""
        return self.weight[index].float() * self.scales[index, None]


def pack_int4(values: Tensor) -> Tensor:
    """int32[outputs, inputs] of 0..15, packed as aten::_convert_weight_to_int4pack_for_cpu does.

    That operator's layout depends on the CPU that runs it. This is the one of AVX2: of 32 rows, row
    i is the low and row i + 16 the high half of a byte, and the bytes of one column lie together.
    """
    outputs, inputs = values.shape
    rows = values.view(outputs // PACKED_ROWS, 2, PACKED_ROWS // 2, inputs)
    packed = rows[:, 0] | rows[:, 1] << 4
    return packed.transpose(1, 2).reshape(outputs, inputs // 2).to(torch.uint8)


class Linear4(nn.Module):
    """A linear layer with a scale and a zero per group of weights."""

    weight: Tensor
    scales_and_zeros: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        groups = weight.view(weight.shape[0], -1, GROUP)
        low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
        scales = (high - low).clamp(min=1e-8) / 15
        values = ((groups - low) / scales).round().clamp(0, 15).int()
        zeros = low + 8 * scales  # a weight is (value - 8) * scale + zero
        self.register_buffer("weight", pack_int4(values.flatten(1)))
        pairs = torch.cat([scales, zeros], 2).transpose(0, 1).contiguous()
        self.register_buffer("scales_and_zeros", pairs)

    def forward(self, x: Tensor) -> Tensor:
        pairs = self.scales_and_zeros
        y: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.weight, GROUP, pairs)
        return y


class QuantizedSmolLM2(Decoder):
    """SmolLM2 with its linear layers replaced; the state stays float32."""

    def __init__(self, model: Decoder, linear: Callable[[Tensor], nn.Module]) -> None:
        nn.Module.__init__(self)
        self.blk = model.blk
        for block in self.blk:
            for name, layer in list(block.named_children()):
                if isinstance(layer, nn.Linear):
                    setattr(block, name, linear(layer.weight.detach()))
        self.output_norm = model.output_norm
        self.register_buffer("cos", model.cos, persistent=False)
        self.register_buffer("sin", model.sin, persistent=False)
        embedding = model.token_embd.weight.detach()
        self.head = linear(embedding)
        # Input and output embedding are one matrix where its rows can be told apart.
        self.embedding = self.head if isinstance(self.head, Linear8) else Linear8(embedding)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        cache_position: Tensor,
        past_key_values: Tensor,
    ) -> Tensor:
        x = self.embedding.rows(input_ids[0])
        rope = Rope(self.cos[cache_position], self.sin[cache_position])
        mask = self.visible(attention_mask, cache_position)
        for layer, block in enumerate(self.blk):
            cache = smollm2.LayerCache(past_key_values, layer, cache_position)
            x = block(x, rope, mask, cache)
        logits: Tensor = self.head(self.output_norm(x[-1:]))
        return logits


def build_int8(weights: str) -> nn.Module:
    with torch.no_grad():
        return QuantizedSmolLM2(smollm2.build_decoder(weights), Linear8).eval()


def build_int4(weights: str) -> nn.Module:
    with torch.no_grad():
        return QuantizedSmolLM2(smollm2.build_decoder(weights), Linear4).eval()


class GrowingCache:
    """One layer's keys and values, to which those of the new tokens are appended."""

    def __init__(self, past: Tensor) -> None:
        self.past = past  # [2, past tokens, KV_HEADS, HEAD_SIZE]

    def write(self, k: Tensor, v: Tensor) -> None:
        self.past = torch.cat([self.past, torch.stack((k, v))], 1)

    def read(self, total: int) -> tuple[Tensor, Tensor]:
        k, v = self.past.transpose(1, 2).unbind(0)
        return k[None], v[None]


class GrowingSmolLM2(nn.Module):
    """SmolLM2 for runtimes without state: takes the past, returns the longer one."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """``past`` is float32[30, 2, past tokens, 3, 64]."""
        model = self.model
        seq, seen = input_ids.shape[1], past.shape[2]
        position = torch.arange(seen, seen + seq)
        x = model.token_embd(input_ids[0])
        rope = Rope(model.cos[seen : seen + seq], model.sin[seen : seen + seq])
        key = torch.arange(seen + seq)
        mask = torch.where(key <= position[:, None], 0.0, -torch.inf)
        mask = mask.repeat(smollm2.QUERIES_PER_KV, 1)
        present = []
        for layer, block in enumerate(model.blk):
            cache = GrowingCache(past[layer])
            x = block(x, rope, mask, cache)
            present.append(cache.past)
        logits = nn.functional.linear(model.output_norm(x[-1:]), model.token_embd.weight)
        return logits, torch.stack(present)


def prompt(length: int) -> Tensor:
    """The same tokens everywhere; a shorter text is the start of a longer one."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(VOCABULARY, (1, CONTEXT), generator=generator)[:, :length]


def case_inputs(module: nn.Module, case: str) -> dict[str, Tensor]:
    """Inputs of a case. Without `past_key_values` it starts from zeros."""
    past, new = CASES[case]
    tokens = prompt(past + new)
    inputs = _call(tokens[:, past:], past)
    if not past:
        return inputs
    cache = torch.zeros(smollm2.CACHE_SHAPE)
    module(**_call(tokens[:, :past], 0), past_key_values=cache)
    # `prompt` is for those that read it themselves.
    return inputs | {"past_key_values": cache, "prompt": tokens[:, :past].clone()}


def _call(tokens: Tensor, past: int) -> dict[str, Tensor]:
    total = past + tokens.shape[1]
    if total > CONTEXT:
        raise ValueError(f"{total} tokens don't fit into the cache")
    return {
        "input_ids": tokens,
        "attention_mask": torch.ones(1, total, dtype=torch.int64),
        "cache_position": torch.arange(past, total),
    }


def onnx_variant(module: nn.Module, case: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """The model for ONNX: a past of its own size, appended to. Decode and prefill differ in it."""
    assert type(module) is Decoder
    inputs = case_inputs(module, case)
    past = inputs["attention_mask"].shape[1] - inputs["input_ids"].shape[1]
    cache = inputs.get("past_key_values", torch.zeros(smollm2.CACHE_SHAPE))
    return GrowingSmolLM2(module), {
        "input_ids": inputs["input_ids"],
        "past": cache[:, :, :past].contiguous(),
    }
