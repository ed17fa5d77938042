"""Makes C++ functions of the blocks that repeat. block_calls.py calls them.

Inductor generates a block as a program, whose inputs it owns and whose numbers are tensors. Here
its ``run_impl`` becomes a function of borrowed tensors and of numbers, in the wrapper of the
program that calls it.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence

from aoti_driver.inductor import block_calls
from aoti_driver.inductor.outline import Block
from aoti_driver.inductor.repeats import UnfitError

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
    if "call_blocks<" in body:
        before += block_calls.CPP_HELPER
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
