"""Radial: DimeNet, directional message passing over a molecule of fixed bonds."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64
OUT = 12
BILINEAR = 8
SPHERICAL = 4
RADIAL = 6
BLOCKS = 3
CUTOFF = 5.0
EXPONENT = 6
AMPLITUDE = 0.2
REACH = 2.8
# the first zeros of the spherical Bessel functions j_0 .. j_3
ZEROS = (
    (3.141593, 6.283185, 9.424778, 12.566371, 15.707963, 18.849556),
    (4.493409, 7.725252, 10.904122, 14.066194, 17.220755, 20.371303),
    (5.763459, 9.095011, 12.322941, 15.514603, 18.689036, 21.853874),
    (6.987932, 10.417119, 13.698023, 16.923621, 20.121806, 23.304247),
)


def scatter(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    index = index.view(-1, 1).expand_as(src)
    return src.new_zeros(dim_size, src.size(1)).scatter_add_(0, index, src)


def spherical_bessel(order: int, x: Tensor) -> Tensor:
    j = [torch.sin(x) / x, torch.sin(x) / x**2 - torch.cos(x) / x]
    for o in range(2, order + 1):
        j.append((2 * o - 1) / x * j[-1] - j[-2])
    return j[order]


class Envelope(nn.Module):
    def __init__(self, exponent: int) -> None:
        super().__init__()
        self.p = exponent
        self.a = -(exponent + 1) * (exponent + 2) / 2
        self.b = exponent * (exponent + 2)
        self.c = -exponent * (exponent + 1) / 2

    def forward(self, x: Tensor) -> Tensor:
        x_pow_p0 = x.pow(self.p - 1)
        x_pow_p1 = x_pow_p0 * x
        x_pow_p2 = x_pow_p1 * x
        poly = 1.0 / x + self.a * x_pow_p0 + self.b * x_pow_p1 + self.c * x_pow_p2
        return poly * (x < 1.0).to(x.dtype)


class SphericalBasis(nn.Module):
    zeros: Tensor
    norms: Tensor

    def __init__(self) -> None:
        super().__init__()
        zeros = torch.tensor(ZEROS, dtype=torch.float64)
        after = torch.stack([spherical_bessel(o + 1, zeros[o]) for o in range(SPHERICAL)])
        self.register_buffer("zeros", zeros.float())
        self.register_buffer("norms", (math.sqrt(2.0) / after.abs()).float())
        self.envelope = Envelope(EXPONENT)

    def forward(self, dist: Tensor, angle: Tensor, idx_kj: Tensor) -> Tensor:
        dist = dist / CUTOFF
        bessel = [spherical_bessel(o, dist[:, None] * self.zeros[o]) for o in range(SPHERICAL)]
        rbf = self.envelope(dist)[:, None, None] * (self.norms * torch.stack(bessel, dim=1))
        cos = torch.cos(angle)
        legendre = [torch.ones_like(cos), cos, 1.5 * cos**2 - 0.5, 2.5 * cos**3 - 1.5 * cos]
        scale = [math.sqrt((2 * o + 1) / (4 * math.pi)) for o in range(SPHERICAL)]
        cbf = torch.stack([s * p for s, p in zip(scale, legendre)], dim=1)
        out: Tensor = rbf[idx_kj] * cbf.view(-1, SPHERICAL, 1)
        return out.view(-1, SPHERICAL * RADIAL)


class ResidualLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.silu(self.lin2(functional.silu(self.lin1(x))))


class InteractionBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin_rbf = nn.Linear(RADIAL, HIDDEN, bias=False)
        self.lin_sbf = nn.Linear(SPHERICAL * RADIAL, BILINEAR, bias=False)
        self.lin_kj = nn.Linear(HIDDEN, HIDDEN)
        self.lin_ji = nn.Linear(HIDDEN, HIDDEN)
        self.W = nn.Parameter(torch.randn(HIDDEN, BILINEAR, HIDDEN) * (2 / HIDDEN))
        self.before_skip = ResidualLayer()
        self.lin = nn.Linear(HIDDEN, HIDDEN)
        self.after_skip = ResidualLayer()

    def forward(self, x: Tensor, rbf: Tensor, sbf: Tensor, kj: Tensor, ji: Tensor) -> Tensor:
        sbf = self.lin_sbf(sbf)
        x_ji = functional.silu(self.lin_ji(x))
        x_kj = functional.silu(self.lin_kj(x)) * self.lin_rbf(rbf)
        x_kj = torch.einsum("wj,wl,ijl->wi", sbf, x_kj[kj], self.W)
        x_kj = scatter(x_kj, ji, x.size(0))
        h = self.before_skip(x_ji + x_kj)
        out: Tensor = self.after_skip(functional.silu(self.lin(h)) + x)
        return out


class OutputBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin_rbf = nn.Linear(RADIAL, HIDDEN, bias=False)
        self.lins = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(2)])
        self.lin = nn.Linear(HIDDEN, OUT, bias=False)

    def forward(self, x: Tensor, rbf: Tensor, i: Tensor, num_nodes: int) -> Tensor:
        x = self.lin_rbf(rbf) * x
        x = x.new_zeros(num_nodes, x.size(1)).index_add_(0, i, x)
        for lin in self.lins:
            x = functional.silu(lin(x))
        out: Tensor = self.lin(x)
        return out


class DimeNet(nn.Module):
    equilibrium: Tensor
    edge_index: Tensor
    triplets: Tensor
    freq: Tensor

    def __init__(self) -> None:
        super().__init__()
        # a puckered ring of six with a substituent on every atom
        ring = [
            (r * math.cos(k * math.pi / 3), r * math.sin(k * math.pi / 3), lift * (-1) ** k)
            for r, lift in ((1.5, 0.25), (2.6, 0.6))
            for k in range(6)
        ]
        pos = torch.tensor(ring)
        self.register_buffer("equilibrium", pos)
        self.num_atoms = len(pos)
        pairs = itertools.permutations(range(self.num_atoms), 2)
        edges = [(j, i) for j, i in pairs if float((pos[j] - pos[i]).norm()) < REACH]
        triplets = [
            (i, j, k, kj, ji)
            for ji, (j, i) in enumerate(edges)
            for kj, (k, target) in enumerate(edges)
            if target == j and k != i
        ]
        self.register_buffer("edge_index", torch.tensor(edges).T.contiguous())
        self.register_buffer("triplets", torch.tensor(triplets).T.contiguous())
        self.num_edges = len(edges)
        self.freq = nn.Parameter(torch.arange(1, RADIAL + 1).float() * math.pi)
        self.envelope = Envelope(EXPONENT)
        self.sbf = SphericalBasis()
        self.emb = nn.Embedding(95, HIDDEN)
        self.emb_rbf = nn.Linear(RADIAL, HIDDEN)
        self.emb_lin = nn.Linear(3 * HIDDEN, HIDDEN)
        self.output_blocks = nn.ModuleList([OutputBlock() for _ in range(BLOCKS + 1)])
        self.interaction_blocks = nn.ModuleList([InteractionBlock() for _ in range(BLOCKS)])

    def forward(self, z: Tensor, displacement: Tensor) -> Tensor:
        batch_size = z.size(0)
        num_nodes = batch_size * self.num_atoms
        graph = torch.arange(batch_size, device=z.device)
        pos = (self.equilibrium + AMPLITUDE * displacement).reshape(-1, 3)
        shift = graph[:, None]
        j, i = (self.edge_index[:, None, :] + shift * self.num_atoms).flatten(1).unbind(0)
        atoms = (self.triplets[:3, None, :] + shift * self.num_atoms).flatten(1)
        idx_i, idx_j, idx_k = atoms.unbind(0)
        idx_kj, idx_ji = (self.triplets[3:, None] + shift * self.num_edges).flatten(1).unbind(0)

        dist = (pos[i] - pos[j]).pow(2).sum(dim=-1).sqrt()
        pos_ji, pos_kj = pos[idx_j] - pos[idx_i], pos[idx_k] - pos[idx_j]
        a = (pos_ji * pos_kj).sum(dim=-1)
        b = torch.cross(pos_ji, pos_kj, dim=1).norm(dim=-1)
        angle = torch.atan2(b, a)
        scaled = dist.unsqueeze(-1) / CUTOFF
        rbf = self.envelope(scaled) * (self.freq * scaled).sin()
        sbf = self.sbf(dist, angle, idx_kj)

        h = self.emb(z.reshape(-1))
        x = functional.silu(
            self.emb_lin(torch.cat([h[i], h[j], functional.silu(self.emb_rbf(rbf))], dim=-1))
        )
        powers = self.output_blocks[0](x, rbf, i, num_nodes)
        for interaction, output in zip(self.interaction_blocks, self.output_blocks[1:]):
            x = interaction(x, rbf, sbf, idx_kj, idx_ji)
            powers = powers + output(x, rbf, i, num_nodes)
        return scatter(powers, graph.repeat_interleave(self.num_atoms), batch_size)


def build() -> nn.Module:
    torch.manual_seed(0)
    return DimeNet().eval()
