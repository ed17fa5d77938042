"""T5: two programs, the encoder that runs once and the decoder that runs for each new token."""

import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration


def _model() -> T5ForConditionalGeneration:
    torch.manual_seed(0)  # random weights; yours come from a checkpoint: see docs/inputs.md
    config = T5Config(
        vocab_size=128, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False
    )
    return T5ForConditionalGeneration(config)


class Encoder(nn.Module):
    """source [batch, source] -> encoded [batch, source, 32]."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = _model().get_encoder()

    def forward(self, source: Tensor) -> dict[str, Tensor]:
        return {"encoded": self.encoder(input_ids=source).last_hidden_state}


class Decoder(nn.Module):
    """target [batch, target], encoded [batch, source, 32] -> next token's logits [batch, 128]."""

    def __init__(self) -> None:
        super().__init__()
        self.model = _model()
        del self.model.encoder  # its weights belong to the other program

    def forward(self, target: Tensor, encoded: Tensor) -> dict[str, Tensor]:
        decoded = self.model.decoder(input_ids=target, encoder_hidden_states=encoded)
        # T5 shares its output layer with the table of tokens, and scales.
        hidden = decoded.last_hidden_state[:, -1] * self.model.model_dim**-0.5
        return {"logits": self.model.lm_head(hidden)}
