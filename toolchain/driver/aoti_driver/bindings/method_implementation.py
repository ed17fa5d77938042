"""The C++ source of a model of several methods: its tables, and the typed class."""

from __future__ import annotations

from aoti_driver.bindings import (
    cpp_sizes,
    digest_source,
    implementation,
    sessions,
    variant_implementation,
)
from aoti_driver.bindings.functions import functions
from aoti_driver.bindings.implementation import Tables
from aoti_driver.bindings.model import Method, Methods
from aoti_driver.bindings.text import comment_text, cpp_string, substitute

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#include "@HEADER@"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
@SIZE_INCLUDES@
namespace aoti_programs {
@FINDERS@}  // namespace aoti_programs

@SYMBOLS@
namespace @NAMESPACE@::@PROGRAM@ {
namespace {

using ::aoti::DType;
using ::aoti::Extent;

@SHARED@

@SPECS@constexpr const ::aoti::ProgramSpec* kSpecs[] = {@SPEC_LIST@};

@FUNCTIONS@
::aoti::Error MovedFrom() {
  return {::aoti::ErrorCode::kInvalidArgument,
          "this @CLASS@ was moved from; use the one that it was moved to"};
}

}  // namespace

std::span<const ::aoti::ProgramSpec* const> @CLASS@::Specs() { return kSpecs; }
@FUNCTIONS_MEMBER@
::aoti::Result<@CLASS@> @CLASS@::Load(const ::aoti::LoadOptions& options) {
  auto methods = ::aoti::Model::LoadMethods(kSpecs, options);
  if (!methods.ok()) return std::move(methods).error();
  return @CLASS@(*std::move(methods));
}

std::optional<::aoti::Error> @CLASS@::SwapWeights(const std::string& path,
                                                  bool copy_weights) const {
  return SwapAdapter({}, path, copy_weights);
}

std::optional<::aoti::Error> @CLASS@::SwapAdapter(const std::string& adapter_path,
                                                  const std::string& weights_path,
                                                  bool copy_weights) const {
  if (methods_.empty()) return MovedFrom();
  return methods_[0].SwapAdapter(adapter_path, weights_path, copy_weights);
}

@SESSION@@CALLS@}  // namespace @NAMESPACE@::@PROGRAM@
"""

_FUNCTIONS_MEMBER = """
std::span<const ::aoti::FunctionSpec* const> {cls}::Functions() {{ return kFunctions; }}
"""

_SPEC = """\
namespace method_{key} {{

{tables}

constexpr ::aoti::ProgramSpec kSpec = {{
    .name = {shown},
    .label = {label},
    .torch_version = {torch},
    .weights_runfile = {weights},
{embedded}    .provenance_begin = {program}_provenance_begin,
    .provenance_end = {program}_provenance_end,
    .digest = {digest},
{spans}
    .threads = {threads},
    .variants = kVariants,
}};

}}  // namespace method_{key}

"""

_CALL = """\
::aoti::Result<{cls}::{name}Outputs> {cls}::{name}({parameter}) const {{
  const std::array<::aoti::TensorView, {count}> views = {{{views}}};
  if (methods_.empty()) return MovedFrom();
  auto results = methods_[{index}].Run(views{passed});
  if (!results.ok()) return std::move(results).error();
  return {name}Outputs{{{results}}};
}}

"""

_SYMBOL = 'extern "C" __attribute__((visibility("hidden"))) const {type} {program}_{what}[];\n'


def generate(methods: Methods) -> str:
    spec = methods.spec
    all_functions = functions(methods)
    variants = [function for function in all_functions if function.has_variants]
    models = [method.model for method in methods.methods]
    shared = Tables()
    shared.add_shared(methods.any)
    finders = dict.fromkeys(v.program_id for model in models for v in model.variants)
    computes = any(model.computes_sizes for model in models)
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(spec.label),
            "HEADER": spec.names.header,
            "SIZE_INCLUDES": cpp_sizes.INCLUDES if computes else "",
            "FINDERS": "".join(implementation.finder(program) for program in finders),
            "SYMBOLS": _symbols(methods),
            "NAMESPACE": spec.names.namespace,
            "PROGRAM": spec.program_id,
            "CLASS": spec.names.class_name,
            "SHARED": "\n\n".join(shared.texts),
            "SESSION": sessions.source(spec.names.class_name, several_methods=True)
            if methods.any.has_state
            else "",
            "SPECS": "".join(_spec(methods, method, shared) for method in methods.methods),
            "SPEC_LIST": ", ".join(f"&method_{m.key}::kSpec" for m in methods.methods),
            "FUNCTIONS": "".join(variant_implementation.tables(methods, f) for f in variants)
            + (variant_implementation.functions_list(variants) if variants else ""),
            "FUNCTIONS_MEMBER": _FUNCTIONS_MEMBER.format(cls=spec.names.class_name)
            if variants
            else "",
            "CALLS": "".join(
                variant_implementation.calls(methods.spec.names.class_name, function)
                if function.has_variants
                else _call(methods, *function.programs[0])
                for function in all_functions
            ),
        },
    )


def _symbols(methods: Methods) -> str:
    """Each program has a provenance; the digest, and the weights where they are embedded, are those
    of all.
    """
    text = "".join(
        _SYMBOL.format(type="char", program=method.model.program_id, what=f"provenance_{end}")
        for method in methods.methods
        for end in ("begin", "end")
    )
    program = methods.spec.program_id
    text += digest_source.declaration(program)
    if methods.spec.names.embedded:
        for end in ("begin", "end"):
            text += _SYMBOL.format(type="std::byte", program=program, what=f"weights_{end}")
    return text


def _spec(methods: Methods, method: Method, shared: Tables) -> str:
    model = method.model
    tables = Tables()
    tables.add_all(model, shared, reads_packed=method.packed)
    embedded = ""
    if methods.spec.names.embedded:
        embedded = implementation.embedded_fields(methods.spec.program_id)
    return _SPEC.format(
        key=method.key,
        tables="\n\n".join(tables.texts),
        shown=cpp_string(methods.spec.shown(method.name, method.variant)),
        label=cpp_string(model.program.label),
        torch=cpp_string(model.program.torch_version),
        weights=cpp_string(methods.spec.names.weights_runfile),
        embedded=embedded,
        program=model.program_id,
        digest=digest_source.symbol(methods.spec.program_id),
        spans="\n".join(f"    .{field} = {table}," for field, table in tables.spans.items()),
        threads=methods.spec.names.threads,
    )


def _call(methods: Methods, index: int, method: Method) -> str:
    name = f"{method.cpp_name}Inputs"
    parameter = f"const {name}& inputs" if method.model.inputs else f"const {name}&"
    on_cuda = method.model.on_cuda
    return _CALL.format(
        cls=methods.spec.names.class_name,
        name=method.cpp_name,
        parameter=parameter + (", const ::aoti::RunOptions& options" if on_cuda else ""),
        passed=", options" if on_cuda else "",
        count=len(method.model.inputs),
        views=implementation.views(method.model),
        index=index,
        results=implementation.results(method.model),
    )
