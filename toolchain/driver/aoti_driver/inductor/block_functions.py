"""Makes C++ functions of the blocks that repeat, and calls of them.

Inductor generates a block as a program, whose inputs it owns and whose numbers are tensors. Here
its ``run_impl`` becomes a function of borrowed tensors and of numbers, in the wrapper of the
program that calls it.
"""

from __future__ import annotations

import collections
import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from aoti_driver.inductor.outline import Block
from aoti_driver.inductor.repeats import UnfitError
from aoti_driver.inductor.runs import Made, Run
from aoti_driver.torch_internals import patching

_KERNEL = re.compile(r'extern "C"\s+(?:[A-Z_]+\s+)?void\s+(\w+)\s*\(')
_DECLARATION = re.compile(r'extern "C"[^;{]*;')
_FILE_LINE = re.compile(r"^(?:#include .*|CACHE_TORCH_\w+\(.*)$", re.MULTILINE)
_OPENING = "namespace torch::aot_inductor {"
_TAKEN = re.compile(r"^    auto (\w+) = std::move\(inputs\[(\d+)\]\);$", re.MULTILINE)
_READ = re.compile(
    r"^    int64_t (\w+);\n    AOTI_TORCH_ERROR_CODE_CHECK"
    r"\(aoti_torch_item_int64\(inputs\[(\d+)\], &\1\)\);$",
    re.MULTILINE,
)
_DROPPED = re.compile(
    r"^    (?:__check_inputs_outputs\(.*|auto inputs = steal_from_raw.*|inputs\.clear\(\);"
    r"|\[\[maybe_unused\]\] auto& kernels = .*|arg\w+\.reset\(\);"
    r'|if \(_check_aoti_runtime_check_inputs_env\(\)\) \{ .*"input"\); \})\n',
    re.MULTILINE,
)
_CONSTANT = re.compile(
    r"^    \[\[maybe_unused\]\] auto& (\w+) = constants_->at\(\d+\);\n", re.MULTILINE
)
_CHECK = re.compile(r'^    if \(_check_aoti_.*"torch\.ops\.aoti_blocks\..*\n', re.MULTILINE)
# What only a member function of a program has.
_MEMBERS = re.compile(
    r"\bthis->|\bconstants_\b|\bproxy_executor\b|\bstream\b|\binputs\[|\binputs\."
)

_FUNCTION = """\
[[maybe_unused]] static std::array<RAIIAtenTensorHandle, {outputs}> {name}(
    [[maybe_unused]] int32_t device_idx,
    [[maybe_unused]] const std::array<AtenTensorHandle, {inputs}>& input_handles,
    [[maybe_unused]] const std::array<int64_t, {numbers}>& numbers) {{
    AtenTensorHandle output_handles[{outputs}];
{body}    return {{{results}}};
}}

"""


@contextlib.contextmanager
def called(blocks: Sequence[Block | Run]) -> Iterator[None]:
    """Inductor calls the blocks' operators with tensors that exist, in the layouts of the blocks.

    It would compute the argument of several calls anew for each.
    """
    from torch._inductor import ir, lowering

    def lowered(block: Block | Run) -> Any:
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
        lowerings.update({block.operator.overload: lowered(block) for block in blocks})
        yield


def call(
    wrapper: Any, block: Block | Run, buffer: str, raw: Sequence[Any], outputs: Sequence[Any]
) -> list[str]:
    """The lines that call the block, or those of a run, with Inductor's arguments."""
    from torch._inductor import ir

    tensors, values = block.operator.parts(raw)
    references = _references(tensors)
    if isinstance(block, Run):
        lines, results = _calls(block, buffer, references)
    else:
        numbers = [wrapper.val_to_arg_str_for_prim_type(value, None) for value in values]
        lines = [_line(buffer, block, references, numbers)]
        results = [f"{buffer}[{i}]" for i in range(block.results)]
    for result, output in zip(results, outputs, strict=True):
        if isinstance(output, ir.MultiOutput):
            lines.append(f"auto {output.get_name()} = std::move({result});")
    return lines


def _line(buffer: str, block: Block, tensors: Sequence[str], numbers: Sequence[object]) -> str:
    given = f"{{{', '.join(tensors)}}}, {{{', '.join(map(str, numbers))}}}"
    return f"auto {buffer} = {block.name}(this->device_idx_, {given});"


def _calls(run: Run, buffer: str, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines that call a run's blocks, and its results. What no later call reads is freed."""
    last = {made: i for i, call in enumerate(run.calls) for made in call.tensors}
    last.update({made: len(run.calls) for made in run.results})

    def place(made: Made) -> str:
        return f"{buffer}_{made.call}[{made.result}]"

    lines = []
    for i, call in enumerate(run.calls):
        tensors = [place(t) if isinstance(t, Made) else given[t] for t in call.tensors]
        numbers = [f"{number}L" for number in call.numbers]
        lines.append(_line(f"{buffer}_{i}", call.block, tensors, numbers))
        free = [t for t in dict.fromkeys(call.tensors) if isinstance(t, Made) and last[t] == i]
        free += [m for m in (Made(i, r) for r in range(call.block.results)) if m not in last]
        lines += [f"{place(made)}.reset();" for made in free]
    return lines, [place(made) for made in run.results]


def _references(values: Iterable[Any]) -> list[str]:
    """Constants by their numbers: of hundreds, no variables are needed."""
    from torch._inductor.virtualized import V

    numbers = {name: i for i, name in enumerate(V.graph.constants)}
    texts = (str(value.codegen_reference()) for value in values)
    return [f"constants_->at({numbers[text]})" if text in numbers else text for text in texts]


def merge(
    model_class: str, program: tuple[str, str], functions: Sequence[tuple[Block, str, str]]
) -> tuple[str, str]:
    """The wrapper and the kernels of a program with those of the blocks that it calls."""
    wrapper, kernels = program
    if not functions:
        return program
    head, opening, rest = wrapper.partition(_OPENING)
    before, definition, body = rest.partition(f"void {model_class}::run_impl(")
    head += "#include <array>\n"
    for block, text, kernel_text in functions:
        text, kernel_text = _own_names(block.name, text, kernel_text)
        block_head = text.partition(_OPENING)[0]
        needed = [*_DECLARATION.findall(block_head), *_FILE_LINE.findall(block_head)]
        head += "".join(f"{line}\n" for line in needed if line not in head)
        before += _function(block, text, model_class)
        kernels += kernel_text
    return f"{head}{opening}{before}{definition}{_without_unused(body)}", kernels


def _without_unused(body: str) -> str:
    """Without the variables of constants that only blocks read, and checks of what they return."""
    uses = collections.Counter(re.findall(r"\w+", body))
    body = _CONSTANT.sub(lambda match: match[0] if uses[match[1]] > 1 else "", body)
    return _CHECK.sub("", body)


def _own_names(name: str, wrapper: str, kernels: str) -> tuple[str, str]:
    """Kernels have the block's name in theirs: each program's are numbered from 0."""
    names = {*_KERNEL.findall(kernels), *_KERNEL.findall(wrapper)}
    if not names:
        return wrapper, kernels
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(names))})\b")
    first, second = (pattern.sub(lambda m: f"{name}_{m[0]}", text) for text in (wrapper, kernels))
    return first, second


def _function(block: Block, wrapper: str, model_class: str) -> str:
    _, start, rest = wrapper.partition(f"void {model_class}::run_impl(")
    body, end, _ = rest.partition(f"}} // {model_class}::run_impl")
    if not start or not end:
        raise UnfitError("Inductor's text is not as expected")
    body = body.partition(") {\n")[2]
    first_number = block.operator.tensors
    body = _TAKEN.sub(r"    const ConstantHandle \1(input_handles[\2]);", body)
    body = _READ.sub(
        lambda m: f"    const int64_t {m[1]} = numbers[{int(m[2]) - first_number}];", body
    )
    body = _DROPPED.sub("", body).replace("this->device_idx_", "device_idx")
    if wrong := _MEMBERS.search(body):
        raise UnfitError(f"Inductor's text has {wrong[0]}")
    results = ", ".join(f"RAIIAtenTensorHandle(output_handles[{i}])" for i in range(block.results))
    return _FUNCTION.format(
        name=block.name,
        inputs=first_number,
        numbers=len(block.numbers),
        outputs=block.results,
        body=body,
        results=results,
    )
