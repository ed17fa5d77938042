"""The C++ header of a model of several methods."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aoti_driver.bindings import sessions, variant_header
from aoti_driver.bindings.functions import Function, functions
from aoti_driver.bindings.header import comment, input_fields, output_fields
from aoti_driver.bindings.model import Method, Methods
from aoti_driver.bindings.signature_text import describe
from aoti_driver.bindings.text import comment_text, substitute

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#ifndef @GUARD@
#define @GUARD@

#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/cxx20.h"
#include "aoti/dtype.h"
#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
@SESSION_INCLUDE@#include "aoti/tensor.h"
#include "aoti/tensor_view.h"
@VARIANTS_INCLUDE@
namespace @NAMESPACE@ {

// Tells this class from one of the same name that was made of another target: both may be in one
// binary.
inline namespace @PROGRAM@ {

// The model @LABEL@, compiled for torch @TORCH@, with @WITH@.
//
// Its programs share the weights, and the state where there is one. Every call is checked: sizes,
// dtypes, strides and the relations between inputs. Inputs are borrowed until the call returns;
// outputs are contiguous, and the caller owns them. An output is passed to another method without a
// copy: `.memory = encoded->output`.
//
// Thread safe: any number of threads may call methods of one object. Calls that work on one state
// run one after the other.
class @CLASS@ {
 public:
@STRUCTS@  // Maps the weights once, and prepares all methods. Without options, the weights are in
  // the runfiles or beside the program: @WEIGHTS@
  static ::aoti::Result<@CLASS@> Load(const ::aoti::LoadOptions& options = {});

@METHODS@@SESSION_MEMBERS@  // Replaces the weights of all methods at once, also while calls run:
  // see aoti::Model::SwapWeights().
  std::optional<::aoti::Error> SwapWeights(const std::string& path,
                                           bool copy_weights = false) const;
  std::optional<::aoti::Error> SwapAdapter(const std::string& adapter_path,
                                           const std::string& weights_path = {},
                                           bool copy_weights = false) const;

  // Without types, in the order @NAMES@: for programs that handle any model.
  std::span<const ::aoti::Model> methods() const { return methods_; }

  static std::span<const ::aoti::ProgramSpec* const> Specs();
@FUNCTIONS@
 private:
  explicit @CLASS@(std::vector<::aoti::Model> methods) : methods_(std::move(methods)) {}

  std::vector<::aoti::Model> methods_;
};

@SESSION@}  // namespace @PROGRAM@
}  // namespace @NAMESPACE@

#endif  // @GUARD@
"""

_STRUCTS = """\
  struct {name}Inputs {{{inputs}}};

  struct {name}Outputs {{{outputs}}};

"""

_METHOD = """\
{comment}
  //
  // Errors: see aoti::Model::Run().
  ::aoti::Result<{name}Outputs> {name}(const {name}Inputs& inputs{options}) const;

"""


def generate(methods: Methods) -> str:
    names = methods.spec.names
    found = functions(methods)
    variants = [function for function in found if function.has_variants]
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(methods.spec.label),
            "GUARD": re.sub(r"\W", "_", names.header).upper() + "_" + methods.spec.program_id,
            "PROGRAM": methods.spec.program_id,
            "NAMESPACE": names.namespace,
            "CLASS": names.class_name,
            "TORCH": comment_text(methods.any.program.torch_version),
            "WITH": _with(found),
            "NAMES": ", ".join(shown(method) for method in methods.methods),
            "STRUCTS": "".join(map(_structs, found)),
            "METHODS": "".join(map(_declaration, found)),
            "VARIANTS_INCLUDE": variant_header.INCLUDES if variants else "",
            "FUNCTIONS": variant_header.members(variants) if variants else "",
            "WEIGHTS": comment_text(names.weights_runfile),
            "SESSION_INCLUDE": sessions.INCLUDE if methods.any.has_state else "",
            "SESSION_MEMBERS": sessions.members() if methods.any.has_state else "",
            "SESSION": sessions.session_class(names.class_name) if methods.any.has_state else "",
        },
    )


def _structs(function: Function) -> str:
    if function.has_variants:
        return variant_header.structs(function)
    (method,) = function.methods
    return _STRUCTS.format(
        name=method.cpp_name,
        inputs=input_fields(method.model),
        outputs=output_fields(method.model),
    )


def _declaration(function: Function) -> str:
    if function.has_variants:
        return variant_header.declarations(function)
    (method,) = function.methods
    options = variant_header.OPTIONS if function.on_cuda else ""
    title = comment_text(f"{method.name}: {method.model.program.label}")
    text = comment([title, "", *describe(method.model)])
    indented = "\n".join(f"  {line}" for line in text.splitlines())
    return _METHOD.format(name=method.cpp_name, comment=indented, options=options)


def shown(method: Method) -> str:
    return f"{method.name}.{method.variant}" if method.variant else method.name


def _with(found: Sequence[Function]) -> str:
    if len(found) == 1 and found[0].single:
        return f"the variants {', '.join(method.variant for method in found[0].methods)}"
    return f"the methods {', '.join(function.name for function in found)}"
