// Tensors on the device as inputs and outputs, and the caller's stream, with the fake driver.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "aoti/dlpack.h"
#include "aoti/model.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/tests/support.h"

namespace aoti::testing {
namespace {

// Floats on the fake device.
class OnDevice {
 public:
  explicit OnDevice(const Floats& values) : size_(values.size()) {
    cuda::CuPointer memory = 0;
    cuda::Driver().MemAlloc(&memory, 4 * size_);
    data_ = static_cast<float*>(cuda::FromPointer(memory));
    cuda::Driver().MemcpyHtoDAsync(memory, values.data(), 4 * size_, nullptr);
  }
  ~OnDevice() { cuda::Driver().MemFree(cuda::ToPointer(data_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  float* data() const { return data_; }
  Floats values() const {
    Floats values(size_);
    cuda::Driver().MemcpyDtoHAsync(values.data(), cuda::ToPointer(data_), 4 * size_, nullptr);
    return values;
  }

 private:
  std::size_t size_;
  float* data_;
};

Floats Downloaded(const Tensor& tensor) {
  Floats values(static_cast<std::size_t>(tensor.numel()));
  cuda::Driver().MemcpyDtoHAsync(values.data(), cuda::ToPointer(tensor.data()), 4 * values.size(),
                                 nullptr);
  return values;
}

Result<Model> LoadAdder() { return Model::Load(AdderSpec(), {.weights_path = Row()}); }

Result<std::vector<Tensor>> Add(const Model& model, float* data, std::int64_t batch,
                                const RunOptions& options = {}, std::int32_t device = 0) {
  const auto ref = TensorRef<const float, 2>(data, {batch, 4}).OnCuda(device);
  const TensorView views[] = {ref.view()};
  return model.Run(views, options);
}

const Floats kX = {0, 1, 2, 3, 4, 5, 6, 7};
const Floats kY = {10, 21, 32, 43, 14, 25, 36, 47};
const Floats kTransposed = {0, 4, 1, 5, 2, 6, 3, 7};

TEST(AnInputOnTheDeviceIsTakenWithoutACopy) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice x(kX);
  const int uploads = Fake()->uploads;
  const int waits = Fake()->waits;
  const auto out = Add(*model, x.data(), 2);
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == kY);
  CHECK_TRUE(ToFloats((*out)[1]) == kTransposed);
  CHECK_EQ(Fake()->uploads, uploads);
  CHECK_EQ(Fake()->waits, waits + 1);  // for what may still write to x
}

TEST(OutputsStayOnTheDevice) {
  std::vector<Tensor> out;
  {
    const auto model = LoadAdder();
    REQUIRE_OK(model);
    const OnDevice x(kX);
    auto result = Add(*model, x.data(), 2, {.outputs_on_device = true});
    REQUIRE_OK(result);
    out = *std::move(result);
    // A later call has memory of its own.
    REQUIRE_OK(Add(*model, x.data(), 2, {.outputs_on_device = true}));
  }
  CHECK_EQ(out[0].cuda_device(), 0);
  CHECK_EQ(out[1].cuda_device(), 0);
  CHECK_TRUE(Downloaded(out[0]) == kY);
  CHECK_TRUE(Downloaded(out[1]) == kTransposed);
  CHECK_TRUE(Fake()->bytes > 0);
  dlpack::DLManagedTensor* managed = std::move(out[0]).ToDLPack();
  CHECK_EQ(managed->dl_tensor.device.device_type, dlpack::kDLCUDA);
  CHECK_EQ(managed->dl_tensor.device.device_id, 0);
  managed->deleter(managed);
  out.clear();
  CHECK_EQ(Fake()->bytes, std::size_t{0});
  CHECK_EQ(Fake()->contexts, 0);
}

TEST(AnOutputOnTheDeviceIsAnInput) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice x(kX);
  auto first = Add(*model, x.data(), 2, {.outputs_on_device = true});
  REQUIRE_OK(first);
  const TypedTensor<float, 2> y(std::move((*first)[0]));
  const TensorRef<const float, 2> ref = y;
  const TensorView views[] = {ref.view()};
  const auto second = model->Run(views);
  REQUIRE_OK(second);
  CHECK_TRUE(ToFloats((*second)[0]) == Floats({20, 41, 62, 83, 24, 45, 66, 87}));
}

TEST(AnInputOnTheDeviceInAnotherLayoutIsCopied) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice columns(kTransposed);
  const auto ref = TensorRef<const float, 2>(columns.data(), {2, 4}, {1, 2}).OnCuda();
  const TensorView views[] = {ref.view()};
  const auto out = model->Run(views);
  REQUIRE_OK(out);
  CHECK_TRUE(ToFloats((*out)[0]) == kY);
}

TEST(AnInputOnTheDeviceIsWrittenInPlace) {
  const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
  REQUIRE_OK(model);
  const OnDevice x({1, 1, 1, 1});
  const auto ref = TensorRef<float, 1>(x.data(), {4}).OnCuda();
  const TensorView views[] = {ref.view()};
  const auto out = model->Run(views, {.outputs_on_device = true});
  REQUIRE_OK(out);
  CHECK_TRUE(x.values() == Floats({2, 3, 4, 5}));
  // The output is not the state itself, which the next call changes.
  REQUIRE_OK(model->Run(views));
  CHECK_TRUE(Downloaded((*out)[0]) == Floats({2, 3, 4, 5}));
}

TEST(WorkIsOnTheCallersStream) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice x(kX);
  cuda::CuStream stream = nullptr;
  cuda::Driver().StreamCreate(&stream, 0);
  const int waits = Fake()->waits;
  {
    // All on the device: the caller waits.
    const auto out = Add(*model, x.data(), 2, {.cuda_stream = stream, .outputs_on_device = true});
    REQUIRE_OK(out);
    CHECK_TRUE(Fake()->launched_on == stream);
    CHECK_EQ(Fake()->waits, waits);
  }
  const int stream_waits = Fake()->stream_waits[stream];
  const auto on_cpu = Add(*model, x.data(), 2, {.cuda_stream = stream});
  REQUIRE_OK(on_cpu);
  CHECK_TRUE(ToFloats((*on_cpu)[0]) == kY);
  CHECK_TRUE(Fake()->stream_waits[stream] > stream_waits);
  const int own = Fake()->stream_waits[stream];
  REQUIRE_OK(Add(*model, x.data(), 2));
  CHECK_TRUE(Fake()->launched_on != stream);
  CHECK_EQ(Fake()->stream_waits[stream], own);
  cuda::Driver().StreamDestroy(stream);
}

TEST(NoWaitWhereAllIsOnTheDevice) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice x(kX);
  cuda::CuStream stream = nullptr;
  cuda::Driver().StreamCreate(&stream, 0);
  const TensorRef<const float, 2> ref = TensorRef<const float, 2>(x.data(), {1, 4}).OnCuda();
  const TensorView views[] = {ref.view()};
  // With one row, both outputs are contiguous.
  const int before = Fake()->stream_waits[stream];
  REQUIRE_OK(model->Run(views, {.cuda_stream = stream, .outputs_on_device = true}));
  CHECK_EQ(Fake()->stream_waits[stream], before);
  cuda::Driver().StreamDestroy(stream);
}

TEST(ADriverThatCannotCaptureRunsWithoutGraphs) {
  const auto model = Model::Load(AdderSpec(), {.weights_path = Row(), .cuda_graphs = true});
  REQUIRE_OK(model);
  const OnDevice x(kX);
  for (int i = 0; i < 4; ++i) {
    const auto out = Add(*model, x.data(), 2);
    REQUIRE_OK(out);
    CHECK_TRUE(ToFloats((*out)[0]) == kY);
  }
}

TEST(AnInputOnAnotherDeviceIsAnError) {
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  const OnDevice x(kX);
  CHECK_ERROR(Add(*model, x.data(), 2, {}, 1), ErrorCode::kWrongDevice,
              "adder: input \"x\": device is cuda:1, must be cpu or cuda:0");
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
