"""The C++ header of a model."""

from __future__ import annotations

import re

from aoti_driver.bindings import results, sessions
from aoti_driver.bindings.model import Input, Model, Output
from aoti_driver.bindings.signature_text import describe, number_text
from aoti_driver.bindings.text import comment_text, substitute
from aoti_driver.contract.dtypes import DTYPES

_TEMPLATE = """\
// Generated from @LABEL@ by rules_aoti. Do not edit.

#ifndef @GUARD@
#define @GUARD@

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aoti/cxx20.h"
#include "aoti/dtype.h"
#include "aoti/error.h"
#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
@SESSION_INCLUDE@#include "aoti/tensor.h"
#include "aoti/tensor_view.h"

namespace @NAMESPACE@ {

// Tells this class from one of the same name that was made of another target: both may be in one
// binary.
inline namespace @PROGRAM@ {

// The model @LABEL@, compiled for torch @TORCH@, @DEVICE@, @ISA@.
//
@SIGNATURE@
//
// Every call is checked: sizes, dtypes, strides and the relations between inputs. Inputs are
// borrowed until Run() returns; outputs are contiguous, and the caller owns them.
//
@THREADS@
class @CLASS@ {
 public:
  struct Inputs {@INPUTS@};

  struct Outputs {@OUTPUTS@};

  // Maps the weights and prepares the program. Without options, the weights are found in the
  // runfiles or beside the program: @WEIGHTS@
  static ::aoti::Result<@CLASS@> Load(const ::aoti::LoadOptions& options = {});

  // Errors: see aoti::Model::Run().
  ::aoti::Result<Outputs> Run(const Inputs& inputs@OPTIONS@) const;

@SESSION_MEMBERS@  // Replaces the weights, also while calls run: see aoti::Model::SwapWeights().
  std::optional<::aoti::Error> SwapWeights(const std::string& path,
                                           bool copy_weights = false) const {
    return model_.SwapWeights(path, copy_weights);
  }
  std::optional<::aoti::Error> SwapAdapter(const std::string& adapter_path,
                                           const std::string& weights_path = {},
                                           bool copy_weights = false) const {
    return model_.SwapAdapter(adapter_path, weights_path, copy_weights);
  }

  // The same model without types: for programs that handle any model.
  const ::aoti::Model& model() const { return model_; }

  // What the model was made of, as JSON: versions, and digests of the graph and the toolchain.
  static std::string_view Provenance() { return Spec().provenance(); }

  static const ::aoti::ProgramSpec& Spec();

 private:
  explicit @CLASS@(::aoti::Model model) : model_(std::move(model)) {}

  ::aoti::Model model_;
};

@SESSION@}  // namespace @PROGRAM@
}  // namespace @NAMESPACE@

#endif  // @GUARD@
"""

_STATELESS = """\
Thread safe: any number of threads may call Run() of one object; LoadOptions::num_runners bounds
how many run at the same time."""

_STATEFUL = """\
The model has state, which lasts from one call to the next. Each loaded object has a state of its
own, and so has each session that NewSession() makes. Thread safe: calls that work on one state
run one after the other, the others at the same time."""


def generate(model: Model) -> str:
    return substitute(
        _TEMPLATE,
        {
            "LABEL": comment_text(model.program.label),
            # The program tells headers apart whose names differ in what is lost here.
            "GUARD": re.sub(r"\W", "_", model.spec.header).upper() + "_" + model.program_id,
            "PROGRAM": model.program_id,
            "NAMESPACE": model.spec.namespace,
            "CLASS": model.spec.class_name,
            "TORCH": comment_text(model.program.torch_version),
            "DEVICE": comment_text(", ".join(model.library.devices)),
            "ISA": comment_text(model.library.isas),
            "SIGNATURE": comment(describe(model)),
            "THREADS": comment((_STATEFUL if model.has_state else _STATELESS).splitlines()),
            "WEIGHTS": comment_text(model.spec.weights_runfile),
            "INPUTS": input_fields(model),
            "OUTPUTS": output_fields(model),
            "OPTIONS": (
                ",\n                                const ::aoti::RunOptions& options = {}"
                if model.on_cuda
                else ""
            ),
            "SESSION_INCLUDE": sessions.INCLUDE if model.has_state else "",
            "SESSION_MEMBERS": sessions.members() if model.has_state else "",
            "SESSION": sessions.session_class(model.spec.class_name) if model.has_state else "",
        },
    )


def comment(lines: list[str]) -> str:
    return "\n".join(f"// {line}".rstrip() for line in lines)


def input_fields(model: Model) -> str:
    return _fields([_input(model, item) for item in model.inputs])


def output_fields(model: Model) -> str:
    return _fields([*map(_output, model.outputs), *results.constant_fields(model)])


def _fields(fields: list[str]) -> str:
    return "".join(f"\n    {field}" for field in fields) + "\n  " if fields else ""


def input_type(item: Input) -> str:
    if item.tensor.number is not None:
        return DTYPES[item.tensor.dtype].cpp
    element = DTYPES[item.tensor.dtype].cpp
    const = "" if item.tensor.mutated else "const "
    return f"::aoti::TensorRef<{const}{element}, {len(item.sizes)}>"


def output_type(item: Output) -> str:
    if item.tensor.number is not None:
        return DTYPES[item.tensor.dtype].cpp
    return tensor_type(item)


def tensor_type(item: Output) -> str:
    return f"::aoti::TypedTensor<{DTYPES[item.tensor.dtype].cpp}, {len(item.sizes)}>"


def _input(model: Model, item: Input) -> str:
    if item.tensor.number is not None:
        default = item.default_text or "::aoti::kNotGiven"
        return f"{input_type(item)} {item.cpp_name} = {default};  // {number_text(model, item)}"
    note = ", written in place" if item.tensor.mutated else ""
    return f"{input_type(item)} {item.cpp_name};  // [{_sizes(item)}]{note}"


def _output(item: Output) -> str:
    if item.tensor.number is not None:
        return f"{output_type(item)} {item.cpp_name} = {{}};  // {item.type_text}"
    return f"{output_type(item)} {item.cpp_name};  // [{_sizes(item)}]"


def _sizes(item: Input | Output) -> str:
    return ", ".join(map(str, item.sizes))
