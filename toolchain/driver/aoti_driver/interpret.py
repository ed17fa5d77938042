"""Runs a program operator by operator, to see whether every size is what the program assumes.

Code is generated for the sizes that were derived while tracing. torch.export takes sizes for at
least 2 there: ``x.squeeze(0)`` is a no-op for it, whatever a size of 1 would do in eager mode.
"""

from __future__ import annotations

import re
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.fx import GraphModule, Interpreter, Node

from aoti_driver.calls import Call
from aoti_driver.checks import preserved
from aoti_driver.describe import Symbols, expression_of
from aoti_driver.source import SourceTree

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in \S+\n\s*(.*)')


class _MismatchError(Exception):
    pass


class _Checked(Interpreter):
    def __init__(self, module: GraphModule, sizes: dict[sympy.Symbol, int], tree: SourceTree):
        super().__init__(module)
        self._sizes = sizes
        self._tree = tree
        self.problem = ""

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        expected = n.meta.get("val")
        if isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor):
            wanted = [self._size(s) for s in expected.shape]
            got = list(result.shape)
            if len(wanted) != len(got) or any(w not in (None, g) for w, g in zip(wanted, got)):
                self.problem = (
                    f"a result has the shape {got} where the program assumes {wanted}"
                    + self._source(n)
                )
                raise _MismatchError
        return result

    def _size(self, size: Any) -> int | None:
        expression = expression_of(size)
        if not expression.free_symbols <= set(self._sizes):
            return None  # depends on data
        return int(expression.subs(self._sizes))

    def _source(self, n: Node) -> str:
        frames = _FRAME.findall(n.meta.get("stack_trace") or "")
        for path, line, code in reversed(frames):
            if self._tree.contains(path):
                return f"\n  {self._tree.name(path)}:{line}\n    {code}"
        return ""


def shape_problem(
    ep: ExportedProgram, call: Call, symbols: Symbols, tree: SourceTree
) -> str | None:
    """The first operator whose result has another shape than the program assumes, or None."""
    chosen = {sympy.Symbol(name, integer=True): size for name, size in call.sizes.items()}
    sizes = {
        symbol: int(expression.subs(chosen)) for symbol, expression in symbols.expressions.items()
    }
    tensors = iter(call.fresh_tensors())
    with preserved(ep), torch.no_grad():
        inputs: list[Any] = []
        for spec in ep.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                constant = isinstance(spec.arg, ConstantArgument)
                inputs.append(spec.arg.value if constant else next(tensors))
            elif spec.target in ep.state_dict:
                inputs.append(ep.state_dict[spec.target])
            else:
                inputs.append(ep.constants[str(spec.target)])
        interpreter = _Checked(ep.graph_module, sizes, tree)
        try:
            interpreter.run(*inputs, enable_io_processing=False)
        except _MismatchError:
            return interpreter.problem
        except Exception:  # a program that needs more than its inputs; its results were compared
            return None
    return None
