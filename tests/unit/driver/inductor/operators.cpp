// Operators registered in C++ that take and return all that compiled code can pass.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;

// Writes what it was told into the first elements of `notes`.
void Note(Tensor notes, std::optional<Tensor> bias, int64_t count, double scale, bool flag,
          std::string text, std::vector<int64_t> sizes, std::optional<double> limit,
          ScalarType dtype, Device device) {
  auto* out = static_cast<float*>(notes.mutable_data_ptr());
  *out++ = static_cast<float>(count);
  *out++ = static_cast<float>(scale);
  *out++ = flag ? 1.0F : 0.0F;
  for (char c : text) *out++ = static_cast<unsigned char>(c);
  for (int64_t size : sizes) *out++ = static_cast<float>(size);
  *out++ = limit ? static_cast<float>(*limit) : -1.0F;
  *out++ = dtype == ScalarType::BFloat16 ? 1.0F : 0.0F;
  *out++ = device.is_cpu() ? 1.0F : 0.0F;
  *out++ = bias ? static_cast<const float*>(bias->const_data_ptr())[0] : -1.0F;
}

// Copies of none, of all, and of the last.
std::tuple<std::optional<Tensor>, std::vector<Tensor>, std::optional<Tensor>> Copies(
    std::vector<Tensor> parts) {
  std::vector<Tensor> copies;
  for (const Tensor& part : parts) copies.push_back(torch::stable::clone(part));
  return {std::nullopt, copies, torch::stable::clone(parts.back())};
}

}  // namespace

STABLE_TORCH_LIBRARY(aoti_codegen_test, m) {
  m.def(
      "note(Tensor(a!) notes, Tensor? bias, SymInt count, float scale, bool flag, str text, "
      "SymInt[] sizes, float? limit=None, *, ScalarType dtype, Device device) -> ()");
  m.def("copies(Tensor[] parts) -> (Tensor?, Tensor[], Tensor?)");
  m.def("mixed(Tensor x) -> (Tensor, Tensor[])");
  m.def("scaled(Tensor x, Scalar by) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(aoti_codegen_test, CPU, m) {
  m.impl("note", TORCH_BOX(&Note));
  m.impl("copies", TORCH_BOX(&Copies));
}
