// A C ABI without a tensor library behind it: the functions that the runtime calls, and counters.
// Stands in place of libtorch, so that the runtime is tested alone.

#ifndef AOTI_RUNTIME_TESTS_FAKE_SHIM_H_
#define AOTI_RUNTIME_TESTS_FAKE_SHIM_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aoti/dtype.h"
#include "runtime/core/program.h"

namespace aoti::testing {

// What the fake knows of a tensor.
struct FakeTensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<char> owned;  // its memory, unless it is borrowed
  const char* packed_kind = nullptr;
  std::span<const std::byte> packed;
};

const internal::ShimFunctions& FakeShim();

FakeTensor& Get(AtenTensorHandle handle);
// An owned, contiguous tensor of zeros.
AtenTensorHandle NewTensor(DType dtype, std::vector<std::int64_t> sizes);
// A tensor over memory that somebody else owns.
AtenTensorHandle NewView(void* data, DType dtype, std::vector<std::int64_t> sizes,
                         std::vector<std::int64_t> strides);

// What the runtime last gave a constant as its packed copy.
std::span<const std::byte> LastPacked();

// Tensors that were not deleted yet.
int LiveTensors();
// The version that the fake claims to be; its default is 2.13.0.
void SetVersion(int major, int minor, int patch);
// What the last failed call is said to have reported.
void SetLastError(std::string text);

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_FAKE_SHIM_H_
