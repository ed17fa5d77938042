"""Loads a model's weights by name, with errors that list what does not match."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from aoti_driver.base.errors import DriverError, did_you_mean, plural
from aoti_driver.export import mapped_weights
from aoti_driver.program.no_code import asked_for

_SHOWN = 20
_PICKLED = (".pt", ".pth", ".bin", ".ckpt")


def load_by_name(module: torch.nn.Module, files: Sequence[tuple[str, str]], label: str) -> None:
    """Loads (runfiles path, path) files into the module, strictly."""
    tensors: dict[str, torch.Tensor] = {}
    origin: dict[str, str] = {}
    for runfile, path in files:
        for name, tensor in _read(runfile, path, label).items():
            if name in tensors:
                raise DriverError(
                    f'{label}: weights: tensor "{name}" is in {origin[name]} and in {runfile}'
                )
            tensors[name] = tensor
            origin[name] = runfile
    assign(module, tensors, label)


def assign(module: torch.nn.Module, tensors: Mapping[str, torch.Tensor], label: str) -> None:
    """Gives the module's parameters and buffers the values of the tensors of the same names.

    Only one of several tied tensors is required.
    """
    expected = module.state_dict()
    shapes = {n: tuple(t.shape) for n, t in expected.items() if isinstance(t, torch.Tensor)}
    groups = _tied(module)
    missing = [
        name
        for name in shapes
        if name not in tensors and not any(g in tensors for g in groups.get(name, ()))
    ]
    extra = [name for name in tensors if name not in shapes]
    wrong = [
        (name, tuple(tensors[name].shape), shape)
        for name, shape in shapes.items()
        if name in tensors and tuple(tensors[name].shape) != shape
    ]

    def fitting(name: str) -> list[str]:
        return [e for e in extra if tuple(tensors[e].shape) == shapes[name]]

    problems = [
        *_table(
            "missing", [f"{n}  {_shape(shapes[n])}{did_you_mean(n, fitting(n))}" for n in missing]
        ),
        *_table("not in the module", [f"{n}  {_shape(tuple(tensors[n].shape))}" for n in extra]),
        *_table(
            "of another shape",
            [f"{n}  is {_shape(got)}, the module has {_shape(want)}" for n, got, want in wrong],
        ),
    ]
    if problems:
        raise DriverError(
            "\n".join(
                [
                    f"{label}: weights: the files do not fit the module:",
                    *problems,
                    "  Change the files, or let the entry point take the paths as arguments and "
                    "load them itself.",
                ]
            )
        )
    for name, tensor in tensors.items():
        if expected[name].dtype.is_floating_point != tensor.dtype.is_floating_point:
            raise DriverError(
                f'{label}: weights: "{name}" is {tensor.dtype}, the module has '
                f"{expected[name].dtype}".replace("torch.", "")
            )
    del expected  # its tensors see the parameters' memory
    if copied := mapped_weights.take(module, tensors, label):
        module.load_state_dict(copied, strict=False)


def explain_load_state_dict(error: BaseException) -> str | None:
    """torch's message about the user's own failed ``load_state_dict``, as a list; None for other
    errors.
    """
    text = str(error)
    if not isinstance(error, RuntimeError) or "Error(s) in loading state_dict" not in text:
        return None
    headings = {
        "Missing key(s) in state_dict: ": "missing",
        "Unexpected key(s) in state_dict: ": "not in the module",
    }
    lines = []
    for line in text.splitlines()[1:]:
        stripped = line.strip()
        for heading, title in headings.items():
            if stripped.startswith(heading):
                keys = [k.strip(' ".') for k in stripped.removeprefix(heading).split(",")]
                lines += _table(title, [k for k in keys if k])
                break
        else:
            if stripped:
                lines.append(f"  {stripped}")
    return "\n".join(lines)


def _read(runfile: str, path: str, label: str) -> dict[str, torch.Tensor]:
    suffix = Path(runfile).suffix.lower()
    if suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except (SafetensorError, OSError) as e:
            raise DriverError(
                f"{label}: weights: {runfile} is not a safetensors file: {e}"
            ) from None
    if suffix in _PICKLED:
        return _read_pickled(runfile, path, label)
    raise DriverError(
        f"{label}: weights: the driver loads .safetensors and torch state dicts "
        f"({', '.join(_PICKLED)}) by name, not {runfile}. Let the entry point take the path as "
        "an argument and load the file itself."
    )


def _read_pickled(runfile: str, path: str, label: str) -> dict[str, torch.Tensor]:
    try:
        # Only zip archives, which torch writes since 1.6, can be mapped.
        mapped = zipfile.is_zipfile(path)
        loaded: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as e:
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        if "weights_only" in str(e) or "Weights only" in str(e):
            # torch's message explains how to run the pickle nevertheless.
            reason = "it can be read only by running it as a pickle"
            if name := asked_for(e):
                reason += f', which asks for "{name}"'
        raise DriverError(
            f"{label}: weights: {runfile} is not a plain state dict: {reason}. Save it with "
            "torch.save(module.state_dict(), ...) or as safetensors, or let the entry point take "
            "the path as an argument and load the file itself."
        ) from None
    for wrapper in ("state_dict", "model_state_dict", "model"):
        if isinstance(loaded, dict) and isinstance(loaded.get(wrapper), dict):
            loaded = loaded[wrapper]
            break
    if not isinstance(loaded, dict) or any(
        not isinstance(tensor, torch.Tensor) for tensor in loaded.values()
    ):
        raise DriverError(
            f"{label}: weights: {runfile} holds a {type(loaded).__name__} that is not a state dict "
            "(a dict of tensors)"
        )
    return dict(loaded)


def _tied(module: torch.nn.Module) -> dict[str, list[str]]:
    """For each state dict name, all names of the same tensor."""
    groups: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), []).append(name)
    for name, buffer in module.named_buffers(remove_duplicate=False):
        groups.setdefault(id(buffer), []).append(name)
    return {name: names for names in groups.values() for name in names}


def _table(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    hidden = len(rows) - _SHOWN
    shown = [f"    {row}" for row in rows[:_SHOWN]]
    more = [f"    ... and {hidden} more"] if hidden > 0 else []
    return [f"  {plural(len(rows), 'tensor')} {title}:", *shown, *more]


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
