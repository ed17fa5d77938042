"""Runs benchmarks/peers/prepare.py, and keeps what it makes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import contestants
from benchmarks.harness.config import Model
from benchmarks.harness.machine import VERSIONS, version_of
from benchmarks.harness.process import last_line

STEP_SECONDS = 1800
# What no file depends on.
_IRRELEVANT = ("family", "past_bytes", "runners", "title", "tolerance", "weights", "without")
# Files of these steps are the same at each precision: models that differ in nothing else share
# them.
_SHARED_STEPS = ("onnx", "openvino")
_OF_PRECISION = ("capability", "gguf", "name", "precision", "tokens", "unread_weights")


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The files of a model, and which of them there aren't."""

    folder: Path
    problems: dict[str, str]  # step -> reason
    facts: dict[str, Any]


def fingerprint(description: dict[str, Any], sources: Sequence[Path]) -> str:
    """Of all that the files depend on."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    # In an order that does not depend on that of `sources`, several of which have the same name.
    for content in sorted(hashlib.sha256(source.read_bytes()).digest() for source in sources):
        digest.update(content)
    digest.update(json.dumps([version_of(name) for name in VERSIONS]).encode())
    return digest.hexdigest()[:12]


def sources_of(root: Path, description: dict[str, Any]) -> list[Path]:
    """What the model is made of, and the program that prepares it."""
    names = [description[key] for key in ("entry_point", "case_inputs", "onnx_variant")]
    modules = {name.partition(":")[0] for name in names if name}
    own = [root / (module.replace(".", "/") + ".py") for module in modules]
    # Those of the repository use each other.
    return list({*own, *root.glob("models/*/*.py"), root / "benchmarks/peers/prepare.py"})


def prepare(
    setting: contestants.Setting, description: dict[str, Any], steps: Sequence[str]
) -> Prepared:
    """Makes what is not there yet."""
    relevant = {key: value for key, value in description.items() if key not in _IRRELEVANT}
    # Weights count by what is in them: where they lie depends on the folder of the repository.
    sources = [
        *sources_of(setting.root, description),
        *(Path(file) for file in description["weights"]),
    ]
    folder = setting.cache / f"{description['name']}-{fingerprint(relevant, sources)}"
    for outdated in setting.cache.glob(f"{description['name']}-*"):
        if outdated != folder:
            shutil.rmtree(outdated)
    folder.mkdir(parents=True, exist_ok=True)
    relevant = {key: value for key, value in relevant.items() if key not in _OF_PRECISION}
    if relevant["build_precision"] != "int8":  # whose file ONNX Runtime quantizes
        del relevant["build_precision"]
    _share(setting.cache, folder / "onnx", f"onnx-{fingerprint(relevant, sources)}")
    path = folder / "model.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    model = Model.read(path)
    problems: dict[str, str] = {}
    for step in steps:
        if step == "gguf" and not model.gguf:
            continue
        if step == "openvino" and problems.get("onnx"):
            problems[step] = problems["onnx"]
        else:
            problems[step] = _step(setting, model, step, path, folder)
    facts = folder / "facts.json"
    known = json.loads(facts.read_text(encoding="utf-8")) if facts.is_file() else {}
    return Prepared(folder, problems, known)


def _share(cache: Path, link: Path, name: str) -> None:
    """Makes the link to a folder of the cache, and removes folders that no link leads to."""
    (cache / name).mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(cache / name)
    used = {other.resolve() for other in cache.glob("*/onnx")}
    for shared in cache.glob("onnx-*"):
        if shared.resolve() not in used:
            shutil.rmtree(shared)


def why_unneeded(setting: contestants.Setting, model: Model, step: str) -> str:
    """Why nobody who needs a step takes part; empty if somebody does."""
    if step == "module":  # compiled models need it too
        return ""
    reasons = [
        contestants.why_not(contestant, setting, model, {})
        for contestant in contestants.PYTHON
        if step in contestants.steps_for([contestant])
    ]
    return reasons[0] if reasons and all(reasons) else ""


def _step(setting: contestants.Setting, model: Model, step: str, path: Path, folder: Path) -> str:
    """Runs one step unless it has run; returns what went wrong, if anything."""
    done = (folder / "onnx" if step in _SHARED_STEPS else folder) / f"{step}.done"
    if done.is_file():
        return done.read_text(encoding="utf-8")
    if reason := why_unneeded(setting, model, step):
        return reason
    print(f"preparing {model.name}: {step}", file=sys.stderr, flush=True)
    script = setting.root / "benchmarks/peers/prepare.py"
    try:
        result = subprocess.run(
            [sys.executable, "-s", "-P", str(script), step, str(path), str(folder)],
            env=contestants.environment(setting, 1, model),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=STEP_SECONDS,
        )
        problem = f"{step}: {last_line(result.stdout)}" if result.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"{step}: not done in {STEP_SECONDS} s"
    if problem:
        print(f"  {problem}", file=sys.stderr)
    done.write_text(problem, encoding="utf-8")
    return problem
