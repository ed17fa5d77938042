#include "runtime/cuda/tests/test_program.h"

// clang-format off
// Before torch's headers, so that the functions have the slim runtime's names.
#include "runtime/slim/names.h"
// clang-format on

#include <torch/csrc/inductor/aoti_runtime/model_base.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/program.h"
#include "runtime/cuda/kernel_table.h"
#include "runtime/cuda/program_impl.h"
#include "runtime/cuda/tests/test_kernels.h"

namespace aoti::testing {
namespace {

constexpr std::int32_t kFloat = 6;  // the C ABI's number of float32

using torch::aot_inductor::RAIIAtenTensorHandle;

void* DataOf(AtenTensorHandle tensor) {
  void* data = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &data));
  return data;
}

std::int64_t SizeOf(AtenTensorHandle tensor, std::int64_t dim) {
  std::int64_t size = 0;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(tensor, dim, &size));
  return size;
}

AtenTensorHandle View(AtenTensorHandle of, std::vector<std::int64_t> sizes,
                      std::vector<std::int64_t> strides) {
  AtenTensorHandle view = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(
      of, static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), 0, &view));
  return view;
}

// What generated code has in common.
template <std::size_t kInputs, std::size_t kOutputs, std::size_t kConstants>
class Generated {
 public:
  Generated(std::shared_ptr<torch::aot_inductor::ConstantMap>,
            std::shared_ptr<std::vector<torch::aot_inductor::ConstantHandle>>,
            const std::string& device, std::optional<std::string>)
      : device_(std::stoi(device.substr(device.find(':') + 1))) {}

  std::size_t num_inputs() const { return kInputs; }
  std::size_t num_outputs() const { return kOutputs; }
  std::size_t num_constants() const { return kConstants; }
  void update_constants_array(
      std::shared_ptr<std::vector<torch::aot_inductor::ConstantHandle>> constants) {
    constants_ = std::move(constants);
  }

 protected:
  void* Constant(std::size_t i) const { return DataOf((*constants_)[i]); }
  AtenTensorHandle ConstantHandle(std::size_t i) const { return (*constants_)[i]; }

  AtenTensorHandle Empty(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) const {
    AtenTensorHandle tensor = nullptr;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
        static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), kFloat,
        aoti_torch_device_type_cuda(), device_, &tensor));
    return tensor;
  }

  static std::uint32_t Blocks(std::int64_t n) {
    return static_cast<std::uint32_t>((n + kTestThreads - 1) / kTestThreads);
  }

 private:
  const int device_;
  std::shared_ptr<std::vector<torch::aot_inductor::ConstantHandle>> constants_;
};

class Adder : public Generated<1, 2, 1> {
 public:
  using Generated::Generated;

  void run_single_threaded(AtenTensorHandle* inputs, AtenTensorHandle* outputs, void* stream,
                           void*) {
    const RAIIAtenTensorHandle x(inputs[0]);
    const std::int64_t batch = SizeOf(x, 0);
    // Twice, so that the memory of the first one is used again.
    {
      const RAIIAtenTensorHandle unused(Empty({batch, 4}, {4, 1}));
    }
    RAIIAtenTensorHandle y(Empty({batch, 4}, {4, 1}));
    void* x_data = DataOf(x);
    void* row = Constant(0);
    void* y_data = DataOf(y);
    auto n = static_cast<std::int32_t>(batch * 4);
    void* arguments[] = {&x_data, &row, &y_data, &n};
    cuda::Launch(kTestKernels, kAddRow, Blocks(n), 1, 1, arguments, stream);
    outputs[1] = View(x, {4, batch}, {1, 4});
    outputs[0] = y.release();
  }
};

class Counter : public Generated<1, 1, 1> {
 public:
  using Generated::Generated;

  void run_single_threaded(AtenTensorHandle* inputs, AtenTensorHandle* outputs, void* stream,
                           void*) {
    const RAIIAtenTensorHandle x(inputs[0]);
    void* x_data = DataOf(x);
    void* total = Constant(0);
    std::int32_t n = 4;
    void* arguments[] = {&x_data, &total, &n};
    cuda::Launch(kTestKernels, kAccumulate, 1, 1, 1, arguments, stream);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(x, ConstantHandle(0), 0));
    outputs[0] = View(ConstantHandle(0), {4}, {1});
  }
};

class Reader : public Generated<0, 1, 1> {
 public:
  using Generated::Generated;

  void run_single_threaded(AtenTensorHandle*, AtenTensorHandle* outputs, void*, void*) {
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_clone(ConstantHandle(0), &outputs[0]));
  }
};

class Indexer : public Generated<1, 1, 0> {
 public:
  using Generated::Generated;

  void run_single_threaded(AtenTensorHandle* inputs, AtenTensorHandle* outputs, void* stream,
                           void*) {
    const RAIIAtenTensorHandle x(inputs[0]);
    void* x_data = DataOf(x);
    void* status = cuda::IndexStatus();
    void* arguments[] = {&x_data, &status};
    cuda::Launch(kTestKernels, kCheckIndex, 1, 1, 1, arguments, stream);
    outputs[0] = View(x, {4}, {1});
  }
};

class OnCpu : public Generated<1, 1, 0> {
 public:
  using Generated::Generated;

  void run_single_threaded(AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*, void*) {
    const RAIIAtenTensorHandle x(inputs[0]);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_cumsum(x, 0, nullptr, &outputs[0]));
  }
};

template <class Model>
Result<const ProgramVTable*> Program(const ProgramSpec&) {
  static constexpr ProgramVTable table = cuda::MakeProgramVTable<Model>(kTestKernels);
  return &table;
}

#if defined(__aarch64__)
constexpr const char* kIsa = "aarch64";
#else
constexpr const char* kIsa = "x86-64";
#endif

constexpr std::int64_t kSizes[] = {4, 1};
constexpr std::span<const std::int64_t> kFour{kSizes, 1};
constexpr std::span<const std::int64_t> kOne{kSizes + 1, 1};
constexpr DimSpec kDims[] = {{"batch", 0, 1000}};
constexpr Extent kRows[] = {{1, 0, 0, "batch"}, {0, -1, 4, "4"}};
constexpr Extent kVector[] = {{0, -1, 4, "4"}};

constexpr InputSpec kAdderInputs[] = {{.name = "x", .dtype = DType::kFloat32, .sizes = kRows}};
constexpr const char* kYSizes[] = {"batch", "4"};
constexpr const char* kTransposedSizes[] = {"4", "batch"};
constexpr OutputSpec kAdderOutputs[] = {{"y", DType::kFloat32, kYSizes},
                                        {"transposed", DType::kFloat32, kTransposedSizes}};
constexpr WeightSpec kAdderWeights[] = {{"row", DType::kFloat32, kFour}};
constexpr ConstantSpec kConstants[] = {{0, DType::kFloat32, kFour, kOne, 0}};
constexpr ProgramVariant kAdderVariants[] = {{kIsa, kConstants, &Program<Adder>}};
constexpr ProgramSpec kAdderSpec = {.name = "adder",
                                    .label = "//tests:adder",
                                    .torch_version = "2.13.0",
                                    .weights_runfile = "",
                                    .dims = kDims,
                                    .inputs = kAdderInputs,
                                    .outputs = kAdderOutputs,
                                    .weights = kAdderWeights,
                                    .packed = {},
                                    .variants = kAdderVariants};

constexpr InputSpec kCounterInputs[] = {
    {.name = "x", .dtype = DType::kFloat32, .sizes = kVector, .mutated = true}};
constexpr const char* kVectorSizes[] = {"4"};
constexpr OutputSpec kCounterOutputs[] = {{"total", DType::kFloat32, kVectorSizes}};
constexpr WeightSpec kCounterWeights[] = {{"total", DType::kFloat32, kFour, true}};
constexpr ProgramVariant kCounterVariants[] = {{kIsa, kConstants, &Program<Counter>}};
constexpr ProgramSpec kCounterSpec = {.name = "counter",
                                      .label = "//tests:counter",
                                      .torch_version = "2.13.0",
                                      .weights_runfile = "",
                                      .dims = {},
                                      .inputs = kCounterInputs,
                                      .outputs = kCounterOutputs,
                                      .weights = kCounterWeights,
                                      .packed = {},
                                      .variants = kCounterVariants};
constexpr ProgramVariant kReaderVariants[] = {{kIsa, kConstants, &Program<Reader>}};
constexpr ProgramSpec kReaderSpec = {.name = "reader",
                                     .label = "//tests:counter",
                                     .torch_version = "2.13.0",
                                     .weights_runfile = "",
                                     .dims = {},
                                     .inputs = {},
                                     .outputs = kCounterOutputs,
                                     .weights = kCounterWeights,
                                     .packed = {},
                                     .variants = kReaderVariants};

constexpr InputSpec kOnCpuInputs[] = {{.name = "x", .dtype = DType::kFloat32, .sizes = kVector}};
constexpr ProgramVariant kOnCpuVariants[] = {{kIsa, {}, &Program<OnCpu>}};
constexpr ProgramSpec kOnCpuSpec = {.name = "on_cpu",
                                    .label = "//tests:on_cpu",
                                    .torch_version = "2.13.0",
                                    .weights_runfile = "",
                                    .dims = {},
                                    .inputs = kOnCpuInputs,
                                    .outputs = kCounterOutputs,
                                    .weights = {},
                                    .packed = {},
                                    .variants = kOnCpuVariants};

constexpr ProgramVariant kIndexerVariants[] = {{kIsa, {}, &Program<Indexer>}};
constexpr ProgramSpec kIndexerSpec = {.name = "indexer",
                                      .label = "//tests:indexer",
                                      .torch_version = "2.13.0",
                                      .weights_runfile = "",
                                      .dims = {},
                                      .inputs = kOnCpuInputs,
                                      .outputs = kCounterOutputs,
                                      .weights = {},
                                      .packed = {},
                                      .variants = kIndexerVariants};

}  // namespace

const ProgramSpec& AdderSpec() { return kAdderSpec; }
const ProgramSpec& CounterSpec() { return kCounterSpec; }
const ProgramSpec& ReaderSpec() { return kReaderSpec; }
const ProgramSpec& OnCpuSpec() { return kOnCpuSpec; }
const ProgramSpec& IndexerSpec() { return kIndexerSpec; }

}  // namespace aoti::testing
