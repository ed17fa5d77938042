"""Gives parameters the memory of a weights file that is mapped, in place of a copy of it.

The kernel reads pages of the file when they are used, and may drop them again, so that such weights
need no memory of the process. A parameter on the device "meta", which has no memory of its own,
never needs any.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Mapping

from torch import Tensor, nn

from aoti_driver.base.errors import DriverError, listed

# More names would make an error unreadable.
_SHOWN = 5


def take(module: nn.Module, tensors: Mapping[str, Tensor], label: str) -> dict[str, Tensor]:
    """Does so for the parameters that can have it; returns the tensors that are to be copied.

    tensors: fit the module, by name and shape, and are nobody else's. Those that took the place of
    a parameter on "meta" are returned too, because modules may have code for loading; torch copies
    no tensor to its own memory.
    """
    _materialize(module, tensors, label)
    if not _loads_as_torch_does(module):
        return dict(tensors)
    owners = {
        (f"{prefix}." if prefix else "") + name: (part, parameter)
        for prefix, part in module.named_modules(remove_duplicate=False)
        for name, parameter in part.named_parameters(recurse=False)
    }
    names_of = Counter(id(owners[name][1]) for name in tensors if name in owners)
    # A module may see a parameter's memory elsewhere, as in self.rows = self.linear.weight[1:].
    seen = Counter(_storage(o) for o in gc.get_objects() if issubclass(type(o), Tensor))
    in_files = Counter(_storage(tensor) for tensor in tensors.values())
    left = {}
    for name, tensor in tensors.items():
        part, parameter = owners.get(name, (None, None))
        if (
            part is not None
            and parameter is not None
            and type(part)._load_from_state_dict is nn.Module._load_from_state_dict
            and names_of[id(parameter)] == 1
            and _alike(parameter, tensor)
            and seen[_storage(parameter)] == in_files[_storage(tensor)] == 1
        ):
            parameter.data = tensor
        else:
            left[name] = tensor
    return left


def _materialize(module: nn.Module, tensors: Mapping[str, Tensor], label: str) -> None:
    """Replaces parameters and buffers on "meta" by the file's tensors, of the same dtypes.

    Tied ones stay tied.
    """
    abstract: dict[int, list[tuple[nn.Module, str, str]]] = {}
    found: dict[int, Tensor] = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        parameters = part.named_parameters(recurse=False, remove_duplicate=False)
        buffers = part.named_buffers(recurse=False, remove_duplicate=False)
        for name, tensor in [*parameters, *buffers]:
            if not tensor.is_meta:
                continue
            full = f"{prefix}.{name}" if prefix else name
            abstract.setdefault(id(tensor), []).append((part, name, full))
            if full in tensors:
                found[id(tensor)] = tensors[full]
    if missing := [places[0][2] for key, places in abstract.items() if key not in found]:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise DriverError(
            f"{label}: weights: {listed(missing[:_SHOWN])}{more}: the module has no values for "
            'them (they are on the device "meta"), and the files don\'t have them. Make them with '
            'device="cpu", or register them as persistent and put them into the files.'
        )
    for key, places in abstract.items():
        first, attribute, _ = places[0]
        old = getattr(first, attribute)
        new = found[key].to(old.dtype)
        if isinstance(old, nn.Parameter):
            new = nn.Parameter(new, requires_grad=old.requires_grad)
        for part, name, _ in places:
            setattr(part, name, new)


def _loads_as_torch_does(module: nn.Module) -> bool:
    """Whether no code of the module's own takes part in loading a state dict."""
    if type(module).load_state_dict is not nn.Module.load_state_dict:
        return False
    return not any(
        part._load_state_dict_pre_hooks or part._load_state_dict_post_hooks
        for part in module.modules()
    )


def _alike(parameter: Tensor, tensor: Tensor) -> bool:
    """Whether the file's tensor differs from the parameter in its elements only."""
    return (
        type(parameter) is nn.Parameter
        and type(parameter.data) is Tensor
        and parameter.device == tensor.device
        and parameter.dtype == tensor.dtype
        and parameter.shape == tensor.shape
        and parameter.stride() == tensor.stride()
        and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    )


def _storage(tensor: Tensor) -> int:
    """The address of the tensor's memory; 0 for tensors that have none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (NotImplementedError, RuntimeError):  # sparse ones, subclasses
        return 0
