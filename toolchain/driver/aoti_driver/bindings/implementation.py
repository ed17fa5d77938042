"""The C++ source of a model: its tables, and the typed class over aoti::Model."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from aoti_driver.bindings import cpp_sizes, digest_source, sessions
from aoti_driver.bindings.cpp_sizes import CppSizes
from aoti_driver.bindings.header import tensor_type
from aoti_driver.bindings.model import Input, Model, Output
from aoti_driver.bindings.text import comment_text, cpp_string, substitute
from aoti_driver.contract import polynomials
from aoti_driver.contract.code_parts import Packed
from aoti_driver.contract.dtypes import DTYPES
from aoti_driver.contract.size_expr import python_text
from aoti_driver.packing import packed_format

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#include "@HEADER@"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
@SIZE_INCLUDES@
namespace aoti_programs {
@FINDERS@}  // namespace aoti_programs

extern "C" __attribute__((visibility("hidden"))) const char @PROGRAM@_provenance_begin[];
extern "C" __attribute__((visibility("hidden"))) const char @PROGRAM@_provenance_end[];
@DIGEST_DECLARATION@@EMBEDDED@
namespace @NAMESPACE@::@PROGRAM@ {
namespace {

using ::aoti::DType;
using ::aoti::Extent;

@TABLES@

constexpr ::aoti::ProgramSpec kSpec = {
    .name = @NAME@,
    .label = @LABEL_STRING@,
    .torch_version = @TORCH@,
    .weights_runfile = @WEIGHTS@,
@EMBEDDED_FIELDS@    .provenance_begin = @PROGRAM@_provenance_begin,
    .provenance_end = @PROGRAM@_provenance_end,
    .digest = @DIGEST@,
@SPANS@
    .threads = @THREADS@,
    .variants = kVariants,
};

}  // namespace

const ::aoti::ProgramSpec& @CLASS@::Spec() { return kSpec; }

::aoti::Result<@CLASS@> @CLASS@::Load(const ::aoti::LoadOptions& options) {
  auto model = ::aoti::Model::Load(kSpec, options);
  if (!model.ok()) return std::move(model).error();
  return @CLASS@(*std::move(model));
}

::aoti::Result<@CLASS@::Outputs> @CLASS@::Run(@PARAMETER@@OPTIONS@) const {
  const std::array<::aoti::TensorView, @NUM_INPUTS@> views = {@VIEWS@};
  auto results = model_.Run(views@PASSED_OPTIONS@);
  if (!results.ok()) return std::move(results).error();
  return Outputs{@RESULTS@};
}
@SESSION@
}  // namespace @NAMESPACE@::@PROGRAM@
"""


_FINDER = """\
::aoti::Result<const ::aoti::ProgramVTable*> Find_{program}(
    const ::aoti::ProgramSpec& spec);
"""

_EMBEDDED = """
extern "C" __attribute__((visibility("hidden"))) const std::byte {program}_weights_begin[];
extern "C" __attribute__((visibility("hidden"))) const std::byte {program}_weights_end[];
"""

_EMBEDDED_FIELDS = """\
    .embedded_begin = {program}_weights_begin,
    .embedded_end = {program}_weights_end,
"""


class _Integers:
    """Shapes and strides of all weights, one after the other; equal ones are stored once."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._known: dict[tuple[int, ...], int] = {}

    def span(self, values: tuple[int, ...]) -> str:
        if not values:
            return "{}"
        if values not in self._known:
            self._known[values] = len(self.values)
            self.values += values
        return f"Ints({self._known[values]}, {len(values)})"


def generate(model: Model) -> str:
    embedded = fields = ""
    if model.spec.embedded:
        embedded = _EMBEDDED.format(program=model.program_id)
        fields = embedded_fields(model.program_id)
    tables = Tables()
    tables.add_all(model)
    on_cuda = model.on_cuda
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(model.program.label),
            "HEADER": model.spec.header,
            "PROGRAM": model.program_id,
            "SIZE_INCLUDES": cpp_sizes.INCLUDES if model.computes_sizes else "",
            "FINDERS": "".join(finder(v.program_id) for v in model.variants),
            "NAMESPACE": model.spec.namespace,
            "TABLES": "\n\n".join(tables.texts),
            "NAME": cpp_string(model.program.name),
            "LABEL_STRING": cpp_string(model.program.label),
            "TORCH": cpp_string(model.program.torch_version),
            "WEIGHTS": cpp_string(model.spec.weights_runfile),
            "EMBEDDED": embedded,
            "EMBEDDED_FIELDS": fields,
            "DIGEST": digest_source.symbol(model.program_id),
            "DIGEST_DECLARATION": digest_source.declaration(model.program_id),
            "THREADS": model.spec.threads,
            "SPANS": "\n".join(f"    .{field} = {name}," for field, name in tables.spans.items()),
            "CLASS": model.spec.class_name,
            "PARAMETER": "const Inputs& inputs" if model.inputs else "const Inputs&",
            "OPTIONS": ", const ::aoti::RunOptions& options" if on_cuda else "",
            "PASSED_OPTIONS": ", options" if on_cuda else "",
            "NUM_INPUTS": len(model.inputs),
            "VIEWS": views(model),
            "RESULTS": results(model),
            "SESSION": sessions.source(model.spec.class_name, several_methods=False)
            if model.has_state
            else "",
        },
    )


def finder(program_id: str) -> str:
    return _FINDER.format(program=program_id)


def embedded_fields(program_id: str) -> str:
    return _EMBEDDED_FIELDS.format(program=program_id)


def views(model: Model) -> str:
    return ", ".join(map(_view, model.inputs))


def results(model: Model) -> str:
    return ", ".join(
        f".{item.cpp_name} = {result_value(i, item)}" for i, item in enumerate(model.outputs)
    )


def result_value(i: int, item: Output) -> str:
    number = "()" if item.tensor.number is not None else ""
    return f"{tensor_type(item)}(std::move((*results)[{i}])){number}"


@dataclasses.dataclass
class Tables:
    """The definitions of the tables, and ProgramSpec's fields that refer to them."""

    texts: list[str] = dataclasses.field(default_factory=list)
    spans: dict[str, str] = dataclasses.field(default_factory=dict)

    def add_shared(self, model: Model) -> None:
        """Adds the tables that all methods of a model share."""
        integers = _Integers()
        weights = _weights(model, integers)
        if integers.values:
            self.texts.append(_integer_pool(integers.values))
        self._add_weights(model, weights)

    def add_all(
        self, model: Model, shared: Tables | None = None, reads_packed: Collection[str] = ()
    ) -> None:
        """Adds a program's tables.

        shared: has those of the weights, for a method; reads_packed: the packed weights that the
        method reads.
        """
        integers = _Integers()
        cpp = CppSizes(model.dims)
        weights = [] if shared else _weights(model, integers)
        indices = model.weight_indices
        constants = [
            tuple(
                f"{{{indices[c.source]}, {_dtype(c.dtype)}, {integers.span(c.shape)}, "
                f"{integers.span(c.stride)}, {c.offset}}}"
                for c in variant.constants
            )
            for variant in model.variants
        ]
        if integers.values:
            self.texts.append(_integer_pool(integers.values))
        if model.computes_sizes:
            self.texts.append(cpp_sizes.HELPERS)
        for i, item in enumerate(model.inputs):
            extents = []
            for d, size in enumerate(item.sizes):
                name = f"InputSize{i}_{d}"
                extents.append(cpp.extent(size, name))
                if polynomials.computed(size):
                    self.texts.append(_size_function(name, str(size), cpp.size(size)))
                    self._add_array(f"k{name}Dims", "std::int32_t", cpp.indices(size))
            self._add_array(f"kInputSizes{i}", "Extent", extents)
            if item.strides is not None:
                strides = [cpp.stride(stride) for stride in item.strides]
                self.texts.append(_stride_function(i, item.tensor.name, strides))
        for i, output in enumerate(model.outputs):
            sizes = [cpp_string(str(size)) for size in output.sizes]
            self._add_array(f"kOutputSizes{i}", "const char*", sizes)

        self._add_field("dims", "kDims", "::aoti::DimSpec", [cpp.dim(dim) for dim in model.dims])
        inputs = [_input(i, item) for i, item in enumerate(model.inputs)]
        self._add_field("inputs", "kInputs", "::aoti::InputSpec", inputs)
        outputs = [_output(i, item) for i, item in enumerate(model.outputs)]
        self._add_field("outputs", "kOutputs", "::aoti::OutputSpec", outputs)
        if model.program.guards:
            self.texts += [
                _guard_function(i, python_text(guard), cpp.condition(guard))
                for i, guard in enumerate(model.program.guards)
            ]
        for i, guard in enumerate(model.program.guards):
            self._add_array(f"kGuardDims{i}", "std::int32_t", cpp.indices(guard))
        conditions = [
            f"{{{cpp_string(python_text(guard))}, {f'kGuardDims{i}' if guard.dims else '{}'}, "
            f"&Guard{i}}}"
            for i, guard in enumerate(model.program.guards)
        ]
        if conditions:
            self._add_field("guards", "kGuards", "::aoti::GuardSpec", conditions)
        if shared:
            self.spans |= shared.spans
            reads = ["true" if p.name in reads_packed else "false" for p in model.packed]
            if reads:
                self._add_field("reads_packed", "kReadsPacked", "bool", reads)
        else:
            self._add_weights(model, weights)
        # Most variants read the same constants in the same way.
        tables: dict[tuple[str, ...], str] = {}
        for items in dict.fromkeys(constants):
            tables[items] = f"kConstants{len(tables) or ''}" if items else "{}"
            self._add_array(tables[items], "::aoti::ConstantSpec", items)
        variants = [
            f"{{{cpp_string(v.isa)}, {tables[items]}, &::aoti_programs::Find_{v.program_id}"
            f"{', ::aoti::DeviceType::kCuda' if v.device == 'cuda' else ''}}}"
            for v, items in zip(model.variants, constants, strict=True)
        ]
        self._add_array("kVariants", "::aoti::ProgramVariant", variants)

    def _add_weights(self, model: Model, weights: list[str]) -> None:
        indices = model.weight_indices
        packed = [_packed(p, indices[p.source], model) for p in model.packed]
        self._add_field("weights", "kWeights", "::aoti::WeightSpec", weights)
        self._add_field("packed", "kPacked", "::aoti::PackedSpec", packed)

    def _add_array(self, name: str, element: str, items: Sequence[str]) -> None:
        """Adds an array, except if it is empty, because C++ has no arrays of length 0."""
        if items:
            body = "".join(f"    {item},\n" for item in items)
            element = f"{element} const" if element.endswith("*") else f"{element}"
            self.texts.append(f"constexpr {element} {name}[] = {{\n{body}}};")

    def _add_field(self, field: str, name: str, element: str, items: list[str]) -> None:
        self._add_array(name, element, items)
        self.spans[field] = name if items else "{}"


def _weights(model: Model, integers: _Integers) -> list[str]:
    return [
        f"{{{cpp_string(w.name)}, {_dtype(w.dtype)}, {integers.span(w.shape)}"
        f"{', true' if w.mutated else ''}}}"
        for w in model.weights
    ]


def _integer_pool(values: list[int]) -> str:
    lines = [values[i : i + 16] for i in range(0, len(values), 16)]
    body = "".join(f"    {', '.join(map(str, line))},\n" for line in lines)
    return (
        "// Shapes and strides, in one array.\n"
        f"constexpr std::int64_t kIntegers[] = {{\n{body}}};\n\n"
        "constexpr std::span<const std::int64_t> Ints(std::size_t first, std::size_t count) {\n"
        "  return std::span<const std::int64_t>(kIntegers).subspan(first, count);\n"
        "}"
    )


def _stride_function(i: int, name: str, strides: list[str]) -> str:
    uses_dims = any("dims[" in stride for stride in strides)
    parameter = "const std::int64_t* dims" if uses_dims else "const std::int64_t*"
    body = "".join(f"  strides[{d}] = {stride};\n" for d, stride in enumerate(strides))
    if any("defined" in stride for stride in strides):
        body = f"  bool defined = true;\n{body}"
    return f"// {name}\nvoid InputStrides{i}({parameter}, std::int64_t* strides) {{\n{body}}}"


def _size_function(name: str, text: str, cpp: str) -> str:
    return (
        f"// {comment_text(text)}\n"
        f"std::int64_t {name}(const std::int64_t* dims) {{\n"
        "  [[maybe_unused]] bool defined = true;\n"
        f"  return {cpp};\n"
        "}"
    )


def _guard_function(i: int, text: str, cpp: str) -> str:
    return (
        f"// {comment_text(text)}\n"
        f"bool Guard{i}(const std::int64_t* dims) {{\n"
        "  bool defined = true;\n"
        f"  const bool holds = {cpp};\n"
        "  return defined && holds;\n"
        "}"
    )


def _dtype(dtype: str) -> str:
    return f"DType::{DTYPES[dtype].enumerator}"


def _input(i: int, item: Input) -> str:
    fields = [
        f".name = {cpp_string(item.tensor.name)}",
        f".dtype = {_dtype(item.tensor.dtype)}",
        f".sizes = {f'kInputSizes{i}' if item.sizes else '{}'}",
    ]
    if item.tensor.mutated:
        fields.append(".mutated = true")
    if item.checked_values is not None:
        low, high = item.checked_values
        fields += [".has_values = true", f".min_value = {low}", f".max_value = {high}"]
    if item.strides is not None:
        fields.append(f".strides = &InputStrides{i}")
    if item.value_dim >= 0:
        fields.append(f".value_dim = {item.value_dim}")
    if item.tensor.number is not None:
        fields.append(".number = true")
    if item.float_limits is not None:
        fields += [f".low = {item.float_limits[0]!r}", f".high = {item.float_limits[1]!r}"]
    if item.default_text is not None:
        fields += [".has_default = true", f".default_{item.tensor.number} = {item.default_text}"]
    return f"{{{', '.join(fields)}}}"


def _view(item: Input) -> str:
    if item.tensor.number is not None:
        return f"::aoti::ViewOfNumber(inputs.{item.cpp_name})"
    return f"inputs.{item.cpp_name}.view()"


def _packed(item: Packed, weight: int, model: Model) -> str:
    size = packed_format.layout_size(item.kind, model.weights[weight].shape, item.options)
    return (
        f"{{{weight}, {cpp_string(item.kind)}, {cpp_string(item.name)}, {size}, "
        f"{'true' if item.only else 'false'}}}"
    )


def _output(i: int, item: Output) -> str:
    sizes = f"kOutputSizes{i}" if item.sizes else "{}"
    return f"{{{cpp_string(item.tensor.name)}, {_dtype(item.tensor.dtype)}, {sizes}}}"
