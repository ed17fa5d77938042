// What the tests of programs for CUDA have in common.

#ifndef AOTI_RUNTIME_CUDA_TESTS_SUPPORT_H_
#define AOTI_RUNTIME_CUDA_TESTS_SUPPORT_H_

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "aoti/model.h"
#include "runtime/cuda/tests/fake_driver.h"
#include "runtime/cuda/tests/test_program.h"
#include "runtime/testing/safetensors_writer.h"
#include "runtime/tests/check.h"

namespace aoti::testing {

using Floats = std::vector<float>;

// The fake driver, if it is the driver of this process.
inline FakeDriver* Fake() {
  static FakeDriver* const fake = []() -> FakeDriver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return nullptr;
    auto* get = reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "fake_cuda_driver"));
    return get == nullptr ? nullptr : get();
  }();
  return fake;
}

// Writes a weights file with one tensor of four elements, and returns its path.
inline std::string Weights(const std::string& tensor, const Floats& values,
                           const std::string& name) {
  const char* directory = std::getenv("TEST_TMPDIR");
  SafetensorsWriter writer;
  writer.Add(tensor, DType::kFloat32, {4}, values.data());
  std::string path =
      std::filesystem::path(directory == nullptr ? "/tmp" : directory) / (name + ".safetensors");
  CHECK_TRUE(writer.Write(path));
  return path;
}

inline std::string Row() { return Weights("row", {10, 20, 30, 40}, "row"); }
inline std::string Total() { return Weights("total", {1, 2, 3, 4}, "total"); }

inline Floats ToFloats(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.numel()};
}

inline Result<std::vector<Tensor>> Run(const Model& model, Floats& x,
                                       const std::vector<std::int64_t>& sizes) {
  const TensorView view = {.data = x.data(),
                           .dtype = DType::kFloat32,
                           .sizes = sizes,
                           .strides = {},
                           .read_only = false};
  return model.Run(std::vector{view});
}

// The total that a call of the counter with {1, 1, 1, 1} returns.
inline Floats Count(const Model& model) {
  Floats x(4, 1);
  const auto out = Run(model, x, {4});
  if (!out.ok()) {
    Report(__FILE__, __LINE__, out.error().message());
    return {};
  }
  CHECK_TRUE(x == ToFloats((*out)[0]));  // the model writes the total to its input, too
  return ToFloats((*out)[0]);
}

}  // namespace aoti::testing

#endif  // AOTI_RUNTIME_CUDA_TESTS_SUPPORT_H_
