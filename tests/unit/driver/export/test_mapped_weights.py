"""Parameters that have the memory of a weights file; modules on the device "meta"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from aoti_driver.base.errors import DriverError
from aoti_driver.export import state_dict
from safetensors.torch import save_file
from torch import Tensor, nn

WEIGHT = torch.arange(12.0).view(3, 4)


def _loaded(module: nn.Module, folder: Path, tensors: dict[str, Tensor]) -> nn.Module:
    save_file(tensors, folder / "w.safetensors")
    files = [("_main/w.safetensors", str(folder / "w.safetensors"))]
    state_dict.load_by_name(module, files, "//pkg:m")
    return module


def _mapped(tensor: Tensor) -> bool:
    """Whether a file is behind the tensor's memory."""
    address = tensor.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(text, 16) for text in line.split()[0].split("-"))
        if begin <= address < end:
            return "safetensors" in line
    return False


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_parameters_are_mapped(tmp_path: Path, device: str) -> None:
    module = nn.Linear(4, 3, bias=False, device=device)
    _loaded(module, tmp_path, {"weight": WEIGHT})
    assert torch.equal(module.weight, WEIGHT) and _mapped(module.weight)
    assert type(module.weight) is nn.Parameter and module.weight.requires_grad


def test_writing_to_one_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    module: Any = _loaded(nn.Linear(4, 3, bias=False), tmp_path, {"weight": WEIGHT})
    before = (tmp_path / "w.safetensors").read_bytes()
    with torch.no_grad():
        module.weight.zero_()
    assert (tmp_path / "w.safetensors").read_bytes() == before


class _Tied(nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.first = nn.Linear(4, 3, bias=False, device=device)
        self.second = nn.Linear(4, 3, bias=False, device=device)
        self.second.weight = self.first.weight


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("names", [["first"], ["second"], ["first", "second"]])
def test_tied_parameters_stay_tied(tmp_path: Path, device: str, names: list[str]) -> None:
    tensors = {f"{name}.weight": WEIGHT.clone() for name in names}
    module: Any = _loaded(_Tied(device), tmp_path, tensors)
    assert module.first.weight is module.second.weight
    assert torch.equal(module.first.weight, WEIGHT)


def test_a_view_of_a_parameter_sees_its_values(tmp_path: Path) -> None:
    module: Any = nn.Linear(4, 3, bias=False)
    module.rows = module.weight.detach()[1:]
    _loaded(module, tmp_path, {"weight": WEIGHT})
    assert torch.equal(module.rows, WEIGHT[1:])


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_dtype_of_the_module_counts(tmp_path: Path, device: str) -> None:
    module = nn.Linear(4, 3, bias=False, device=device, dtype=torch.bfloat16)
    _loaded(module, tmp_path, {"weight": WEIGHT})
    assert module.weight.dtype == torch.bfloat16 and torch.equal(module.weight.float(), WEIGHT)


class _Doubled(nn.Linear):
    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        doubled = {name: 2 * tensor for name, tensor in state.items()}
        super()._load_from_state_dict(doubled, prefix, *rest)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_module_loads_as_it_wants_to(tmp_path: Path, device: str) -> None:
    module = _loaded(_Doubled(4, 3, bias=False, device=device), tmp_path, {"weight": WEIGHT})
    assert torch.equal(module.weight, 2 * WEIGHT)  # type: ignore[arg-type]


def test_a_buffer_without_values(tmp_path: Path) -> None:
    module = nn.Linear(4, 3, bias=False, device="meta")
    module.register_buffer("table", torch.zeros(2, device="meta"), persistent=False)
    with pytest.raises(DriverError) as raised:
        _loaded(module, tmp_path, {"weight": WEIGHT})
    assert str(raised.value) == (
        "//pkg:m: weights: table: the module has no values for them (they are on the device "
        '"meta"), and the files don\'t have them. Make them with device="cpu", or register them '
        "as persistent and put them into the files."
    )
