"""Registers a compiled model as an operator of PyTorch."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import dlpack

from aoti_operator.checks import chosen, dims_of
from aoti_operator.declaration import (
    FloatInput,
    Operator,
    Output,
    SizeInput,
    TensorInput,
    Variants,
)
from aoti_operator.training import differentiable

# What is registered lasts as long as these.
_LIBRARIES: list[Any] = []

_torch: Any = torch  # parts of which have no types


# The operators that modules have registered: the target of each one's model.
COMPILED: dict[str, str] = {}


def register(operator: Operator | Variants) -> Any:
    """Registers the operator, and returns it: what `torch.ops.<namespace>.<name>.default` is.

    Where code is generated for a model that calls the operator, it is declared already, and needs
    no more than a fake kernel: nothing is computed there.
    """
    COMPILED[operator.name] = operator.label
    if _is_declared_alone(operator.name):
        torch.library.register_fake(operator.name, fake(operator))
        return _registered(operator)
    if operator.training is None:
        _register_forward_alone(operator)
    else:
        _register_differentiable(operator)
    if operator.autocast_dtype is not None:
        torch.library.register_autocast(operator.name, "cpu", operator.autocast_dtype)
    return _registered(operator)


def _register_forward_alone(operator: Operator | Variants) -> None:
    definition = torch.library.custom_op(
        operator.name, kernel(operator), mutates_args=operator.mutated, schema=operator.schema
    )
    definition.register_fake(fake(operator))
    if not operator.mutated:  # PyTorch refuses to differentiate by the others, by their names
        definition.register_autograd(_no_backward(operator))


def _register_differentiable(operator: Operator | Variants) -> None:
    """As torch.library.custom_op does it, but for another function in place of its autograd."""
    steps = []
    for variant in operator.variants:
        assert variant.training is not None
        steps.append((register(variant.training.forward), register(variant.training.backward)))
    namespace, name = operator.name.split("::")
    library = _torch.library.Library(namespace, "FRAGMENT")
    _LIBRARIES.append(library)
    library.define(f"{name}{operator.schema}", tags=torch.Tag.pt2_compliant_tag)
    library.impl(name, kernel(operator), "CompositeExplicitAutograd")
    library.impl(name, differentiable(operator, _registered(operator), steps), "Autograd")
    torch.library.register_fake(operator.name, fake(operator), lib=library)


def _is_declared_alone(name: str) -> bool:
    """Whether an operator has a schema, and no kernel."""
    if name not in _torch._C._dispatch_get_all_op_names():
        return False
    key = "CompositeExplicitAutograd"  # that of every operator that this module registers
    return not _torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def _registered(operator: Operator | Variants) -> Any:
    namespace, name = operator.name.split("::")
    return getattr(getattr(torch.ops, namespace), name).default


def kernel(operator: Operator | Variants) -> Callable[..., Any]:
    """The function that runs the compiled model on tensors of the CPU. Any thread may call it."""
    load = _Loaded(operator.library)

    def run(*passed: Any) -> Any:
        arguments = operator.complete(passed)
        variant = chosen(operator, arguments, ["cpu"])
        given = [_given(variant, i, arguments) for i in range(len(arguments))]
        model = load()
        try:
            outputs = model._flat(*given)
        except load.library.InputError as e:
            _, _, text = str(e).partition(": ")  # the model's name
            raise ValueError(f"{operator.name}: {text}") from e
        for item, argument, tensor in zip(variant.inputs, arguments, given):
            if isinstance(item, TensorInput) and item.mutated and _moved(argument, tensor):
                argument.copy_(tensor)
        return _result([_tensor(output) for output in outputs])

    return run


def fake(operator: Operator | Variants) -> Callable[..., Any]:
    """The function that says what the operator would return, for tracing: sizes may be symbolic."""

    def run(*passed: Any) -> Any:
        arguments = operator.complete(passed)
        variant = chosen(operator, arguments, ["cpu", "meta"])
        dims = dims_of(variant, arguments)
        device = next((a.device for a in arguments if isinstance(a, torch.Tensor)), "cpu")
        return _result([_empty(output, dims, device) for output in variant.outputs])

    return run


class _Loaded:
    """The loaded model: the first call imports it and maps its weights."""

    library: Any = None

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._model: Any = None

    def __call__(self) -> Any:
        with self._lock:
            if self._model is None:
                self.library = importlib.import_module(self._name)
                self._model = self.library.load()
            return self._model


def _given(operator: Operator, i: int, arguments: Any) -> Any:
    """An argument in the layout that the model was compiled for: a copy only if it has another."""
    item, argument = operator.inputs[i], arguments[i]
    if isinstance(item, FloatInput):
        return argument
    if isinstance(item, SizeInput):  # a model may take a tensor for it
        return torch.tensor(argument, dtype=torch.int64)
    tensor: torch.Tensor = argument.detach().resolve_conj().resolve_neg()
    if item.strides is None:
        return tensor.contiguous()
    strides = item.strides(**dims_of(operator, arguments))
    used = [(a, b) for a, b, size in zip(tensor.stride(), strides, tensor.shape) if size != 1]
    if all(a == b for a, b in used):
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


def _moved(argument: torch.Tensor, given: torch.Tensor) -> bool:
    return argument.numel() > 0 and argument.data_ptr() != given.data_ptr()


def _tensor(output: Any) -> torch.Tensor:
    """Shares the output's memory. NumPy lacks some dtypes; such an output comes by DLPack.

    Where rules_aoti exports a model that calls the operator, PyTorch computes it.
    """
    if isinstance(output, torch.Tensor):
        return output
    if isinstance(getattr(output, "dtype", None), str):
        return dlpack.from_dlpack(output)
    return torch.from_numpy(output)


def _empty(output: Output, dims: dict[str, Any], device: Any) -> torch.Tensor:
    sizes = [
        torch.library.get_ctx().new_dynamic_size() if size is None else size
        for size in output.sizes(**dims)
    ]
    return torch.empty(sizes, dtype=output.dtype, device=device)


def _result(tensors: list[torch.Tensor]) -> Any:
    if not tensors:
        return None
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _no_backward(operator: Operator | Variants) -> Callable[..., Any]:
    def backward(*_: Any) -> Any:
        raise RuntimeError(
            f"{operator.name} has no backward: it is compiled from {operator.label} for forward "
            "passes alone. Call it under torch.no_grad() or with detached inputs, or build it with "
            "torch_operator(differentiable = True)"
        )

    return backward
