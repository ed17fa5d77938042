// Programs for CUDA on a machine without a usable NVIDIA driver: libcuda.so.1 is not a library.

#include <string>

#include "aoti/cuda_kernel.h"
#include "aoti/error.h"
#include "aoti/model.h"
#include "runtime/cuda/tests/support.h"
#include "runtime/cuda/tests/test_kernels.h"

namespace aoti::testing {
namespace {

void CheckDriverIsMissing(const Error& error, const std::string& name) {
  CHECK_EQ(to_string(error.code()), to_string(ErrorCode::kUnsupportedGpu));
  const std::string expected =
      name +
      ": running on a GPU needs libcuda.so.1 of the NVIDIA driver 525 (CUDA 12.0) or newer, which "
      "can't be loaded: ";
  CHECK_EQ(error.message().substr(0, expected.size()), expected);
  CHECK_TRUE(error.message().find("libcuda.so.1: ") != std::string::npos);
}

TEST(LoadSaysThatTheDriverIsMissing) {
  for (int i = 0; i < 2; ++i) {
    const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
    CHECK_TRUE(!model.ok());
    if (model.ok()) return;
    CheckDriverIsMissing(model.error(), "adder");
  }
}

TEST(SoDoesLoadOfAKernel) {
  const auto kernel = CudaKernel::Load("//pkg:add", kTestKernels, {});
  CHECK_TRUE(!kernel.ok());
  if (kernel.ok()) return;
  CheckDriverIsMissing(kernel.error(), "//pkg:add");
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
