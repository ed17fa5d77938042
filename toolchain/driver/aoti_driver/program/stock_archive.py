"""Writes a frozen program as the archive that ``torch.export.load`` reads."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

import torch
from torch._export.serde import schema, serialize

from aoti_driver.base.errors import DriverError
from aoti_driver.contract.manifest import ProgramManifest
from aoti_driver.program import storage
from aoti_driver.program.archive import Pt2Archive
from aoti_driver.program.graph_file import read_document
from aoti_driver.program.loading import in_spec, make_example_inputs
from aoti_driver.program.weights_file import raw_bytes


def write_archive(
    graph_path: str | os.PathLike[str],
    manifest: ProgramManifest,
    weights: Mapping[str, torch.Tensor],
    archive: Pt2Archive,
) -> None:
    """Writes the program as ``torch.export.save`` would, without loading it."""
    serde: Any = serialize
    document = read_document(graph_path, manifest.label, manifest)
    program = document["program"]
    archive.write_string("models/model.json", json.dumps(program, allow_nan=False))
    examples = b""  # torch's loader treats this as missing
    with contextlib.suppress(DriverError):  # for types that only the user's code registers
        inputs = make_example_inputs(document["example_inputs"], in_spec(program, ""))
        examples = serialize.serialize_torch_artifact(inputs)
    archive.write_bytes("data/sample_inputs/model.pt", examples)
    tensors = storage.make_tensors(document, weights, manifest.label)
    for folder, config, prefix, key in (
        ("weights", "model_weights_config", "weight_", "state_dict"),
        ("constants", "model_constants_config", "tensor_", "constants"),
    ):
        names = document[key]
        views = document["tensors"]
        stored = {views[name]["stored"]: None for name in names}
        records = {name: f"{prefix}{i}" for i, name in enumerate(stored)}
        for name, record in records.items():
            data = raw_bytes(weights[name])
            archive.write_stream(f"data/{folder}/{record}", len(data), [data])
        payload = {
            name: schema.PayloadMeta(
                path_name=records[views[name]["stored"]],
                is_param=views[name]["parameter"],
                use_pickle=False,
                tensor_meta=serialize.serialize_tensor_meta(tensors[name]),
            )
            for name in names
        }
        table = serde._dataclass_to_dict(schema.PayloadConfig(config=payload))
        text = json.dumps(table, cls=serialize.EnumEncoder)
        archive.write_string(f"data/{folder}/{config}.json", text)
