"""Architectures of the transformers package that read text."""

from __future__ import annotations

from tests.survey.registry import Architecture
from tests.survey.transformers_common import (
    SIZES,
    VOCABULARY,
    Row,
    builder,
    masked_tokens,
    tokens,
    two_texts,
)

_GROUPED = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "use_cache": False}
_GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "use_cache": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "use_cache": False,
}
_MAMBA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "state_size": 8,
    "use_cache": False,
    "use_mambapy": False,
}
# By default the experts are multiplied by an operator that exists in Python only.
_BATCHED = {"experts_implementation": "batched_mm", "num_experts_per_tok": 2}
_EXPERTS = {**_BATCHED, "moe_intermediate_size": 16}
# name -> class without "Model", fields of the configuration, inputs
_TABLE: dict[str, Row] = {
    # encoders of text
    "albert": ("Albert", {**SIZES, "embedding_size": 16}, masked_tokens),
    "bert": ("Bert", SIZES, masked_tokens),
    "big_bird": ("BigBird", {**SIZES, "attention_type": "original_full"}, masked_tokens),
    "canine": ("Canine", {**SIZES, "local_transformer_stride": 8}, masked_tokens),
    "convbert": ("ConvBert", {**SIZES, "embedding_size": 32}, masked_tokens),
    "deberta": (
        "Deberta",
        {**SIZES, "pos_att_type": ["c2p", "p2c"], "relative_attention": True},
        masked_tokens,
    ),
    "deberta_v2": (
        "DebertaV2",
        {
            **SIZES,
            "pos_att_type": ["c2p", "p2c"],
            "relative_attention": True,
            "position_buckets": 8,
            "conv_kernel_size": 3,
        },
        masked_tokens,
    ),
    "distilbert": (
        "DistilBert",
        {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
        masked_tokens,
    ),
    "electra": ("Electra", {**SIZES, "embedding_size": 16}, masked_tokens),
    "esm": (
        "Esm",
        {
            **SIZES,
            "position_embedding_type": "rotary",
            "mask_token_id": 4,
            "vocab_size": VOCABULARY,
        },
        masked_tokens,
    ),
    "fnet": ("FNet", SIZES, tokens),
    "funnel": (
        "Funnel",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "block_sizes": [1, 1],
            "n_head": 4,
            "d_head": 8,
            "d_inner": 48,
            "num_decoder_layers": 1,
        },
        masked_tokens,
    ),
    "ibert": ("IBert", SIZES, masked_tokens),
    "layoutlm": ("LayoutLM", SIZES, masked_tokens),
    "longformer": (
        "Longformer",
        {**SIZES, "attention_window": [4, 4], "max_position_embeddings": 64},
        masked_tokens,
    ),
    "mobilebert": (
        "MobileBert",
        {**SIZES, "embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16},
        masked_tokens,
    ),
    "modernbert": (
        "ModernBert",
        {**SIZES, "global_attn_every_n_layers": 2, "local_attention": 4},
        masked_tokens,
    ),
    "mpnet": ("MPNet", SIZES, masked_tokens),
    "nystromformer": (
        "Nystromformer",
        {**SIZES, "segment_means_seq_len": 12, "num_landmarks": 12},
        masked_tokens,
    ),
    "rembert": (
        "RemBert",
        {**SIZES, "input_embedding_size": 16, "output_embedding_size": 16},
        masked_tokens,
    ),
    "roberta": ("Roberta", SIZES, masked_tokens),
    "roformer": ("RoFormer", {**SIZES, "embedding_size": 32}, masked_tokens),
    "squeezebert": ("SqueezeBert", {**SIZES, "embedding_size": 32}, masked_tokens),
    "xlnet": (
        "XLNet",
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
        tokens,
    ),
    "xlm": (
        "XLM",
        {
            "vocab_size": VOCABULARY,
            "n_words": VOCABULARY,
            "emb_dim": 32,
            "n_layers": 2,
            "n_heads": 4,
            "max_position_embeddings": 64,
        },
        tokens,
    ),
    "yoso": ("Yoso", {**SIZES, "use_expectation": True}, masked_tokens),
    # decoders of text
    "bloom": (
        "Bloom",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "n_layer": 2,
            "n_head": 4,
            "use_cache": False,
        },
        masked_tokens,
    ),
    "codegen": ("CodeGen", {**_GPT, "rotary_dim": 4}, tokens),
    "cohere": ("Cohere", _GROUPED, tokens),
    "deepseek_v3": (
        "DeepseekV3",
        {
            **SIZES,
            **_EXPERTS,
            "use_cache": False,
            "num_key_value_heads": 4,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 8,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 8,
            "qk_nope_head_dim": 8,
        },
        tokens,
    ),
    "falcon": (
        "Falcon",
        {**SIZES, "use_cache": False, "alibi": True, "new_decoder_architecture": False},
        masked_tokens,
    ),
    "falcon_mamba": ("FalconMamba", _MAMBA, tokens),
    "gemma2": ("Gemma2", {**_GROUPED, "sliding_window": 4}, tokens),
    "gemma3": ("Gemma3Text", {**_GROUPED, "sliding_window": 4}, masked_tokens),
    "glm4": ("Glm4", _GROUPED, tokens),
    "gpt2": ("GPT2", _GPT, masked_tokens),
    "gpt_neo": (
        "GPTNeo",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "max_position_embeddings": 64,
            "window_size": 4,
            "use_cache": False,
        },
        tokens,
    ),
    "gpt_neox": ("GPTNeoX", {**SIZES, "use_cache": False}, tokens),
    "gptj": ("GPTJ", {**_GPT, "rotary_dim": 4}, tokens),
    "gpt_oss": (
        "GptOss",
        {**_GROUPED, **_BATCHED, "num_local_experts": 4, "sliding_window": 4},
        tokens,
    ),
    "granite": ("Granite", _GROUPED, tokens),
    "granite_moe": ("GraniteMoe", {**_GROUPED, **_BATCHED, "num_local_experts": 4}, tokens),
    "jamba": (
        "Jamba",
        {
            **SIZES,
            "num_key_value_heads": 2,
            "use_cache": False,
            "use_mamba_kernels": False,
            "num_experts": 2,
            **_BATCHED,
            "mamba_d_state": 8,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
        },
        tokens,
    ),
    "lfm2": ("Lfm2", {**_GROUPED, "layer_types": ["conv", "full_attention"]}, tokens),
    "llama": ("Llama", _GROUPED, masked_tokens),
    "llama_bfloat16": ("Llama", {**_GROUPED, "dtype": "bfloat16"}, tokens),
    "mamba": ("Mamba", _MAMBA, tokens),
    "mamba2": (
        "Mamba2",
        {**_MAMBA, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
        tokens,
    ),
    "mixtral": ("Mixtral", {**_GROUPED, **_BATCHED, "num_local_experts": 4}, tokens),
    # encoders with decoders of text
    "t5": ("T5", _T5, two_texts),
}

ARCHITECTURES = [Architecture(name, "transformers", builder(row)) for name, row in _TABLE.items()]
