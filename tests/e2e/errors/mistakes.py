"""Modules with one mistake each, and modules that a target uses with one."""

import importlib
from pathlib import Path

import torch
from torch import nn

NOT_A_MODULE = 3


class Fine(nn.Module):
    """Nothing is wrong with this one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


class TwoInputs(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class BranchesOnData(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return x - 1


class Specialises(nn.Module):
    """Adds rows to a table of eight: the size can only be eight."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(8, 1)


class NeedsRelation(nn.Module):
    """Joins two sequences of which one is longer by one."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[1:] + y


class Forgets(nn.Module):
    """Counts its calls in a Python attribute, which no exported program does."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


class Factor(nn.Module):
    """Needs an operator that the slim runtime lacks: the old one, not torch.linalg.cholesky."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        factor: torch.Tensor = torch.cholesky(x @ x.mT + torch.eye(4))
        return factor


def returns_a_dict() -> dict[str, int]:
    return {"not": 1}


def raises() -> nn.Module:
    raise RuntimeError("the shop is closed")


def undeclared_import() -> nn.Module:
    importlib.import_module("make_weights")  # which lies in this folder
    return Fine()


def undeclared_file() -> nn.Module:
    return nn.Linear(8, len(Path("BUILD.bazel").read_text(encoding="utf-8")))


def undeclared_file_beside_the_source() -> nn.Module:
    beside = Path(__file__).resolve().with_name("BUILD.bazel")
    return nn.Linear(8, len(beside.read_text(encoding="utf-8")))


def bad_samples() -> dict[str, torch.Tensor]:
    """Nine rows, where the target's dynamic_dims allow four."""
    return {"x": torch.zeros(9, 8)}
