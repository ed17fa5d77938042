"""Graphormer: a transformer on molecules with biases by degree, distance and the edges between."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

NODES = 18
FEATURES = 3
KINDS = 64
DEGREES = 16
DISTANCES = 20
EDGE_KINDS = 32
HOPS = 3
WIDTH = 80
HEADS = 8
LAYERS = 4


class NodeFeature(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.atom_encoder = nn.Embedding(FEATURES * KINDS + 1, WIDTH, padding_idx=0)
        self.in_degree_encoder = nn.Embedding(DEGREES, WIDTH, padding_idx=0)
        self.out_degree_encoder = nn.Embedding(DEGREES, WIDTH, padding_idx=0)
        self.graph_token = nn.Embedding(1, WIDTH)

    def forward(self, x: Tensor, in_degree: Tensor, out_degree: Tensor) -> Tensor:
        node_feature = self.atom_encoder(x).sum(dim=-2)
        node_feature = (
            node_feature + self.in_degree_encoder(in_degree) + self.out_degree_encoder(out_degree)
        )
        token = self.graph_token.weight.unsqueeze(0).repeat(x.size(0), 1, 1)
        return torch.cat([token, node_feature], dim=1)


class AttentionBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.edge_encoder = nn.Embedding(EDGE_KINDS + 1, HEADS, padding_idx=0)
        self.edge_dis_encoder = nn.Embedding(HOPS * HEADS * HEADS, 1)
        self.spatial_pos_encoder = nn.Embedding(DISTANCES, HEADS, padding_idx=0)
        self.graph_token_virtual_distance = nn.Embedding(1, HEADS)

    def forward(self, attn_bias: Tensor, spatial_pos: Tensor, edge_input: Tensor) -> Tensor:
        n_graph, n_node = spatial_pos.size()[:2]
        bias = attn_bias.clone()
        bias = bias.unsqueeze(1).repeat(1, HEADS, 1, 1)

        spatial_bias = self.spatial_pos_encoder(spatial_pos).permute(0, 3, 1, 2)
        bias[:, :, 1:, 1:] = bias[:, :, 1:, 1:] + spatial_bias

        t = self.graph_token_virtual_distance.weight.view(1, HEADS, 1)
        bias[:, :, 1:, 0] = bias[:, :, 1:, 0] + t
        bias[:, :, 0, :] = bias[:, :, 0, :] + t

        hops = spatial_pos.clone()
        hops[hops == 0] = 1
        hops = torch.where(hops > 1, hops - 1, hops)
        hops = hops.clamp(0, HOPS)
        edges = self.edge_encoder(edge_input).mean(-2)
        flat = edges.permute(3, 0, 1, 2, 4).reshape(HOPS, -1, HEADS)
        flat = torch.bmm(flat, self.edge_dis_encoder.weight.reshape(-1, HEADS, HEADS)[:HOPS])
        edges = flat.reshape(HOPS, n_graph, n_node, n_node, HEADS).permute(1, 2, 3, 0, 4)
        edges = (edges.sum(-2) / hops.float().unsqueeze(-1)).permute(0, 3, 1, 2)
        bias[:, :, 1:, 1:] += edges
        return bias + attn_bias.unsqueeze(1)


class MultiheadAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head_dim = WIDTH // HEADS
        self.scaling = self.head_dim**-0.5
        self.k_proj = nn.Linear(WIDTH, WIDTH)
        self.v_proj = nn.Linear(WIDTH, WIDTH)
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, query: Tensor, bias: Tensor, padding: Tensor) -> Tensor:
        tgt, bsz, dim = query.size()
        q = self.q_proj(query)
        k = self.k_proj(query)
        v = self.v_proj(query)
        q *= self.scaling
        q = q.contiguous().view(tgt, bsz * HEADS, self.head_dim).transpose(0, 1)
        k = k.contiguous().view(-1, bsz * HEADS, self.head_dim).transpose(0, 1)
        v = v.contiguous().view(-1, bsz * HEADS, self.head_dim).transpose(0, 1)
        weights = torch.bmm(q, k.transpose(1, 2))
        weights += bias.view(bsz * HEADS, tgt, tgt)
        weights = weights.view(bsz, HEADS, tgt, tgt)
        weights = weights.masked_fill(
            padding.unsqueeze(1).unsqueeze(2).to(torch.bool), float("-inf")
        )
        weights = weights.view(bsz * HEADS, tgt, tgt)
        probs = functional.softmax(weights, dim=-1, dtype=torch.float32).type_as(weights)
        attn = torch.bmm(probs, v).transpose(0, 1).contiguous().view(tgt, bsz, dim)
        out: Tensor = self.out_proj(attn)
        return out


class EncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention()
        self.self_attn_layer_norm = nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, bias: Tensor, padding: Tensor) -> Tensor:
        x = self.self_attn_layer_norm(x + self.self_attn(x, bias, padding))
        out: Tensor = self.final_layer_norm(x + self.fc2(functional.gelu(self.fc1(x))))
        return out


class Graphormer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph_node_feature = NodeFeature()
        self.graph_attn_bias = AttentionBias()
        self.emb_layer_norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.lm_head_transform_weight = nn.Linear(WIDTH, WIDTH)
        self.layer_norm = nn.LayerNorm(WIDTH)
        self.embed_out = nn.Linear(WIDTH, 1, bias=False)
        self.lm_output_learned_bias = nn.Parameter(torch.zeros(1))
        self.feature_offset: Tensor
        offset = 1 + torch.arange(0, FEATURES * KINDS, KINDS)
        self.register_buffer("feature_offset", offset, persistent=False)

    def forward(
        self, atoms: Tensor, degree: Tensor, edges: Tensor, nodes: Tensor, spatial: Tensor
    ) -> tuple[Tensor, Tensor]:
        n_graph, n_node = atoms.size()[:2]
        real = torch.arange(n_node, device=nodes.device) < nodes.unsqueeze(1)
        pair = real.unsqueeze(2) & real.unsqueeze(1)
        x = (atoms + self.feature_offset).masked_fill(~real.unsqueeze(-1), 0)
        degree = degree * real
        spatial = spatial.masked_fill(~pair, 0)
        edges = (edges + 1) * pair[:, :, :, None, None]

        attn_bias = atoms.new_zeros((n_graph, n_node + 1, n_node + 1), dtype=torch.float)
        attn_bias[:, 1:, 1:][spatial >= DISTANCES - 2] = float("-inf")
        padding = torch.cat([torch.zeros_like(x[:, :1, 0]), x[:, :, 0].eq(0).to(x.dtype)], dim=1)

        bias = self.graph_attn_bias(attn_bias, spatial, edges)
        h = self.graph_node_feature(x, degree, degree)
        h = self.emb_layer_norm(h / math.sqrt(FEATURES)).transpose(0, 1)
        for layer in self.layers:
            h = layer(h, bias, padding)
        h = self.layer_norm(functional.gelu(self.lm_head_transform_weight(h.transpose(0, 1))))
        scores = self.embed_out(h) + self.lm_output_learned_bias
        return scores[:, 0, :], scores[:, 1:, 0].masked_fill(~real, 0.0)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Graphormer().eval()
