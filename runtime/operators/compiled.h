// A compiled model as the kernel of an operator, for the generated sources of `torch_operator`.
// They are compiled once for each runtime that the model that calls the operator may run on.

#ifndef AOTI_RUNTIME_OPERATORS_COMPILED_H_
#define AOTI_RUNTIME_OPERATORS_COMPILED_H_

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aoti/error.h"
#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"

namespace aoti::operators {

// The arguments of a call, as the model takes them. Hidden, as PyTorch's class of tensors is.
class [[gnu::visibility("hidden")]] Arguments {
 public:
  // Takes the arguments over from the stack.
  Arguments(const ProgramSpec& spec, const StableIValue* stack) {
    for (const InputSpec& input : spec.inputs) Add(input, *stack++);
  }

  const std::vector<TensorView>& views() const { return views_; }

 private:
  void Add(const InputSpec& input, StableIValue value) {
    if (input.value_dim >= 0 || (input.number && input.dtype == DType::kInt64)) {
      integers_.push_back(torch::stable::detail::to<std::int64_t>(value));
      views_.push_back(ViewOfNumber(integers_.back()));
      return;
    }
    if (input.number) {
      floats_.push_back(torch::stable::detail::to<double>(value));
      views_.push_back(ViewOfNumber(floats_.back()));
      return;
    }
    tensors_.push_back(torch::stable::detail::to<torch::stable::Tensor>(value));
    const torch::stable::Tensor& tensor = tensors_.back();
    const auto rank = static_cast<std::size_t>(tensor.dim());
    views_.push_back({
        .data = tensor.data_ptr(),
        // The numbers are PyTorch's.
        .dtype = static_cast<DType>(tensor.scalar_type()),
        .sizes = {tensor.sizes().data(), rank},
        .strides = {tensor.strides().data(), rank},
        .read_only = !input.mutated,
    });
  }

  // References to the elements of a deque stay valid.
  std::deque<std::int64_t> integers_;
  std::deque<double> floats_;
  std::deque<torch::stable::Tensor> tensors_;
  std::vector<TensorView> views_;
};

inline torch::stable::Tensor Copied(const Tensor& output) {
  const auto dtype = static_cast<torch::headeronly::ScalarType>(output.dtype());
  torch::stable::Tensor result =
      torch::stable::empty({output.sizes().data(), output.sizes().size()}, dtype);
  const auto bytes = static_cast<std::size_t>(output.numel()) * SizeOf(output.dtype());
  if (bytes > 0) std::memcpy(result.mutable_data_ptr(), output.data(), bytes);
  return result;
}

// One of the programs that the operator chooses from. model: what loading it gave.
struct Variant {
  const ProgramSpec& spec;
  const Result<Model>& model;
};

// Runs the first variant that takes the arguments. Who calls an operator puts its name before what
// it throws.
inline void Run(std::initializer_list<Variant> variants, StableIValue* stack) {
  const Arguments arguments(variants.begin()->spec, stack);
  std::string refused;
  for (const Variant& variant : variants) {
    if (!variant.model.ok()) {
      throw std::runtime_error(variant.model.error().message());
    }
    const Result<std::vector<Tensor>> outputs = variant.model->Run(arguments.views());
    if (outputs.ok()) {
      for (const Tensor& output : *outputs) *stack++ = torch::stable::detail::from(Copied(output));
      return;
    }
    const std::string& message = outputs.error().message();
    const std::size_t name = message.find(": ");
    refused = name == std::string::npos ? message : message.substr(name + 2);
    // Codes of three digits that begin with 1 are about the arguments.
    if (static_cast<std::int32_t>(outputs.error().code()) / 100 != 1) break;
  }
  throw std::runtime_error(refused);
}

}  // namespace aoti::operators

#endif  // AOTI_RUNTIME_OPERATORS_COMPILED_H_
