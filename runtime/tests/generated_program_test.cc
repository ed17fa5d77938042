// generated_program.h with a C ABI that counts what is deleted.

#define AOTInductorModel AOTInductorModel_of_the_test
#include "runtime/core/generated_program.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tests/check.h"
#include "runtime/tests/generated_program_slim.h"

namespace {
int g_deleted = 0;
int g_deleted_by_slim = 0;
bool g_fail = false;
float g_scalar = 0;
int64_t g_sizes[] = {2, 3};
int64_t g_strides[] = {3, 1};
}  // namespace

// A tensor of the test is an int, which counts how often it was deleted.
extern "C" AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  ++*reinterpret_cast<int*>(tensor);
  ++g_deleted;
  return AOTI_TORCH_SUCCESS;
}
extern "C" AOTITorchError slim_aoti_torch_delete_tensor_object(AtenTensorHandle) {
  ++g_deleted_by_slim;
  return AOTI_TORCH_SUCCESS;
}
extern "C" AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** data) {
  *data = tensor;
  return g_fail ? AOTI_TORCH_FAILURE : AOTI_TORCH_SUCCESS;
}
extern "C" AOTITorchError aoti_torch_get_sizes(AtenTensorHandle, int64_t** sizes) {
  *sizes = g_sizes;
  return g_fail ? AOTI_TORCH_FAILURE : AOTI_TORCH_SUCCESS;
}
extern "C" AOTITorchError aoti_torch_get_strides(AtenTensorHandle, int64_t** strides) {
  *strides = g_strides;
  return g_fail ? AOTI_TORCH_FAILURE : AOTI_TORCH_SUCCESS;
}
extern "C" AOTITorchError aoti_torch_scalar_to_tensor_float32(float value,
                                                              AtenTensorHandle* tensor) {
  static int made = 0;
  g_scalar = value;
  *tensor = reinterpret_cast<AtenTensorHandle>(&made);
  return AOTI_TORCH_SUCCESS;
}

namespace torch::aot_inductor {

AOTInductorModel::AOTInductorModel()
    : GeneratedProgram(1, 2, 3, std::make_unique<AOTInductorModelKernelsBase>()) {}

void AOTInductorModel::run_impl(AtenTensorHandle* inputs, AtenTensorHandle* outputs,
                                DeviceStreamType, AOTIProxyExecutorHandle) {
  auto taken = steal_from_raw_handles_to_raii_handles(inputs, 1);
  outputs[0] = taken[0].release();
  outputs[1] = constants_->at(0).get();
}

}  // namespace torch::aot_inductor

namespace aoti::testing {
namespace {

using torch::aot_inductor::ConstantHandle;
using torch::aot_inductor::RAIIAtenTensorHandle;

AtenTensorHandle ToHandle(int& tensor) { return reinterpret_cast<AtenTensorHandle>(&tensor); }

TEST(OwnersDeleteOnce) {
  int first = 0;
  int second = 0;
  {
    RAIIAtenTensorHandle owner(ToHandle(first));
    RAIIAtenTensorHandle next(std::move(owner));
    CHECK_EQ(owner.get(), nullptr);
    CHECK_EQ(next.get(), ToHandle(first));
    RAIIAtenTensorHandle other(ToHandle(second));
    next = std::move(other);
    CHECK_EQ(first, 1);
    CHECK_EQ(second, 0);
    RAIIAtenTensorHandle& same = next;
    next = std::move(same);
    CHECK_EQ(second, 0);
    CHECK_EQ(next.get(), ToHandle(second));
    next.reset();
    CHECK_EQ(second, 1);
  }
  CHECK_EQ(first, 1);
  CHECK_EQ(second, 1);
}

TEST(ReleasedTensorsAreTheCallers) {
  int tensor = 0;
  {
    CHECK_EQ(RAIIAtenTensorHandle(ToHandle(tensor)).release(), ToHandle(tensor));
  }
  CHECK_EQ(tensor, 0);
}

TEST(ConstantsAreNotDeleted) {
  int tensor = 0;
  {
    const ConstantHandle constant(ToHandle(tensor));
    CHECK_EQ(constant.data_ptr(), static_cast<void*>(&tensor));
    CHECK_EQ(constant.sizes()[1], 3);
    CHECK_EQ(constant.strides()[0], 3);
  }
  CHECK_EQ(tensor, 0);
}

TEST(InputsAreTaken) {
  int tensors[] = {0, 0};
  AtenTensorHandle handles[] = {ToHandle(tensors[0]), ToHandle(tensors[1])};
  {
    const auto taken = torch::aot_inductor::steal_from_raw_handles_to_raii_handles(handles, 2);
    CHECK_EQ(taken.size(), 2u);
    CHECK_EQ(taken[1].get(), ToHandle(tensors[1]));
    CHECK_EQ(handles[0], nullptr);
    CHECK_EQ(handles[1], nullptr);
  }
  CHECK_EQ(tensors[0], 1);
  CHECK_EQ(tensors[1], 1);
}

TEST(FailedCallsNameTheirFunction) {
  int tensor = 0;
  std::string what;
  g_fail = true;
  try {
    ConstantHandle constant(ToHandle(tensor));
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  g_fail = false;
  CHECK_TRUE(std::string_view(what).starts_with("aoti_torch_get_data_ptr("));
  // Shim::Describe() looks for this.
  CHECK_TRUE(what.find(") API call failed at ") != std::string::npos);
}

TEST(NumbersBecomeTensors) {
  RAIIAtenTensorHandle tensor = torch::aot_inductor::scalar_to_tensor_handle(2.5f);
  CHECK_TRUE(tensor.get() != nullptr);
  CHECK_EQ(g_scalar, 2.5f);
}

TEST(QuotientsAreRoundedDown) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  CHECK_EQ(c10::div_floor_integer<int64_t>(7, 2), 3);
  CHECK_EQ(c10::div_floor_integer<int64_t>(-7, 2), -4);
  CHECK_EQ(c10::div_floor_integer<int64_t>(7, -2), -4);
  CHECK_EQ(c10::div_floor_integer<int64_t>(-7, -2), 3);
  CHECK_EQ(c10::div_floor_integer<int64_t>(-8, 2), -4);
  CHECK_EQ(c10::div_floor_integer<int64_t>(8, 0), 0);
  CHECK_EQ(c10::div_floor_integer<int64_t>(kLowest, -1), kLowest);
  CHECK_EQ(torch::aot_inductor::align(1), 64);
  CHECK_EQ(torch::aot_inductor::align(64), 64);
}

TEST(ProgramsRunWithTheirConstants) {
  int input = 0;
  int constant = 0;
  AtenTensorHandle inputs[] = {ToHandle(input)};
  AtenTensorHandle outputs[] = {nullptr, nullptr};
  {
    torch::aot_inductor::AOTInductorModel program;
    CHECK_EQ(program.num_inputs(), 1u);
    CHECK_EQ(program.num_outputs(), 2u);
    CHECK_EQ(program.num_constants(), 3u);
    program.update_constants_array(
        std::make_shared<std::vector<ConstantHandle>>(1, ConstantHandle(ToHandle(constant))));
    program.run_single_threaded(inputs, outputs, nullptr, nullptr);
  }
  CHECK_EQ(outputs[0], ToHandle(input));
  CHECK_EQ(outputs[1], ToHandle(constant));
  CHECK_EQ(input + constant, 0);
}

// The linker keeps one copy of an inline function of this name.
TEST(ProgramsOfBothLibrariesAreInOneBinary) {
  int tensor = 0;
  const int before = g_deleted;
  OwnOnSlim(ToHandle(tensor));
  CHECK_EQ(g_deleted_by_slim, 1);
  CHECK_EQ(g_deleted, before);
  {
    RAIIAtenTensorHandle owner(ToHandle(tensor));
  }
  CHECK_EQ(g_deleted_by_slim, 1);
  CHECK_EQ(g_deleted, before + 1);
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
