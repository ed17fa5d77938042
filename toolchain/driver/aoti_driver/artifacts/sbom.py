"""``sbom``: a model's bill of materials in CycloneDX 1.6.

CycloneDX is used because it has machine learning models as components, and because a document
without times and random ids is valid: the same model has the same bill, byte by byte. (SPDX 2.3
requires both.) This module needs only the standard library.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aoti_driver.base import digests, files
from aoti_driver.contract.manifest import LibraryManifest, ProgramManifest
from aoti_driver.contract.manifest_file import read_manifest

_RULES = "rules_aoti"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for flag in ("--manifest", "--provenance", "--out"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--lock", default="")
    parser.add_argument("--file", action="append", default=[], metavar="ROLE=PATH")


def run(args: argparse.Namespace) -> None:
    provenance = json.loads(Path(args.provenance).read_text(encoding="utf-8"))
    program = read_manifest(args.manifest, LibraryManifest).program
    lock = Path(args.lock).read_text(encoding="utf-8") if args.lock else ""
    shipped = [(role, path) for role, _, path in (entry.partition("=") for entry in args.file)]
    document = make(provenance, program, lock, shipped)
    with files.outputs(args.out) as (out,):
        out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def make(
    provenance: Mapping[str, Any],
    program: ProgramManifest,
    lock: str,
    shipped: list[tuple[str, str]],
) -> dict[str, Any]:
    packages = dict(_packages(lock))
    torch = str(provenance["torch"])
    packages["torch"] = torch  # the build that was installed, such as 2.13.0+cpu
    if triton := provenance.get("triton"):
        packages["triton"] = str(triton)
    on_libtorch = provenance.get("code", {}).get("runtime") == "libtorch"
    rules = _ref(_RULES, provenance["rules_aoti"])
    needed = [rules, *([_ref("torch", torch)] if on_libtorch else [])]
    parts = [
        _graph(provenance),
        *(_file(role, path) for role, path in shipped),
        *_operator_sources(provenance),
    ]
    components = [
        *parts,
        {
            "type": "library",
            "bom-ref": rules,
            "name": _RULES,
            "version": provenance["rules_aoti"],
            "description": "the rules, and the runtime that the model is linked with",
            "scope": "required",
            "licenses": [{"license": {"id": "Apache-2.0"}}],
        },
        *(
            _package(name, version, required=on_libtorch and name == "torch")
            for name, version in sorted(packages.items())
        ),
    ]
    model = str(provenance["model"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "machine-learning-model",
                "bom-ref": model,
                "name": program.name,
                "description": f"{model}, compiled by {_RULES}",
                "modelCard": _model_card(program),
                "properties": list(_properties(provenance)),
            }
        },
        "components": components,
        "dependencies": [
            {"ref": model, "dependsOn": [*(part["bom-ref"] for part in parts), *needed]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }


def _packages(lock: str) -> Iterator[tuple[str, str]]:
    """(name, version) of the packages that a lock pins for this Python."""
    for line in lock.replace("\\\n", " ").splitlines():
        match = re.match(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*([^\s;\\]+)(.*)", line)
        if match and _for_this_python(match[3]):
            yield re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]


def _for_this_python(marker: str) -> bool:
    """Whether a marker holds, as far as it is about the Python version; other conditions are
    assumed to hold.
    """
    if " or " in marker:
        return True
    version = tuple(sys.version_info[:3])
    terms = re.findall(r"python_(?:full_)?version\s*(<|>=)\s*['\"]([\d.]+)['\"]", marker)
    bounds = [(sign, tuple(map(int, bound.split(".")))) for sign, bound in terms]
    return all(version < bound if sign == "<" else version >= bound for sign, bound in bounds)


def _ref(name: str, version: str) -> str:
    # In a package URL, "+" would be read as a space.
    kind = "generic" if name == _RULES else "pypi"
    return f"pkg:{kind}/{name}@{version.replace('+', '%2B')}"


def _package(name: str, version: str, *, required: bool) -> dict[str, Any]:
    """A package of the toolchain. Packages that only the build runs are marked as not shipped."""
    return {
        "type": "library",
        "bom-ref": _ref(name, version),
        "name": name,
        "version": version,
        "scope": "required" if required else "excluded",
        "purl": _ref(name, version),
    }


def _graph(provenance: Mapping[str, Any]) -> dict[str, Any]:
    sha256 = str(provenance["graph_sha256"])
    return {
        "type": "data",
        "bom-ref": f"graph:sha256:{sha256}",
        "name": "graph",
        "description": "the exported program that the code was generated from",
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }


def _file(role: str, path: str) -> dict[str, Any]:
    sha256, _ = digests.of_file(path)
    return {
        "type": "data" if role == "weights" else "file",
        "bom-ref": f"{role}:sha256:{sha256}",
        "name": Path(path).name,
        "description": role,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }


def _operator_sources(provenance: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The sources of the model's own operators, which are compiled into it."""
    for target, sources in sorted(provenance.get("custom_ops", {}).items()):
        for name, sha256 in sorted(sources.items()):
            yield {
                "type": "file",
                "bom-ref": f"operators:{target}:{name}",
                "name": name,
                "description": f"source of the operators {target}",
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }


def _model_card(program: ProgramManifest) -> dict[str, Any]:
    inputs = [
        f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
        for tensor in program.inputs
    ]
    outputs = [
        f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
        for tensor in program.outputs
    ]
    return {
        "modelParameters": {
            "inputs": [{"format": text} for text in inputs],
            "outputs": [{"format": text} for text in outputs],
        }
    }


def _properties(provenance: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    code = provenance.get("code", {})
    toolchain = provenance["toolchain"]
    values = {
        "cuda_archs": ", ".join(code.get("cuda_archs", ())),
        "device": code.get("device"),
        "driver_sha256": toolchain["driver_sha256"],
        "graph_sha256": provenance["graph_sha256"],
        "isa": code.get("isa"),
        "lock_sha256": toolchain["lock_sha256"],
        "python": toolchain["python"],
        "runtime": code.get("runtime"),
        "weights_sha256": provenance.get("weights", {}).get("sha256"),
    }
    for name, value in values.items():
        if value:
            yield {"name": f"{_RULES}:{name}", "value": str(value)}
