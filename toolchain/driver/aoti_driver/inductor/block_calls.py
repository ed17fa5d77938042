"""Calls the functions of blocks that repeat: see block_functions.py.

Calls that follow each other are a table, which one loop reads. The code then doesn't grow with
their number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aoti_driver.inductor.outline import Block
from aoti_driver.inductor.runs import Made, Run
from aoti_driver.torch_internals import patching

# Tables have two bytes for a number if all are smaller, and else four.
_SHORT = 1 << 16

# Inserted before a program that has such tables.
CPP_HELPER = """\
// Calls blocks as a table says. Of each call, it has the number of its block, the places of its
// tensors, how many results are not needed any more after it, and their numbers. First places are
// the program's constants, then what is given, then the results of calls in their order.
template <size_t kConstants, size_t kGiven, class Number, size_t kMade, class... Blocks>
static void call_blocks(int32_t device_idx, const std::vector<ConstantHandle>& constants,
                        const std::array<AtenTensorHandle, kGiven>& given, size_t calls,
                        const Number* table, const int64_t* numbers,
                        std::array<RAIIAtenTensorHandle, kMade>& made, Blocks... blocks) {
  size_t results = 0;
  const auto tensor_at = [&](size_t place) -> AtenTensorHandle {
    if (place < kConstants) return constants[place];
    place -= kConstants;
    return place < kGiven ? given[place] : made[place - kGiven].get();
  };
  const auto call = [&]<size_t kResults, size_t kTensors, size_t kNumbers>(
                        std::array<RAIIAtenTensorHandle, kResults> (*block)(
                            int32_t, const std::array<AtenTensorHandle, kTensors>&,
                            const std::array<int64_t, kNumbers>&)) {
    std::array<AtenTensorHandle, kTensors> tensors;
    for (AtenTensorHandle& tensor : tensors) tensor = tensor_at(*table++);
    std::array<int64_t, kNumbers> own_numbers{};
    for (int64_t& number : own_numbers) number = *numbers++;
    for (auto& result : block(device_idx, tensors, own_numbers)) {
      made[results++] = std::move(result);
    }
  };
  for (; calls != 0; --calls) {
    const size_t wanted = *table++;
    size_t block = 0;
    ((block++ == wanted ? call(blocks) : void()), ...);
    for (size_t freed = *table++; freed != 0; --freed) made[*table++].reset();
  }
}

"""


@contextlib.contextmanager
def lowered(blocks: Sequence[Block | Run]) -> Iterator[None]:
    """Inductor calls the blocks' operators with tensors that exist, in the layouts of the blocks.

    It would compute the argument of several calls anew for each.
    """
    from torch._inductor import ir, lowering

    def lowering_of(block: Block | Run) -> Any:
        handler: Any = lowering.fallback_handler
        function = handler(block.operator.overload, add_to_fallback_set=False)

        def lower(*given: Any) -> Any:
            tensors, numbers = block.operator.parts(given)
            exact = []
            for argument, value in zip(tensors, block.inputs(), strict=False):
                argument.realize()
                exact.append(ir.ExternKernel.require_exact_strides(argument, value.stride()))
            return function(*block.operator.arguments(exact, numbers))

        return lower

    operators = [block.operator.overload for block in blocks]
    with patching.entries_kept("torch._inductor.lowering:lowerings", operators) as lowerings:
        lowerings.update({block.operator.overload: lowering_of(block) for block in blocks})
        yield


def lines(
    wrapper: Any, block: Block | Run, buffer: str, raw: Sequence[Any], outputs: Sequence[Any]
) -> list[str]:
    """The lines that call the block, or those of a run, with Inductor's arguments."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    tensors, values = block.operator.parts(raw)
    texts = [str(tensor.codegen_reference()) for tensor in tensors]
    constants = {name: i for i, name in enumerate(V.graph.constants)}
    if isinstance(block, Run):
        called, results = _table(block, buffer, texts, constants)
    else:
        # Constants by their numbers: of hundreds, no variables are needed.
        texts = [f"constants_->at({constants[t]})" if t in constants else t for t in texts]
        numbers = (str(wrapper.val_to_arg_str_for_prim_type(value, None)) for value in values)
        given = f"{{{', '.join(texts)}}}, {{{', '.join(numbers)}}}"
        called = [f"auto {buffer} = {block.name}(this->device_idx_, {given});"]
        results = [f"{buffer}[{i}]" for i in range(block.results)]
    for result, output in zip(results, outputs, strict=True):
        if isinstance(output, ir.MultiOutput):
            called.append(f"auto {output.get_name()} = std::move({result});")
    return called


def _table(
    run: Run, buffer: str, texts: Sequence[str], constants: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    """The lines that call a run's blocks, and its results. What no later call reads is freed."""
    blocks = [*dict.fromkeys(call.block for call in run.calls)]
    given = [text for text in dict.fromkeys(texts) if text not in constants]
    places = {text: len(constants) + i for i, text in enumerate(given)} | dict(constants)
    made = [Made(i, r) for i, call in enumerate(run.calls) for r in range(call.block.results)]
    results = {one: i for i, one in enumerate(made)}
    last = {one: one.call for one in made}
    last |= {one: i for i, call in enumerate(run.calls) for one in call.tensors if one in results}
    last |= dict.fromkeys(run.results, len(run.calls))
    freed: list[list[int]] = [[] for _ in range(len(run.calls) + 1)]
    for one, i in last.items():
        freed[i].append(results[one])

    def place(tensor: int | Made) -> int:
        if isinstance(tensor, Made):
            return len(constants) + len(given) + results[tensor]
        return places[texts[tensor]]

    rows = [
        [blocks.index(call.block), *map(place, call.tensors), len(freed[i]), *freed[i]]
        for i, call in enumerate(run.calls)
    ]
    numbers = [f"{number}L" for call in run.calls for number in call.numbers]
    bits = 16 if max(map(max, rows)) < _SHORT else 32
    called = [
        f"std::array<RAIIAtenTensorHandle, {len(made)}> {buffer};",
        f"static constexpr uint{bits}_t {buffer}_table[] = {{",
        *(f"    {', '.join(map(str, row))}," for row in rows),
        "};",
        # C++ has no empty arrays.
        f"static constexpr int64_t {buffer}_numbers[] = {{{', '.join(numbers or ['0L'])}}};",
        # Whatever an argument makes exists until the function returns.
        f"call_blocks<{len(constants)}>(this->device_idx_, *constants_, "
        f"std::array<AtenTensorHandle, {len(given)}>{{{', '.join(given)}}}, {len(run.calls)}, "
        f"{buffer}_table, {buffer}_numbers, {buffer}, "
        f"{', '.join(block.name for block in blocks)});",
    ]
    return called, [f"{buffer}[{results[one]}]" for one in run.results]
