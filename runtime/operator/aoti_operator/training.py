"""Has a call of an operator computed by its training step, where an input requires a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from aoti_operator.checks import chosen
from aoti_operator.declaration import Operator, TensorInput, Variants

_torch: Any = torch  # parts of which have no types
Registered = tuple[Any, Any]


def differentiable(
    operator: Operator | Variants, call: Callable[..., Any], steps: Sequence[Registered]
) -> Callable[..., Any]:
    """What PyTorch's autograd calls for the operator.

    call: the operator. steps: the two operators of each variant's training step.
    """

    def run(*passed: Any) -> Any:
        arguments = operator.complete(passed)
        varied = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
        if not torch.is_grad_enabled() or not varied:
            with _torch._C._AutoDispatchBelowAutograd():
                return call(*passed)
        variant = chosen(operator, arguments, ["cpu", "meta"])
        step = steps[operator.variants.index(variant)]
        link = _Link.apply(*varied)  # type: ignore[no-untyped-call]
        return _Step.apply(variant, step, link, *arguments)  # type: ignore[no-untyped-call]

    return run


class _Step(torch.autograd.Function):
    """A training step. Only what its backward pass takes is kept."""

    @staticmethod
    def forward(ctx: Any, operator: Operator, step: Registered, link: Any, *arguments: Any) -> Any:
        training = operator.training
        assert training is not None
        with _torch._C._AutoDispatchBelowAutograd():
            returned = step[0](*arguments)
        results = (returned,) if isinstance(returned, torch.Tensor) else tuple(returned)
        values = {"input": arguments, "output": results}
        ctx.save_for_backward(link, *[values[one.of][one.index] for one in training.kept])
        ctx.operator, ctx.backward_operator = operator, step[1]
        outputs = results[: len(operator.outputs)]
        pairs = list(zip(operator.outputs, outputs))
        ctx.mark_non_differentiable(*[o for one, o in pairs if not one.dtype.is_floating_point])
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        operator: Operator = ctx.operator
        link, *kept = ctx.saved_tensors
        given = [g for g, one in zip(gradients, operator.outputs) if one.dtype.is_floating_point]
        with torch.no_grad():
            found = ctx.backward_operator(*kept, *given)
        found = (found,) if isinstance(found, torch.Tensor) else tuple(found)
        if torch.is_grad_enabled():
            found = _NoSecond.apply(operator.name, link, *found)  # type: ignore[no-untyped-call]
        results = iter(found)
        varied = [isinstance(i, TensorInput) and i.dtype.is_floating_point for i in operator.inputs]
        return None, None, None, *[next(results) if floating else None for floating in varied]


class _Link(torch.autograd.Function):
    """An empty tensor that depends on the inputs, and does not hold their memory."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.inputs = len(inputs)
        return torch.empty(0)

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        return (None,) * ctx.inputs


class _NoSecond(torch.autograd.Function):
    """Gradients that depend on the inputs, in a way that is not known."""

    @staticmethod
    def forward(ctx: Any, name: str, link: Any, *gradients: Any) -> Any:
        ctx.name = name
        return tuple(gradient.clone() for gradient in gradients)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(
            f"{ctx.name} has no second derivative: its backward pass is compiled, and has no "
            "backward pass of its own. Call backward() or torch.autograd.grad() without "
            "create_graph=True"
        )
