"""Residue: AlphaFold's structure module, invariant point attention over rigid frames."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

C_S = 128
C_Z = 64
C_HIDDEN = 16
HEADS = 12
QK_POINTS = 4
V_POINTS = 8
BLOCKS = 4
C_RESNET = 64
ANGLES = 7
INF = 1e5


def _quaternion_to_rotation_table() -> Tensor:
    table = torch.zeros(4, 4, 3, 3)
    for i in range(4):
        for j in range(3):
            table[i, i, j, j] = 1.0 if i in (0, j + 1) else -1.0
    for x, y, z in ((1, 2, 3), (3, 1, 2), (2, 3, 1)):
        table[x, y, x - 1, y - 1] = table[x, y, y - 1, x - 1] = 2.0
        table[z, 0, x - 1, y - 1] = -2.0
        table[z, 0, y - 1, x - 1] = 2.0
    return table


_QTR_MAT = _quaternion_to_rotation_table()


def quat_to_rot(quat: Tensor) -> Tensor:
    quat = quat[..., None] * quat[..., None, :]
    mat = _QTR_MAT.to(dtype=quat.dtype, device=quat.device)
    quat = quat[..., None, None] * mat.view((1,) * len(quat.shape[:-2]) + mat.shape)
    return torch.sum(quat, dim=(-3, -4))


def rot_vec_mul(r: Tensor, t: Tensor) -> Tensor:
    x, y, z = torch.unbind(t, dim=-1)
    return torch.stack(
        [r[..., i, 0] * x + r[..., i, 1] * y + r[..., i, 2] * z for i in range(3)], dim=-1
    )


def rot_matmul(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([rot_vec_mul(a, b[..., j]) for j in range(3)], dim=-1)


class Rigid:
    def __init__(self, rots: Tensor, trans: Tensor) -> None:
        self.rots = rots
        self.trans = trans

    def per_point(self) -> Rigid:
        return Rigid(self.rots.unsqueeze(-3), self.trans.unsqueeze(-2))

    def apply(self, pts: Tensor) -> Tensor:
        return rot_vec_mul(self.rots, pts) + self.trans

    def invert_apply(self, pts: Tensor) -> Tensor:
        return rot_vec_mul(self.rots.transpose(-1, -2), pts - self.trans)

    def compose_q_update_vec(self, update: Tensor) -> Rigid:
        q_vec, t_vec = update[..., :3], update[..., 3:]
        quat = torch.cat([torch.ones_like(q_vec[..., :1]), q_vec], dim=-1)
        quat = quat / torch.linalg.norm(quat, dim=-1, keepdim=True)
        trans = self.trans + rot_vec_mul(self.rots, t_vec)
        return Rigid(rot_matmul(self.rots, quat_to_rot(quat)), trans)


class InvariantPointAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_q = nn.Linear(C_S, HEADS * C_HIDDEN)
        self.linear_kv = nn.Linear(C_S, 2 * HEADS * C_HIDDEN)
        self.linear_q_points = nn.Linear(C_S, HEADS * QK_POINTS * 3)
        self.linear_kv_points = nn.Linear(C_S, HEADS * (QK_POINTS + V_POINTS) * 3)
        self.linear_b = nn.Linear(C_Z, HEADS)
        self.head_weights = nn.Parameter(torch.full((HEADS,), 0.541324854612918))
        self.linear_out = nn.Linear(HEADS * (C_Z + C_HIDDEN + V_POINTS * 4), C_S)

    def _points(self, x: Tensor, r: Rigid) -> Tensor:
        pts = torch.stack(torch.split(x, x.shape[-1] // 3, dim=-1), dim=-1)
        pts = r.per_point().apply(pts)
        return pts.view((*pts.shape[:-2], HEADS, -1, 3))

    def forward(self, s: Tensor, z: Tensor, r: Rigid, mask: Tensor) -> Tensor:
        q = self.linear_q(s)
        kv = self.linear_kv(s)
        q = q.view((*q.shape[:-1], HEADS, -1))
        kv = kv.view((*kv.shape[:-1], HEADS, -1))
        k, v = torch.split(kv, C_HIDDEN, dim=-1)
        q_pts = self._points(self.linear_q_points(s), r)
        kv_pts = self._points(self.linear_kv_points(s), r)
        k_pts, v_pts = torch.split(kv_pts, [QK_POINTS, V_POINTS], dim=-2)

        b = self.linear_b(z)
        a = torch.matmul(q.permute(0, 2, 1, 3), k.permute(0, 2, 3, 1))
        a *= math.sqrt(1.0 / (3 * C_HIDDEN))
        a += math.sqrt(1.0 / 3) * b.permute(0, 3, 1, 2)
        pt_att = q_pts.unsqueeze(-4) - k_pts.unsqueeze(-5)
        pt_att = pt_att**2
        pt_att = sum(torch.unbind(pt_att, dim=-1))  # type: ignore[assignment]
        head_weights = functional.softplus(self.head_weights).view(*((1,) * 3 + (-1, 1)))
        head_weights = head_weights * math.sqrt(1.0 / (3 * (QK_POINTS * 9.0 / 2)))
        pt_att = torch.sum(pt_att * head_weights, dim=-1) * (-0.5)
        square_mask = mask.unsqueeze(-1) * mask.unsqueeze(-2)
        square_mask = INF * (square_mask - 1)
        a = a + pt_att.permute(0, 3, 1, 2)
        a = a + square_mask.unsqueeze(-3)
        a = torch.softmax(a, dim=-1)

        o = torch.matmul(a, v.transpose(-2, -3)).transpose(-2, -3)
        o = o.reshape((*o.shape[:-2], -1))
        o_pt = torch.sum(
            a[..., None, :, :, None] * v_pts.permute(0, 2, 4, 1, 3)[..., None, :, :], dim=-2
        )
        o_pt = o_pt.permute(0, 3, 1, 4, 2)
        o_pt = r.per_point().per_point().invert_apply(o_pt)
        o_pt_norm = torch.sqrt(torch.sum(o_pt**2, dim=-1) + 1e-8).flatten(-2)
        o_pt = o_pt.reshape(*o_pt.shape[:-3], -1, 3)
        o_pair = torch.matmul(a.transpose(-2, -3), z)
        o_pair = o_pair.reshape((*o_pair.shape[:-2], -1))
        features = torch.cat((o, *torch.unbind(o_pt, dim=-1), o_pt_norm, o_pair), dim=-1)
        out: Tensor = self.linear_out(features)
        return out


class AngleResnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_in = nn.Linear(C_S, C_RESNET)
        self.linear_initial = nn.Linear(C_S, C_RESNET)
        self.linears = nn.ModuleList([nn.Linear(C_RESNET, C_RESNET) for _ in range(4)])
        self.linear_out = nn.Linear(C_RESNET, ANGLES * 2)

    def forward(self, s: Tensor, s_initial: Tensor) -> Tensor:
        s = self.linear_in(functional.relu(s)) + self.linear_initial(functional.relu(s_initial))
        for i in range(0, 4, 2):
            s = s + self.linears[i + 1](functional.relu(self.linears[i](functional.relu(s))))
        s = self.linear_out(functional.relu(s))
        s = s.view((*s.shape[:-1], -1, 2))
        return s / torch.sqrt(torch.clamp(torch.sum(s**2, dim=-1, keepdim=True), min=1e-12))


class StructureModule(nn.Module):
    backbone_atoms: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer_norm_s = nn.LayerNorm(C_S)
        self.layer_norm_z = nn.LayerNorm(C_Z)
        self.linear_in = nn.Linear(C_S, C_S)
        self.ipa = InvariantPointAttention()
        self.layer_norm_ipa = nn.LayerNorm(C_S)
        self.transition = nn.Sequential(
            nn.Linear(C_S, C_S), nn.ReLU(), nn.Linear(C_S, C_S), nn.ReLU(), nn.Linear(C_S, C_S)
        )
        self.layer_norm_transition = nn.LayerNorm(C_S)
        self.bb_update = nn.Linear(C_S, 6)
        self.angle_resnet = AngleResnet()
        atoms = torch.tensor([[-0.525, 1.363, 0.0], [0.0, 0.0, 0.0], [1.526, 0.0, 0.0]])
        self.register_buffer("backbone_atoms", atoms)

    def forward(self, s: Tensor, z: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mask = mask.to(s.dtype)
        s = self.layer_norm_s(s)
        z = self.layer_norm_z(z)
        s_initial = s
        s = self.linear_in(s)
        eye = torch.eye(3, dtype=s.dtype, device=s.device)
        rigids = Rigid(eye.expand((*s.shape[:-1], 3, 3)), s.new_zeros((*s.shape[:-1], 3)))
        for _ in range(BLOCKS):
            s = s + self.ipa(s, z, rigids, mask)
            s = self.layer_norm_ipa(s)
            s = self.layer_norm_transition(s + self.transition(s))
            rigids = rigids.compose_q_update_vec(self.bb_update(s) * mask[..., None])
        angles = self.angle_resnet(s, s_initial)
        atoms = rigids.per_point().apply(self.backbone_atoms)
        # masked rows attend by logits rounded at -INF: nothing in them is meant to be read
        point_mask = mask[..., None, None]
        return s * mask[..., None], angles * point_mask, atoms * point_mask


def build() -> nn.Module:
    torch.manual_seed(0)
    return StructureModule().eval()
