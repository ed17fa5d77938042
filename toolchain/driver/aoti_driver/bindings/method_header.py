"""The C++ header of a model of several methods."""

from __future__ import annotations

import re

from aoti_driver.bindings import sessions
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

namespace @NAMESPACE@ {

// Tells this class from one of the same name that was made of another target: both may be in one
// binary.
inline namespace @PROGRAM@ {

// The model @LABEL@, compiled for torch @TORCH@, with the methods @NAMES@.
//
// The methods share the weights, and the state where there is one. Every call is checked: sizes,
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

  // The methods without types, in the order @NAMES@: for programs that
  // handle any model.
  std::span<const ::aoti::Model> methods() const { return methods_; }

  static std::span<const ::aoti::ProgramSpec* const> Specs();

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
  ::aoti::Result<{name}Outputs> {name}(const {name}Inputs& inputs) const;

"""


def generate(methods: Methods) -> str:
    names = methods.spec.names
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(methods.spec.label),
            "GUARD": re.sub(r"\W", "_", names.header).upper() + "_" + methods.spec.program_id,
            "PROGRAM": methods.spec.program_id,
            "NAMESPACE": names.namespace,
            "CLASS": names.class_name,
            "TORCH": comment_text(methods.any.program.torch_version),
            "NAMES": ", ".join(method.name for method in methods.methods),
            "STRUCTS": "".join(_structs(method) for method in methods.methods),
            "METHODS": "".join(_method(method) for method in methods.methods),
            "WEIGHTS": comment_text(names.weights_runfile),
            "SESSION_INCLUDE": sessions.INCLUDE if methods.any.has_state else "",
            "SESSION_MEMBERS": sessions.members() if methods.any.has_state else "",
            "SESSION": sessions.session_class(names.class_name) if methods.any.has_state else "",
        },
    )


def _structs(method: Method) -> str:
    return _STRUCTS.format(
        name=method.cpp_name,
        inputs=input_fields(method.model),
        outputs=output_fields(method.model),
    )


def _method(method: Method) -> str:
    title = comment_text(f"{method.name}: {method.model.program.label}")
    text = comment([title, "", *describe(method.model)])
    indented = "\n".join(f"  {line}" for line in text.splitlines())
    return _METHOD.format(name=method.cpp_name, comment=indented)
