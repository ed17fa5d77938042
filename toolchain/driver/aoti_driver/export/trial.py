"""Runs an imported program once, to check that its values have the dtypes and shapes in its file.

Manifest and code are derived from what the file says about each value, which can be wrong: a file
that was exported inside ``torch.autocast`` says bfloat16, but its program computes float32 outside
it.
"""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, SymIntArgument, TensorArgument
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from aoti_driver.base import quiet
from aoti_driver.base.errors import DriverError
from aoti_driver.contract.specs import TensorSpec
from aoti_driver.export.building import seed
from aoti_driver.export.samples import make_tensor
from aoti_driver.export.torch_sizes import expression_of
from aoti_driver.program import aliasing


def check(ep: ExportedProgram, specs: dict[str, TensorSpec], label: str) -> None:
    """Raises DriverError if a value has another dtype or shape than the file says.

    specs: for the inputs, by placeholder; they give the ranges of values.
    """
    arguments, own = _arguments(ep, specs)
    if arguments is None:
        return
    run = _Run(ep.module(check_guards=False), ep, arguments)
    saved = [(t, t.detach().clone()) for t in _written(ep)]
    seed()
    try:
        with torch.no_grad(), quiet.silenced():
            run.run(*arguments, enable_io_processing=False)
    except _DisagreementError:
        raise DriverError(f"{label}: {run.problem}") from None
    except Exception as e:
        if own:
            reason = str(e).strip().splitlines() or [type(e).__name__]
            raise DriverError(
                f"{label}: the program fails for the inputs that it was exported with: "
                f"{type(e).__name__}: {reason[0]}\n  Export it anew, and call ep.module() with "
                "other inputs before it is saved."
            ) from None
        # The program may refuse values that were made up.
    finally:
        with torch.no_grad():
            for tensor, value in saved:
                tensor.copy_(value)


class _DisagreementError(Exception):
    pass


class _Run(Interpreter):
    def __init__(self, module: Any, ep: ExportedProgram, arguments: list[Any]) -> None:
        super().__init__(module)
        self._sizes = _symbols(ep, arguments)
        self.problem = ""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        said = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(said, torch.Tensor):
            same = result.dtype == said.dtype and result.dim() == said.dim()
            sizes = [self._size(s) for s in said.shape]
            if not same or any(s not in (None, r) for s, r in zip(sizes, result.shape)):
                self.problem = _disagreement(n, said, result)
                raise _DisagreementError
        return result

    def _size(self, size: Any) -> int | None:
        expression = expression_of(size)
        if not expression.free_symbols <= set(self._sizes):
            return None
        return int(expression.subs(self._sizes))


def _disagreement(node: Node, said: torch.Tensor, result: torch.Tensor) -> str:
    stack = node.meta.get("nn_module_stack")
    path, _ = list(stack.values())[-1] if stack else ("", None)
    place = f' in the submodule "{path}"' if path else ""
    text = (
        f'the program says that "{node.name}" ({node.target}){place} is {_type(said)}, but run by '
        f"PyTorch it is {_type(result)}: its outputs would not be what it says."
    )
    if said.dtype != result.dtype:
        text += (
            "\n  torch.export.export() inside of torch.autocast() writes such files: the mode is "
            "not a part of the program. Call it outside, and either enter torch.autocast() in "
            "forward() and export with strict=False, or convert the model (model.to(dtype))."
        )
    return text


def _type(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{[_text(s) for s in tensor.shape]}".replace(
        "'", ""
    )


def _text(size: Any) -> str:
    return str(expression_of(size))


def _written(ep: ExportedProgram) -> list[torch.Tensor]:
    """The parameters and buffers that the program writes to."""
    written = aliasing.mutated_inputs(ep)
    targets = {s.target for s in ep.graph_signature.input_specs if s.arg.name in written}
    tensors = {**ep.state_dict, **ep.constants}
    return [t for n, t in tensors.items() if n in targets and isinstance(t, torch.Tensor)]


def _symbols(ep: ExportedProgram, arguments: list[Any]) -> dict[sympy.Symbol, int]:
    """torch's symbols with their values in the arguments."""
    sizes: dict[sympy.Symbol, int] = {}

    def learn(said: Any, given: Any) -> None:
        expression = expression_of(said)
        unknown = expression.free_symbols - set(sizes)
        if len(unknown) == 1 and expression.is_polynomial(*unknown):
            solutions = sympy.solve(expression.subs(sizes) - given, *unknown)
            if len(solutions) == 1 and solutions[0].is_Integer:
                sizes[unknown.pop()] = int(solutions[0])

    for said, given in zip(_placeholders(ep), arguments, strict=True):
        if isinstance(said, torch.Tensor):
            for a, b in zip(said.shape, given.shape):
                learn(a, b)
        elif isinstance(said, torch.SymInt):
            learn(said, given)
    return sizes


def _placeholders(ep: ExportedProgram) -> list[Any]:
    """The file's description of each argument, in order."""
    values = {n.name: n.meta.get("val") for n in ep.graph.find_nodes(op="placeholder")}
    return [
        values.get(getattr(spec.arg, "name", ""))
        for spec in ep.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT
    ]


def _arguments(ep: ExportedProgram, specs: dict[str, TensorSpec]) -> tuple[list[Any] | None, bool]:
    """Arguments to run the program with, and whether they came with it."""
    if ep.example_inputs is not None:
        return pytree.tree_map_only(
            torch.Tensor, lambda t: t.detach().clone(), pytree.tree_leaves(ep.example_inputs)
        ), True
    arguments: list[Any] = []
    user = [s for s in ep.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    for spec, said in zip(user, _placeholders(ep), strict=True):
        if isinstance(spec.arg, (TensorArgument, SymIntArgument)):
            sizes = [_hint(s) for s in (said.shape if isinstance(said, torch.Tensor) else [said])]
            if None in sizes:
                return None, False
            if isinstance(said, torch.SymInt):
                arguments.append(sizes[0])
                continue
            known = specs[spec.arg.name]
            arguments.append(
                make_tensor(
                    spec.arg.name, known, {}, sizes=tuple(s for s in sizes if s is not None)
                )
            )
        else:
            arguments.append(getattr(spec.arg, "value", None))
    return arguments, False


def _hint(size: Any) -> int | None:
    if not isinstance(size, torch.SymInt):
        return int(size)
    hint = size.node.hint
    return None if hint is None else int(hint)
