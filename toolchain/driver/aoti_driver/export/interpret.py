"""Runs a program operator by operator, to check that every size is what the program assumes.

Code is generated for the sizes that were derived while tracing, when torch.export assumes that
sizes are at least 2: it regards ``x.squeeze(0)`` as a no-op, although eager mode would drop a dim
of size 1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

from aoti_driver.export import state
from aoti_driver.export.building import seed
from aoti_driver.export.calls import Call
from aoti_driver.export.describe import Symbols
from aoti_driver.export.locations import location
from aoti_driver.export.source import SourceTree
from aoti_driver.export.torch_sizes import expression_of, symbol


class _MismatchError(Exception):
    pass


class _Checked(Interpreter):
    def __init__(self, module: GraphModule, sizes: dict[sympy.Symbol, int], tree: SourceTree):
        super().__init__(module)
        self._sizes = sizes
        self._tree = tree
        self._known: dict[sympy.Expr, int | None] = {}
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
        if isinstance(size, int):
            return size
        expression = expression_of(size)
        if expression not in self._known:
            data_dependent = not expression.free_symbols <= set(self._sizes)
            self._known[expression] = None if data_dependent else int(expression.subs(self._sizes))
        return self._known[expression]

    def _source(self, n: Node) -> str:
        place = location(n, self._tree)
        return f"\n  {place.file}:{place.line}\n    {place.code}" if place else ""


class Runner:
    """Calls an exported program; each series of calls starts from the program's initial state.

    module: what runs the program. written: the placeholders that the program writes to.
    """

    def __init__(
        self,
        ep: ExportedProgram,
        module: GraphModule,
        symbols: Symbols,
        written: frozenset[str],
        tree: SourceTree,
    ) -> None:
        self._module = module
        self._symbols = symbols
        self._tree = tree
        targets = [s.target for s in ep.graph_signature.input_specs if s.arg.name in written]
        self.written = frozenset(t for t in targets if t is not None)
        self._saved = [
            (tensor, tensor.detach().clone())
            for name, tensor in [*ep.state_dict.items(), *ep.constants.items()]
            if isinstance(tensor, torch.Tensor)
            and (name in self.written or not isinstance(tensor, torch.nn.Parameter))
        ]

    def results(self, call: Call, times: int) -> Iterator[Any]:
        """(result, args, kwargs) of consecutive calls; the same object if there is no state."""
        with self._preserved():
            for i in range(times):
                if i == 0 or self.written:
                    args, kwargs = call.fresh_for_program()
                    seed()
                    result = self._module(*args, **kwargs)
                    last = state.own(result), args, kwargs
                yield last

    def checked_leaves(self, call: Call) -> tuple[list[Any], str | None]:
        """The leaves of (result, args, kwargs) of one call, which is run operator by operator.

        Also the first operator whose result has another shape than the program assumes, or None.
        """
        chosen = {symbol(name): size for name, size in call.sizes.items()}
        sizes = {
            known: int(expression.subs(chosen))
            for known, expression in self._symbols.expressions.items()
        }
        interpreter = _Checked(self._module, sizes, self._tree)
        inputs = pytree.tree_leaves(call.fresh_for_program())
        with self._preserved():
            seed()
            try:
                results = interpreter.run(*inputs, enable_io_processing=False)
            except _MismatchError:
                return [], interpreter.problem
            results = state.own(results)
        return [*results, *inputs], None

    @contextlib.contextmanager
    def _preserved(self) -> Iterator[None]:
        """Restores the program's buffers and constants after the block."""
        with torch.no_grad():
            try:
                yield
            finally:
                for tensor, value in self._saved:
                    tensor.copy_(value)
