// A C ABI without a tensor library: the functions that the runtime calls, and counters. It replaces
// libtorch, so that the runtime is tested alone.

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

// The fake's data about a tensor.
struct FakeTensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<char> owned;  // the memory, unless it is borrowed
  const char* packed_kind = nullptr;
  std::span<const std::byte> packed;
};

const internal::ShimFunctions& FakeShim();

FakeTensor& Get(AtenTensorHandle handle);
// An owned, contiguous tensor of zeros.
AtenTensorHandle NewTensor(DType dtype, std::vector<std::int64_t> sizes);
// A tensor in borrowed memory.
AtenTensorHandle NewView(void* data, DType dtype, std::vector<std::int64_t> sizes,
                         std::vector<std::int64_t> strides);

// The packed copy that the runtime last attached to a constant.
std::span<const std::byte> LastPacked();
void ForgetPacked();

// The number of tensors that have not been deleted.
int LiveTensors();
// The version that the fake reports; its default is 2.13.0.
void SetVersion(int major, int minor, int patch);
// The message that the last failed call reports.
void SetLastError(std::string text);

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_TESTS_FAKE_SHIM_H_
