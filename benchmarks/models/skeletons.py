"""Actions of two people from their joints, as ST-GCN: neighbouring joints, and then time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 3
STEPS = 64
PEOPLE = 2
CLASSES = 60
KINDS = 3
TIMES = 9
# The joint that each of the 25 joints hangs on; the 21st, between the shoulders, is the centre.
PARENTS = (1, 20, 20, 2, 20, 4, 5, 6, 20, 8, 9, 10, 0, 12, 13, 14, 0, 16, 17, 18, 20, 22, 7, 24, 11)
JOINTS = len(PARENTS)
BLOCKS = ((64, 1), (64, 1), (64, 1), (128, 2), (128, 1), (256, 2))


def neighbours() -> Tensor:
    """float32[3, 25, 25]: the joint itself, those nearer to the centre, and those farther away"""
    joints = torch.eye(JOINTS)
    for joint, parent in enumerate(PARENTS):
        joints[joint, parent] = joints[parent, joint] = 1
    weights = joints / joints.sum(0)
    kinds = torch.zeros(KINDS, JOINTS, JOINTS)
    for joint, parent in enumerate(PARENTS):
        kinds[0, joint, joint] = weights[joint, joint]
        if joint != parent:
            kinds[1, parent, joint] = weights[parent, joint]
            kinds[2, joint, parent] = weights[joint, parent]
    return kinds


def balance(layer: nn.Conv2d, gain: float) -> None:
    """Weights of each output add up to zero, so that the mean of its inputs doesn't matter."""
    nn.init.kaiming_normal_(layer.weight)
    with torch.no_grad():
        layer.weight.copy_(gain * (layer.weight - layer.weight.mean((1, 2, 3), keepdim=True)))


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, step: int, residual: bool) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.rand(KINDS, JOINTS, JOINTS) + 0.5)
        self.features = nn.Conv2d(inputs, KINDS * outputs, 1)
        self.over_time = nn.Sequential(
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, (TIMES, 1), (step, 1), (TIMES // 2, 0)),
            nn.BatchNorm2d(outputs),
            nn.Dropout(0.5, inplace=True),
        )
        self.residual = residual
        self.same: nn.Module = nn.Identity()
        if inputs != outputs or step > 1:
            self.same = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, (step, 1)), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor, joints: Tensor) -> Tensor:
        y = self.features(x)
        n, kc, t, v = y.shape
        y = y.view(n, KINDS, kc // KINDS, t, v)
        y = torch.einsum("nkctv,kvw->nctw", y, joints * self.weights).contiguous()
        y = self.over_time(y)
        return functional.relu(y + self.same(x) if self.residual else y)


class Skeletons(nn.Module):
    """float32[batch, 3, 64, 25, 2] to float32[batch, 60]"""

    joints: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("joints", neighbours())
        self.norm = nn.BatchNorm1d(JOINTS * CHANNELS)
        self.blocks = nn.ModuleList()
        inputs = CHANNELS
        for i, (width, step) in enumerate(BLOCKS):
            self.blocks.append(Block(inputs, width, step, i > 0))
            inputs = width
        self.head = nn.Conv2d(inputs, CLASSES, 1)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                balance(part, 10 if part is self.head else 1.2)

    def forward(self, people: Tensor) -> Tensor:
        n, c, t, v, m = people.shape
        x = people.permute(0, 4, 3, 1, 2).contiguous().view(n * m, v * c, t)
        x = self.norm(x).view(n, m, v, c, t)
        x = x.permute(0, 1, 3, 4, 2).contiguous().view(n * m, c, t, v)
        for block in self.blocks:
            x = block(x, self.joints)
        x = functional.avg_pool2d(x, list(x.shape[2:]))
        x = x.view(n, m, -1, 1, 1).mean(1)
        result: Tensor = self.head(x).view(n, -1)
        return result


def build() -> nn.Module:
    torch.manual_seed(0)
    return Skeletons().eval()
