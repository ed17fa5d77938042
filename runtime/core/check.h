// The checks of a call's inputs, before generated code reads them.

#ifndef AOTI_RUNTIME_CORE_CHECK_H_
#define AOTI_RUNTIME_CORE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aoti/error.h"
#include "aoti/program_spec.h"
#include "aoti/tensor_view.h"
#include "runtime/core/overlap.h"
#include "runtime/core/plain_calls.h"

namespace aoti::internal {

// The result of the checks of a call. Reused from call to call of one program, so that calls do not
// allocate, and so that a call with the sizes of the one before is checked quickly.
struct CallPlan {
  std::vector<std::int64_t> dims;  // values, by index in ProgramSpec::dims
  std::vector<InputPlan> inputs;   // they refer to arrays of the plan
  // The CUDA device on which inputs may be beside the CPU.
  std::int32_t cuda_device = TensorView::kCpu;

  CallPlan() = default;
  CallPlan(const CallPlan&) = delete;
  CallPlan& operator=(const CallPlan&) = delete;

  // The strides of a tensor, including those that the caller left out; valid until the next call.
  const std::int64_t* GivenStrides(const TensorView& given);

 private:
  friend class CallChecker;
  // For each dim, the dimension of an input that gave its value; input -1: none so far.
  struct Origin {
    std::int32_t input = -1;
    std::int32_t dim = -1;
  };
  std::vector<Origin> origins_;
  PlainCalls plain_;
  std::vector<std::int64_t> strides_;  // of all inputs of a call that is not plain
  std::vector<std::int64_t> given_strides_;
  // The address ranges of inputs with elements.
  struct Occupied {
    AddressRange range;
    bool written;
  };
  std::vector<Occupied> occupied_;
};

// Checks a call against the spec and fills `plan`; returns what is wrong with it, if anything is.
std::optional<Error> CheckCall(const ProgramSpec& spec, std::span<const TensorView> inputs,
                               bool check_values, CallPlan& plan);

// The part of the checks that chooses a variant: dtypes, ranks, sizes, the conditions on them, and
// the values of numbers. `plan` is overwritten.
std::optional<Error> CheckSizes(const ProgramSpec& spec, std::span<const TensorView> inputs,
                                CallPlan& plan);

// Whether CheckSizes() finds no error; quick where it does.
bool FitsSizes(const ProgramSpec& spec, std::span<const TensorView> inputs, CallPlan& plan);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_CHECK_H_
