"""A decoder of transformers whose cache of keys and values is state of the compiled program."""

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

LONGEST = 64  # tokens that a conversation may have


class Cached(nn.Module):
    """The next token's logits; the keys and values of earlier calls are kept in buffers.

    tokens: int64[1, seq], the new ones. past: int64[], how many tokens the cache holds already;
    0 begins a new conversation. Returns logits: float32[1, vocabulary].
    """

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        config = model.config
        self.model = model
        self.cache = StaticCache(config=config, max_cache_len=LONGEST)
        self.cache.early_initialization(
            batch_size=1,
            num_heads=config.num_key_value_heads,
            head_dim=config.hidden_size // config.num_attention_heads,
            dtype=torch.float32,
            device=torch.device("cpu"),
        )
        # What is a buffer of the module is state of the program; other tensors would be constants.
        for i, layer in enumerate(self.cache.layers):
            self.register_buffer(f"keys_{i}", layer.keys, persistent=False)
            self.register_buffer(f"values_{i}", layer.values, persistent=False)

    def forward(self, tokens: Tensor, past: Tensor) -> dict[str, Tensor]:
        for i, layer in enumerate(self.cache.layers):
            layer.keys = getattr(self, f"keys_{i}")
            layer.values = getattr(self, f"values_{i}")
            layer.cumulative_length = past.clone()
        positions = past + torch.arange(tokens.shape[1])
        out = self.model(input_ids=tokens, position_ids=positions[None], past_key_values=self.cache)
        return {"logits": out.logits[:, -1]}


def cached_llama() -> nn.Module:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=LONGEST,
    )
    return Cached(LlamaForCausalLM(config))
