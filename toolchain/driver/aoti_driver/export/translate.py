"""Translates torch.export's errors: adds the user's source line and a remedy that can be pasted."""

from __future__ import annotations

import dataclasses
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from torch._subclasses.fake_tensor import UnsupportedOperatorException

from aoti_driver.base.errors import chain, listed
from aoti_driver.contract.dims import Dims
from aoti_driver.export.auto_dims import DimsError
from aoti_driver.export.restrictions import Restriction
from aoti_driver.export.source import Frame, SourceTree

# Advice that can't be followed in an action, or that is about torch's internals.
_NOISE = re.compile(
    r"TORCH_LOGS|TORCHDYNAMO_|^For more (information|debugging)|^For extended logs|"
    r"^If you suspect the guard|^For C\+\+ stack trace|^\s*For more details about this|"
    r"^The error above occurred when calling|^Caused by:|^\s*Developer debug context|"
    r"^The following call raised this error|^from user code:|^User stack:|^Suggested fixes:|"
    r"^User Stack \(most recent|\(snipped, see stack below"
)
_ASIDE = re.compile(r" \(unhinted: .*?\)(?=\.)|  \(Size-like symbols: .*?\)")
_SHOWN = 3
_INDEX = (
    "  A tensor of one integer that is an index may need a dim: x[i.reshape(1)] in place of x[i]."
)
_UNROLLED = (
    "  torch.export unrolls a recurrent layer with dropout in training: its number of steps has to "
    "be a constant. After eval() it may be a dim."
)
_PACKING = "torch/nn/utils/rnn.py"
_RECURRENT = "torch/nn/modules/rnn.py"
_FILE = re.compile(
    r'^\s*(?:#\s*)?File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>[^\s,]+)'
    r"(?:, code: (?P<code>.*))?$"
)
_SIZE = re.compile(r"L\['(\w+)'\]((?:\[[^\]]+\]|\.\w+)*?)\.size\(\)\[(\d+)\]")
_VALUE = re.compile(r"L\['(\w+)'\]((?:\[[^\]]+\])*)")
_FIXED_INT = re.compile(
    r"You marked L\['(\w+)'\] as dynamic but your code specialized it to be a constant \((\d+)\)"
)
# A number whose values torch restricts so far that none that are declared are left, or one.
_CONFLICT = re.compile(
    r"(?:conflicting with the inferred .* range of .*|inferred a static shape of \d+) for "
    r"(?:dimension )?inputs\['(\w+)'\]"
)
_FLOAT_SYMBOL = re.compile(r"\bzu?f\d+\b")
_DIM = re.compile(r"^(\w+) = Dim\('\w+'(?:, min=(\d+))?(?:, max=(\d+))?\)$")
_EQUATION = re.compile(r"^(\w+) = (.+)$")
_HALVED = re.compile(r"^(\d+)\*(_\w+)$")


@dataclasses.dataclass(frozen=True)
class Context:
    """What the user declared, and what was recorded during tracing.

    renamed: dims that have another name in torch. restrictions: lines that restrict sizes.
    floats: the Python floats among the inputs.
    """

    label: str
    tree: SourceTree
    declared: Mapping[str, str]
    dims: Dims
    renamed: Mapping[str, str]
    restrictions: Sequence[Restriction] = ()
    floats: Sequence[str] = ()


def translate(error: BaseException, context: Context) -> DimsError:
    """The error for the user, which is never empty and has no path of this machine."""
    text = str(error)
    for ours, theirs in context.renamed.items():
        text = re.sub(rf"\b{re.escape(theirs)}\b", ours, text)
    frames = _user_frames(error, text, context.tree)
    message = _clean(text, context.tree)
    if (match := _FIXED_INT.search(text)) and match[1] in context.dims.numbers.values():
        title = f'forward() works for one value of the input "{match[1]}" only'
        frames = frames or [r.frame for r in context.restrictions[:_SHOWN]]
        body = (
            "  A number that varies may be a size, an index, a bound of a slice or an operand of "
            "arithmetic. range(), float(), the index of a list, or a comparison with == fix it.\n"
            f'  To make the program for one value, write the value: inputs = {{"{match[1]}": '
            f'"{match[2]}"}}.'
        )
    elif "Constraints violated" in text:
        title, body = _constraints(text, message, context)
        restrictions = context.restrictions[:_SHOWN]
        frames = frames or [r.frame for r in restrictions]
        if any(r.unrolled for r in restrictions):
            body = f"{_UNROLLED}\n{body}"
    elif match := _CONFLICT.search(text):
        name = _plain(match[1])
        title = f'forward() does something else for some values of the input "{name}"'
        frames = frames or [r.frame for r in context.restrictions[:_SHOWN]]
        body = (
            "  A number that varies can't choose code. In place of if and max(), write torch.where "
            "and torch.clamp; or declare a range in which the code is the same, with another "
            "variant for the rest."
        )
    elif "data-dependent" in text.lower() and context.floats and _FLOAT_SYMBOL.search(text):
        names = listed(f'"{name}"' for name in context.floats)
        title = f"forward() needs the value of a float that varies from call to call ({names})"
        body = (
            "  Operators of PyTorch take it, and Python's + - * / **. In place of if and max(), "
            "write torch.where and torch.clamp; in place of math.sqrt(t), t ** 0.5.\n"
            "  To make the program for one value, write the value: "
            f'inputs = {{"{context.floats[0]}": "0.5"}}.'
        )
    elif "data-dependent" in text.lower():
        title = "torch.export failed: forward() branches on the values of a tensor"
        body = message + (
            "\n  A frozen program computes the same operators for every input: use torch.where "
            "or torch.cond in place of Python's if, and masks in place of data-dependent sizes."
        )
        if "specialized integer" in text:
            body += f"\n{_INDEX}"
    elif _PACKING in text or any(map(_packs, chain(error))):
        title = "torch.export failed: forward() packs sequences, which no exported program can"
        body = (
            "  nn.LSTM, nn.GRU and nn.RNN take any number of steps of a padded tensor "
            '("float32[batch, steps, 4]"). Take the last result of each sequence by its length, '
            "and call the model for sequences of one length where a layer reads them backwards."
        )
    elif "pytree-flattenable" in text or "Unsupported input type" in text:
        title, body = _input_type(text)
    elif match := re.search(r"Found <class '([^']+)'> in output", text):
        title = f"torch.export failed: forward() returns a {match[1]}, which torch does not know"
        body = (
            "  Results are tensors, and lists, tuples and dicts of them. Leave it out of the "
            "result (models of transformers: use_cache=False in the config), or register it with "
            "torch.utils._pytree.register_pytree_node in the module that defines it."
        )
    elif "was assigned during export" in text or "were assigned during export" in text:
        title = "torch.export failed: forward() assigns a tensor to an attribute"
        body = message + (
            "\n  Register it in __init__ with self.register_buffer(...) and update it in place, "
            "as in self.state.copy_(new)."
        )
    elif "fake impl" in text:
        title = "torch.export failed: a custom operator does not say what shapes it returns"
        body = message + "\n  Register one with torch.library.register_fake."
    elif isinstance(error, UnsupportedOperatorException):
        operator: Any = error.func
        name = operator.name()
        title = f"the operator {name} has no fake kernel: it does not say what it returns"
        body = (
            "  Register one in the Python files of its torch_custom_ops target: a function with "
            f'the operator\'s arguments under @torch.library.register_fake("{name}"), which '
            "returns an empty tensor of the result's sizes and dtype."
        )
    elif "not in range" in text:
        title, body = "torch.export failed: a sample is outside of its dim's range", message
    else:
        title, body = "torch.export failed", f"{type(error).__name__}: {message}"
    lines = [f"{context.label}: {title}", *(str(f) for f in frames), body]
    full = "\n".join(line for line in lines if line)
    fixes = _suggested(text) if "Constraints violated" in text else []
    dims, single = _proposed(fixes, context) if fixes else ({}, {})
    return DimsError(full, dims | {n: f"{size}..{size}" for n, size in single.items()})


def _packs(error: BaseException) -> bool:
    """Whether it is raised for a PackedSequence, by its functions or by a recurrent layer."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.endswith(_PACKING):
            return True
        if file.endswith(_RECURRENT) and frame.f_locals.get("batch_sizes") is not None:
            return True
    return False


def _user_frames(error: BaseException, text: str, tree: SourceTree) -> list[Frame]:
    """The user's lines: those that torch's text names, otherwise those in the traceback."""
    candidates = (tree.frames(e.__traceback__) for e in chain(error))
    frames = _frames_in_text(text, tree) or next(filter(None, candidates), [])
    return list(dict.fromkeys(frames))[-6:]


def _frames_in_text(text: str, tree: SourceTree) -> list[Frame]:
    lines = text.splitlines()
    frames = []
    for i, line in enumerate(lines):
        match = _FILE.match(line)
        if match is None or not tree.contains(match["path"]):
            continue
        code = match["code"] or (lines[i + 1] if i + 1 < len(lines) else "")
        frames.append(
            Frame(tree.name(match["path"]), int(match["line"]), match["function"], code.strip())
        )
    unique = {(f.path, f.line): f for f in frames}
    return list(unique.values())


def _clean(text: str, tree: SourceTree) -> str:
    """The message without frames (quoted separately), noise and paths."""
    kept: list[str] = []
    skipping = False
    for line in text.splitlines():
        if _FILE.match(line):
            skipping = ", code: " not in line
            continue
        if skipping and line.startswith("    "):
            continue
        skipping = False
        if _NOISE.search(line):
            line = re.sub(r" For more information, run with TORCH_LOGS=\S+\.?", "", line)
            if _NOISE.search(line):
                continue
        kept.append(_ASIDE.sub("", line).rstrip())
    message = re.sub(r"\n{2,}", "\n", "\n".join(kept)).strip()
    message = re.sub(r'File "[^"]*/site-packages/', 'File "', message)
    return _name_inputs(tree.scrub(message))


def _name_inputs(text: str) -> str:
    text = _SIZE.sub(lambda m: f'dim {m[3]} of input "{m[1]}{_plain(m[2])}"', text)
    return _VALUE.sub(lambda m: f'input "{m[1]}{_plain(m[2])}"', text)


def _plain(path: str) -> str:
    return re.sub(r"\['(\w+)'\]", r".\1", path)


def _constraints(text: str, message: str, context: Context) -> tuple[str, str]:
    title = "the model does not work for every size that dynamic_dims declares"
    reasons = [line for line in message.splitlines() if line.lstrip().startswith("- ")]
    reasons = [
        re.sub(
            r"Specializations unexpectedly required .*$| If you're using mark_dynamic.*$", "", r
        ).replace("You marked", "You declared")
        for r in reasons
    ]
    for name in context.dims.steps.values():
        reasons = [r.replace(str(context.dims.derived[name]), name) for r in reasons]
    fixes = _suggested(text)
    if not fixes:
        return title, "\n".join(reasons or [message])
    hidden = len(reasons) - _SHOWN
    more = [f"  - and {hidden} more"] if hidden > 0 else []
    return title, "\n".join([*reasons[:_SHOWN], *more, *_remedy(fixes, context)])


def _suggested(text: str) -> list[str]:
    _, found, rest = text.partition("Suggested fixes:")
    lines = []
    for line in rest.splitlines()[1:] if found else []:
        if not line.startswith("  ") or not line.strip():
            break
        lines.append(line.strip())
    return lines


def _remedy(fixes: Sequence[str], context: Context) -> list[str]:
    """torch's suggested fixes as a ``dynamic_dims`` to paste, and other necessary changes."""
    dims, single = _proposed(fixes, context)
    notes = [
        f"  Write {size} in place of {name} in inputs: the model works for this size only. To keep "
        "it dynamic, change the line of the model that fixes it."
        for name, size in single.items()
    ]
    notes += [
        f"  Or write {value} in place of {name} in inputs."
        for name, value in dims.items()
        if value.isidentifier() and context.declared.get(name) != value
    ]
    entries = ", ".join(f'"{n}": "{v}"' for n, v in dims.items())
    return [f"  Suggested fix:\n    dynamic_dims = {{{entries}}},", *notes]


def _proposed(fixes: Sequence[str], context: Context) -> tuple[dict[str, str], dict[str, str]]:
    """torch's suggested fixes as ``dynamic_dims``; and the dims that have one size, with it."""
    dims = dict(context.declared)
    single: dict[str, str] = {}
    names = _new_names(fixes, dims)
    for fix in fixes:
        for old, new in names.items():
            fix = re.sub(rf"\b{old}\b", new, fix)
        if match := _DIM.match(fix):
            low, high = context.dims.ranges.get(match[1], (1, None))
            low = int(match[2]) if match[2] else min(low, 2) if low > 2 else low
            best = low, int(match[3] or high or 65536)
            dims[context.dims.declared_name(match[1])] = context.dims.range_text(match[1], *best)
        elif match := _EQUATION.match(fix):
            name, value = match[1], match[2].strip()
            if name in context.dims.steps and value.isdigit():
                value = str(context.dims.declared_sizes({name: int(value)}).popitem()[1])
            name = context.dims.declared_name(name)
            if value.isdigit():
                dims.pop(name, None)
                single[name] = value
            else:
                dims[name] = value
    return dims, single


def _new_names(fixes: Sequence[str], taken: Mapping[str, str]) -> dict[str, str]:
    """torch makes up names such as ``_seq`` for a dim of which ``seq`` is a multiple."""
    names = {}
    for fix in fixes:
        equation = _EQUATION.match(fix)
        if equation is None:
            continue
        for made_up in re.findall(r"\b_\w+", equation[2]):
            multiple = _HALVED.match(equation[2].split(" ")[0])
            suffix = {"2": "half"}.get(multiple[1], f"div{multiple[1]}") if multiple else "base"
            name = f"{made_up.lstrip('_')}_{suffix}"
            while name in taken:
                name += "_"
            names[made_up] = name
    return names


def _input_type(text: str) -> tuple[str, str]:
    match = re.search(r"<class '([^']+)'>", text)
    kind = match[1] if match else "an unknown type"
    return (
        f"torch.export failed: an argument of forward() is a {kind.removeprefix('__main__.')}",
        "  Arguments are tensors, numbers, strings, None, and lists, tuples and dicts of them. "
        "Register a dataclass with torch.export.register_dataclass, another container with "
        "torch.utils._pytree.register_pytree_node, in the module that defines it.",
    )
