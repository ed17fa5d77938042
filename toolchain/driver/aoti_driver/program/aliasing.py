"""Finds the inputs that a program writes to, and the outputs that share memory with others.

``torch.export`` leaves in-place operators in the graph, so the graph signature does not say what is
written. For most programs, a pass over the graph finds it: the schema of each operator says what it
writes to and which outputs are views of inputs. If that is not certain (control flow, or a write to
the result of a composite operator, which may or may not be a view), the program is made functional
instead, which takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

import torch
from torch import fx
from torch.export import ExportedProgram, ExportGraphSignature

from aoti_driver.base.errors import DriverError
from aoti_driver.program import convolutions, recurrent, result_shapes
from aoti_driver.program.graph_nodes import arguments_of, nodes_in, write_anew


def mutated_inputs(ep: ExportedProgram) -> frozenset[str]:
    """Names of the graph's placeholders, including those of parameters and buffers, that are
    written.
    """
    found = _by_schema(ep.graph)
    if found is None:
        return _by_functionalization(ep)
    # Decompositions make a program functional: then the signature has the writes.
    return found | _by_signature(ep.graph_signature)


def _by_schema(graph: fx.Graph) -> frozenset[str] | None:
    written = set()
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload):
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                return None
            continue  # arithmetic on sizes, getitem
        if node.op != "call_function":
            return None
        for target in _written_arguments(node):
            roots = _roots(target)
            if roots is None:
                return None
            written.update(roots)
    return frozenset(written)


def _written_arguments(node: fx.Node) -> Iterator[fx.Node]:
    for _, value, alias in arguments_of(node):
        if alias is not None and alias.is_write:
            yield from nodes_in(value)


def _roots(node: fx.Node) -> set[str] | None:
    """The placeholders whose memory ``node`` may share; None if that is not known."""
    if node.op == "placeholder":
        return {node.name}
    if node.op != "call_function":
        return None
    if not isinstance(node.target, torch._ops.OpOverload):
        first = node.args[0] if node.args else None
        return _roots(first) if isinstance(first, fx.Node) else None  # getitem
    if is_composite(node):
        return None  # reshape, to, dropout ...: a view or a copy, depending on the arguments
    roots: set[str] = set()
    for _, value, alias in arguments_of(node):
        if alias is None:
            continue
        for source in nodes_in(value):
            found = _roots(source)
            if found is None:
                return None
            roots |= found
    return roots


def written_parameters_as_buffers(
    module: fx.GraphModule, ep: ExportedProgram, written: Container[str]
) -> None:
    """Treats parameters that the program writes to as buffers: Inductor would return them as
    further results.

    module: the program's; its parameters and buffers have the same names as the program's.
    written: the names of those that are written to.
    """
    for spec in ep.graph_signature.input_specs:
        if spec.target is None or spec.target not in written:
            continue
        path, _, name = spec.target.rpartition(".")
        owner = module.get_submodule(path)
        parameter = dict(owner.named_parameters(recurse=False, remove_duplicate=False)).get(name)
        if parameter is not None:
            delattr(owner, name)
            owner.register_buffer(name, parameter.detach())


def own_outputs(module: fx.GraphModule) -> None:
    """Copies every output that may share memory with an input, a parameter or a buffer.

    A caller owns the outputs of a program, but inputs are borrowed and weights are shared.
    """
    copy_outputs(module, lambda result: _is_tensor(result) and _may_be_borrowed(result))


def copy_outputs(module: fx.GraphModule, unfit: Callable[[fx.Node], bool]) -> None:
    """Replaces every output that is ``unfit`` for a caller by a copy of it."""
    (output,) = module.graph.find_nodes(op="output")
    results = output.args[0]
    assert isinstance(results, (list, tuple))
    fit, changed = [], False
    for result in results:
        if isinstance(result, fx.Node) and unfit(result):
            with module.graph.inserting_before(output):
                copy = module.graph.call_function(torch.ops.aten.clone.default, (result,))
            copy.meta = {k: v for k, v in result.meta.items() if k in ("val", "nn_module_stack")}
            result, changed = copy, True
        fit.append(result)
    output.args = (tuple(fit),)
    write_anew(module, changed)


def drop_floats(module: fx.GraphModule) -> None:
    """Replaces constant floats among the outputs, which Inductor refuses, by None."""
    (output,) = module.graph.find_nodes(op="output")
    results = output.args[0]
    assert isinstance(results, (list, tuple))
    output.args = (tuple(None if isinstance(r, float) else r for r in results),)
    write_anew(module, any(isinstance(r, float) for r in results))


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor) or node.op == "get_attr"


def _may_be_borrowed(node: fx.Node) -> bool:
    return any(source.op in ("placeholder", "get_attr") for source in memory_of(node))


def memory_of(node: fx.Node) -> set[fx.Node]:
    """The nodes whose memory ``node`` may share, and itself."""
    seen: set[fx.Node] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op in ("placeholder", "get_attr"):
            continue
        if not isinstance(current.target, torch._ops.OpOverload):
            pending.extend(current.all_input_nodes)  # getitem, control flow
        elif is_composite(current):
            pending.extend(n for n in current.all_input_nodes if _is_tensor(n))
        else:
            for _, value, alias in arguments_of(current):
                if alias is not None:
                    pending.extend(nodes_in(value))
    return seen


def is_composite(node: fx.Node) -> bool:
    """Whether the node's operator, an OpOverload, may return a view or a copy, depending on its
    arguments.
    """
    assert isinstance(node.target, torch._ops.OpOverload)
    return node.target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)


def _by_functionalization(ep: ExportedProgram) -> frozenset[str]:
    result_shapes.declare()
    try:
        with recurrent.kept_whole(), convolutions.layouts_of_every_host():
            signature = ep.run_decompositions({}).graph_signature
    except Exception as e:  # torch raises many types here, including AssertionError
        raise DriverError(
            "can't tell which buffers or inputs the program writes to, because torch can't make it "
            f"functional: {type(e).__name__}: {e}\n"
            "A usual cause: a buffer that is written to shares its memory with another one. Give "
            "each its own memory (clone) or slice one buffer inside forward()"
        ) from e
    return _by_signature(signature)


def _by_signature(signature: ExportGraphSignature) -> frozenset[str]:
    targets = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    written = set(signature.user_inputs_to_mutate.values())
    written.update(targets[name] for name in signature.buffers_to_mutate.values())
    written.update(targets[name] for name in signature.parameters_to_mutate.values())
    return frozenset(written)
