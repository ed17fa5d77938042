"""Makes the files that the contestants read, for one model, in one folder.

  module    the module with its weights, each case's inputs, and what eager PyTorch answers
  onnx      for ONNX Runtime
  openvino  OpenVINO's own format, from ONNX
  gguf      for llama.cpp

Each is a run of this program, so that one that fails leaves the others alone.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness.config import Model
from benchmarks.peers.protocol import write_safetensors


def resolve(name: str) -> Callable[..., Any]:
    """The callable that `package.module:callable` names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


def read_weights(path: str) -> dict[str, Tensor]:
    if path.endswith(".safetensors"):
        from safetensors.torch import load_file

        tensors: dict[str, Tensor] = load_file(path)
        return tensors
    loaded: dict[str, Tensor] = torch.load(path, weights_only=True)
    return loaded


def build_module(model: Model) -> torch.nn.Module:
    """The module in eager mode. Weights go to the entry point, or load by name, as in a build."""
    entry = resolve(model.entry_point)
    takes_weights = model.weights and not inspect.isclass(entry)
    module: torch.nn.Module = entry(*model.weights) if takes_weights else entry()
    if model.weights and not takes_weights:
        module.load_state_dict(read_weights(model.weights[0]))
    return module.eval()


def generated_inputs(model: Model, case: str) -> dict[str, Tensor]:
    """Random inputs, the same in every run."""
    generator = torch.Generator().manual_seed(0)
    inputs = {}
    for name, spec in model.inputs.items():
        shape = spec.shape(model.cases[case])
        dtype = getattr(torch, spec.dtype)
        if dtype.is_floating_point:
            values = torch.rand(shape, generator=generator, dtype=dtype)
            inputs[name] = values * (spec.high - spec.low) + spec.low
        else:
            low, high = int(spec.low), int(spec.high) + 1
            inputs[name] = torch.randint(low, high, shape, generator=generator, dtype=dtype)
    return inputs


def case_inputs(model: Model, module: torch.nn.Module, case: str) -> dict[str, Tensor]:
    if not model.case_inputs:
        return generated_inputs(model, case)
    inputs: dict[str, Tensor] = resolve(model.case_inputs)(module, case)
    return inputs


def save(path: Path, tensors: dict[str, Tensor]) -> None:
    write_safetensors(str(path), {name: tensor.numpy() for name, tensor in tensors.items()})


def read_bytes(model: Model, module: torch.nn.Module) -> int:
    """How much of the weights a call reads at least. What has two names counts once."""
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    narrow = {
        name
        for name, tensor in module.state_dict().items()
        if name in parameters and tensor.dim() == 2
    }
    shares = {"float32": 1, "bfloat16": 2, "int8": 4}
    share = shares[model.build_precision]
    sizes = {
        tensor.data_ptr(): tensor.nbytes // share if name in narrow else tensor.nbytes
        for name, tensor in module.state_dict().items()
        if not name.endswith(model.unread_weights)
    }
    return sum(sizes.values())


def prepare_module(model: Model, folder: Path) -> None:
    module = build_module(model)
    torch.save(module, folder / "module.pt")
    for case in model.all_cases:
        inputs = case_inputs(model, module, case)
        save(folder / f"{case}.safetensors", inputs)
        complete = {
            # Copies: a model may write to its inputs.
            name: inputs[name].clone()
            if name in inputs
            else torch.zeros(spec.shape({}), dtype=getattr(torch, spec.dtype))
            for name, spec in model.inputs.items()
        }
        result = module(**complete)
        outputs: Sequence[Tensor] = result if isinstance(result, (tuple, list)) else [result]
        expected = {f"{i:04}": output for i, output in enumerate(outputs)}
        save(folder / f"{case}.expected.safetensors", expected)
    facts = {
        "read_bytes": read_bytes(model, module),
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
    }
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def export_onnx(module: torch.nn.Module, inputs: dict[str, Tensor], path: Path, dims: Any) -> None:
    torch.onnx.export(
        module, kwargs=inputs, f=str(path), dynamo=True, dynamic_shapes=dims, verbose=False
    )


def quantize_onnx(path: Path) -> None:
    """Weights of products become int8, with a scale for each column; a call rounds activations."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    wide = onnx.load(path)  # with the weights, which are in another file
    # The quantizer refuses a model whose recorded shapes are not those that it infers.
    del wide.graph.value_info[:]
    quantize_dynamic(wide, path, per_channel=True, weight_type=QuantType.QInt8)


def prepare_onnx(model: Model, folder: Path) -> None:
    module: torch.nn.Module = torch.load(folder / "module.pt", weights_only=False)
    onnx = folder / "onnx"
    onnx.mkdir(exist_ok=True)
    table: dict[str, tuple[str, str | None]] = {}
    if model.onnx_variant:
        for case in model.all_cases:
            variant, inputs = resolve(model.onnx_variant)(module, case)
            save(onnx / f"{case}.safetensors", inputs)
            export_onnx(variant, inputs, onnx / f"{case}.onnx", None)
            table[case] = case, f"{case}.safetensors"
    else:
        # The last case is the largest: with a size of 1 a dim would be taken for a constant.
        inputs = generated_inputs(model, list(model.cases)[-1])
        dims = {
            name: {
                i: torch.export.Dim.AUTO for i, size in enumerate(spec.sizes) if not size.isdigit()
            }
            for name, spec in model.inputs.items()
        }
        export_onnx(module, inputs, onnx / "model.onnx", dims)
        table = dict.fromkeys(model.all_cases, ("model", None))
    if model.build_precision == "int8":
        for name in sorted({name for name, _ in table.values()}):
            quantize_onnx(onnx / f"{name}.onnx")
    (onnx / "cases.json").write_text(json.dumps(table), encoding="utf-8")


def prepare_openvino(model: Model, folder: Path) -> None:
    from benchmarks.peers.silent_openvino import openvino

    table = json.loads((folder / "onnx/cases.json").read_text(encoding="utf-8"))
    for name in sorted({name for name, _ in table.values()}):
        converted = openvino.convert_model(folder / f"onnx/{name}.onnx")
        openvino.save_model(converted, folder / f"onnx/{name}.xml", compress_to_fp16=False)


def prepare_gguf(model: Model, folder: Path) -> None:
    """The model's GGUF file with all its matrices in one format."""
    import gguf
    from gguf.quants import dequantize, quantize

    wanted = gguf.GGMLQuantizationType[model.gguf]
    reader: Any = gguf.GGUFReader(model.weights[0])
    fields = reader.fields
    writer: Any = gguf.GGUFWriter(
        folder / f"model-{model.gguf}.gguf", fields["general.architecture"].contents()
    )
    for name, field in fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind, *element = field.types
        writer.add_key_value(name, field.contents(), kind, element[0] if element else None)
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        values = values.reshape([int(size) for size in reversed(tensor.shape)])
        kind = wanted if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


STEPS = {
    "module": prepare_module,
    "onnx": prepare_onnx,
    "openvino": prepare_openvino,
    "gguf": prepare_gguf,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    with torch.no_grad():
        STEPS[args.step](Model.read(args.model), args.folder)


if __name__ == "__main__":
    main()
