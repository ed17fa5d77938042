// A program for CUDA on a machine without a usable NVIDIA driver: libcuda.so.1 is not a library.

#include "aoti/model.h"
#include "runtime/cuda/tests/support.h"

namespace aoti::testing {
namespace {

TEST(LoadSaysThatTheDriverIsMissing) {
  for (int i = 0; i < 2; ++i) {
    const auto model = Model::Load(AdderSpec(), {.weights_path = Row()});
    CHECK_TRUE(!model.ok());
    if (model.ok()) return;
    CHECK_EQ(to_string(model.error().code()), to_string(ErrorCode::kUnsupportedGpu));
    const std::string expected =
        "adder: the model runs on a GPU and needs libcuda.so.1 of the NVIDIA driver 525 (CUDA "
        "12.0) or newer, which can't be loaded: ";
    CHECK_EQ(model.error().message().substr(0, expected.size()), expected);
    CHECK_TRUE(model.error().message().find("libcuda.so.1: ") != std::string::npos);
  }
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
