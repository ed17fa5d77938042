"""Records which operators the generated code calls as functions, and for which nodes.

Inductor generates most operators itself; the others are calls of a library. If a build links a
library without one of them, its error names the line of the model that needs it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from aoti_driver.contract.code_parts import Shim
from aoti_driver.program.nodes import nodes_of
from aoti_driver.torch_internals import patching

# Functions of the C interface, and operators that are called by name (see dispatch.py).
_FUNCTION = re.compile(r"\b(?:aoti_torch|torch)_\w+(?=\s*\()")
_BY_NAME = re.compile(r'\baoti_dispatch::Call\("([^"]+)", "([^"]*)"')
# On libtorch, they call a function of the C interface (see convolution_helpers.py and
# int8_product_helpers.py).
_INT8_PRODUCT = re.compile(r"\baoti_int8::Product\(")
_CONVOLUTION = re.compile(r"\baoti_convolution::Run(?:Chain)?(?:Into)?(?:<\d>)?\(")
# Functions for handles and memory, which are not operators; they may be part of an operator's call.
_PLUMBING = re.compile(
    r"aoti_torch_(?:new|delete|get|empty|create|_reinterpret|item|dtype|device)_"
)
_EXTERN_CALL = "torch._inductor.scheduler:Scheduler.codegen_extern_call"
# Lines whose text is generated later.
_LINES = (
    "torch._inductor.codegen.wrapper:ExternKernelAllocLine.codegen",
    "torch._inductor.codegen.wrapper:ExternKernelOutLine.codegen",
    "torch._inductor.codegen.wrapper:IndexPutFallbackLine.codegen",
    "torch._inductor.codegen.wrapper:ScatterFallbackLine.codegen",
)
_WRITERS = (
    "torch._inductor.utils:IndentedBuffer.writeline",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.writeline",
)


@dataclasses.dataclass(frozen=True)
class Calls:
    """Maps a function to the nodes of the program that it is called for, and the dtypes of those
    calls.
    """

    nodes: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    dtypes: dict[str, set[str]] = dataclasses.field(default_factory=dict)

    def note(self, text: str, nodes: set[str], dtypes: str | None) -> None:
        for name in called(text):
            if not _PLUMBING.match(name):
                self.nodes.setdefault(name, set()).update(nodes)
                if dtypes is not None:
                    self.dtypes.setdefault(name, set()).add(dtypes)

    def describe(
        self, ep: ExportedProgram, texts: Sequence[str], twins: Mapping[str, str]
    ) -> tuple[Shim, ...]:
        """The functions that the texts, which are generated code, call; nodes are in the program's
        order.

        twins: for nodes of the whole program, the one of ``ep`` that stands for it: what is called
        for a node of a block is called for the nodes at its place in others.
        """
        targets = {node.name: str(node.target) for node in nodes_of(ep)}
        order = {name: twin for name, twin in twins.items() if twin in targets}
        order.update({name: name for name in targets if name not in order})
        shims = []
        for name in sorted({name for text in texts for name in called(text)}):
            nodes = [node for node, twin in order.items() if twin in self.nodes.get(name, ())]
            operators = sorted({targets[order[node]] for node in nodes})
            dtypes = sorted(self.dtypes.get(name, ()))
            shims.append(Shim(name, tuple(operators), tuple(nodes), tuple(dtypes)))
        return tuple(shims)


def called(text: str) -> list[str]:
    """The functions in a piece of generated code, including ``aten::name.overload``."""
    by_name = [f"{n}.{overload}" if overload else n for n, overload in _BY_NAME.findall(text)]
    convolutions = ["aoti_torch_cpu_convolution" for _ in _CONVOLUTION.findall(text)]
    products = ["aoti_torch_cpu__int_mm_out" for _ in _INT8_PRODUCT.findall(text)]
    return [*_FUNCTION.findall(text), *by_name, *convolutions, *products]


@contextlib.contextmanager
def recorded() -> Iterator[Calls]:
    """Records the calls that Inductor generates inside the block."""
    calls = Calls()
    current: list[tuple[set[str], str | None]] = []

    def during(node: Any, function: Any, *args: Any) -> Any:
        current.append((_origins(node), _dtypes(node)))
        try:
            return function(*args)
        finally:
            current.pop()

    extern_call = patching.original(_EXTERN_CALL)

    def call(self: Any, node: Any) -> None:
        during(node.node, extern_call, self, node)

    def noting(write: Any) -> Any:
        def note(self: Any, line: Any) -> None:
            if current and isinstance(line, str):
                calls.note(line, *current[-1])
            write(self, line)

        return note

    def tracking(codegen: Any) -> Any:
        return lambda self, code: during(self.node, codegen, self, code)

    with patching.replaced(
        {
            _EXTERN_CALL: call,
            **{place: tracking(patching.original(place)) for place in _LINES},
            **{place: noting(patching.original(place)) for place in _WRITERS},
        }
    ):
        yield calls


def _origins(node: Any) -> set[str]:
    """The program's nodes that an extern kernel computes; views of its inputs are not included."""
    origins = list(node.origins)
    operator = getattr(node, "op_overload", None)
    if operator is not None:
        packet = str(getattr(operator, "overloadpacket", operator))
        own = [o for o in origins if str(getattr(o.target, "overloadpacket", o.target)) == packet]
        origins = own or origins
    return {name for origin in origins if (name := root(origin)) is not None}


def _dtypes(node: Any) -> str | None:
    """The dtypes that an extern kernel reads and returns, as in :class:`Shim`.

    A kernel that writes into one of its arguments returns nothing, but the argument's dtype is
    listed as its result.
    """
    from torch._inductor import ir

    if not isinstance(node, ir.ExternKernel):
        return None
    if (of_function := getattr(node, "called_dtypes", None)) is not None:
        return str(of_function)
    results = getattr(node, "outputs", None) or [node]
    given, returned = set(_buffers(node.inputs)), set(_buffers(results))
    # A complex number in place of a tensor makes the result complex.
    if any(isinstance(value, complex) for value in _constants(node)):
        given |= returned
    return "->".join(
        ",".join(sorted(str(dtype).removeprefix("torch.") for dtype in side))
        for side in (given, returned)
    )


def _constants(node: Any) -> list[Any]:
    return [*node.constant_args, *(node.kwargs or {}).values()]


def _buffers(values: Any) -> Iterator[torch.dtype]:
    """The dtypes of all tensors in nested lists of Inductor's values."""
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if isinstance(value, (list, tuple)):
            yield from _buffers(value)
        else:
            dtype = getattr(value, "maybe_get_dtype", lambda: None)()
            if isinstance(dtype, torch.dtype):
                yield dtype


def root(node: torch.fx.Node) -> str | None:
    """The name of the program's node from which Inductor traced its node."""
    name = None
    sources = node.meta.get("from_node")
    while sources:
        name = sources[-1].name
        sources = sources[-1].from_node
    return name
