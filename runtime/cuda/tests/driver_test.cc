// What the runtime asks of the driver, and what becomes of the driver's errors, with the fake one.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "aoti/session.h"
#include "runtime/cuda/modules.h"
#include "runtime/cuda/tests/support.h"

namespace aoti::testing {
namespace {

// Sets the fake driver up anew; at the end of the test, nothing may be left on its device.
class FakeScope {
 public:
  FakeScope() { *Fake() = FakeDriver(); }
  ~FakeScope() {
    CHECK_EQ(Fake()->bytes, std::size_t{0});
    CHECK_EQ(Fake()->blocks, 0);
    CHECK_EQ(Fake()->modules, 0);
    CHECK_EQ(Fake()->streams, 0);
    CHECK_EQ(Fake()->contexts, 0);
    CHECK_EQ(Fake()->pushed, 0);
  }
};

Result<Model> LoadAdder(LoadOptions options = {}) {
  options.weights_path = Row();
  return Model::Load(AdderSpec(), options);
}

Result<std::vector<Tensor>> Add(const Model& model, std::int64_t batch = 2) {
  Floats x(static_cast<std::size_t>(batch * 4), 1);
  return Run(model, x, {batch, 4});
}

TEST(LaunchesAsTheTableSays) {
  const FakeScope scope;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  CHECK_EQ(Fake()->modules, 3);
  REQUIRE_OK(Add(*model, 9));
  CHECK_EQ(Fake()->launched, std::string("add_row 2x1x1, 32 threads, 64 bytes shared"));
  CHECK_EQ(Fake()->launches, 1);
  REQUIRE_OK(Add(*model, 0));  // no blocks: not launched
  CHECK_EQ(Fake()->launches, 1);
}

TEST(ModelsShareKernelsAndWeights) {
  const FakeScope scope;
  const LoadOptions options = {.weights_path = Row()};
  const auto a = Model::Load(AdderSpec(), options);
  REQUIRE_OK(a);
  const int uploads = Fake()->uploads;
  const std::size_t bytes = Fake()->bytes;
  CHECK_EQ(uploads, 1);
  const auto b = Model::Load(AdderSpec(), options);
  REQUIRE_OK(b);
  CHECK_EQ(Fake()->modules, 3);
  CHECK_EQ(Fake()->uploads, uploads);
  CHECK_EQ(Fake()->bytes, bytes);
  CHECK_TRUE(!a->SwapWeights(options.weights_path));
  CHECK_EQ(Fake()->uploads, uploads);
}

TEST(ACallAllocatesNothingAfterTheFirstOne) {
  const FakeScope scope;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  REQUIRE_OK(Add(*model));
  const int allocations = Fake()->allocations;
  for (int i = 0; i < 10; ++i) REQUIRE_OK(Add(*model));
  CHECK_EQ(Fake()->allocations, allocations);
}

TEST(ACallOfASessionAllocatesNothingAfterTheFirstOne) {
  const FakeScope scope;
  const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
  REQUIRE_OK(model);
  Count(*model);
  const int allocations = Fake()->allocations;
  const int uploads = Fake()->uploads;
  Count(*model);
  CHECK_EQ(Fake()->allocations, allocations);
  CHECK_EQ(Fake()->uploads, uploads + 1);  // the input; the state stays
}

TEST(FreeMemoryOfOtherSizesIsUsedBeforeItRunsOut) {
  const FakeScope scope;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  REQUIRE_OK(Add(*model, 1000));
  const std::size_t most = Fake()->bytes;
  Fake()->memory = most;
  for (const std::int64_t batch : {500, 250, 125, 1000}) REQUIRE_OK(Add(*model, batch));
}

TEST(AnImageIsChosenForTheDevice) {
  static constexpr cuda::KernelImage kImages[] = {{75, false, 0, 0, 0, 0},
                                                  {80, false, 0, 0, 0, 0},
                                                  {86, false, 0, 0, 0, 0},
                                                  {100, false, 0, 0, 0, 0},
                                                  {75, true, 0, 0, 0, 0}};
  static constexpr cuda::Kernel kKernel = {"k", kImages, 5};
  const auto choose = [&](std::uint32_t arch) {
    std::string text;
    for (const cuda::KernelImage* image : cuda::ImagesFor(kKernel, arch)) {
      text += std::to_string(image->arch) + (image->is_ptx ? "p " : " ");
    }
    return text;
  };
  CHECK_EQ(choose(70), std::string(""));
  CHECK_EQ(choose(75), std::string("75 75p "));
  CHECK_EQ(choose(80), std::string("80 75p "));
  CHECK_EQ(choose(89), std::string("86 75p "));
  CHECK_EQ(choose(90), std::string("75p "));
  CHECK_EQ(choose(103), std::string("100 75p "));
  CHECK_EQ(choose(120), std::string("75p "));
  CHECK_EQ(cuda::ArchsOf(kKernel), std::string("sm_75, sm_80, sm_86, sm_100, PTX of sm_75"));
}

TEST(ADeviceThatRefusesTheCubinGetsPtx) {
  const FakeScope scope;
  Fake()->takes_cubins = false;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  CHECK_EQ(Fake()->loads_of_ptx, 3);
  REQUIRE_OK(Add(*model));
}

TEST(ANewDeviceGetsPtx) {
  const FakeScope scope;
  Fake()->arch = 120;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  CHECK_EQ(Fake()->loads_of_ptx, 3);
}

TEST(AnOldDeviceIsAnError) {
  const FakeScope scope;
  Fake()->arch = 70;
  CHECK_ERROR(LoadAdder(), ErrorCode::kUnsupportedGpu,
              "adder: the program was built for sm_80, sm_90, PTX of sm_75; device 0 (Fake GPU) is "
              "sm_70; add it to cuda_archs");
}

TEST(ADeviceThatDoesNotExistIsAnError) {
  const FakeScope scope;
  CHECK_ERROR(LoadAdder({.cuda_device = 1}), ErrorCode::kUnsupportedGpu,
              "adder: cuda_device is 1, but this machine has 1 CUDA device; it must be in 0..0");
  CHECK_ERROR(LoadAdder({.cuda_device = -1}), ErrorCode::kUnsupportedGpu,
              "adder: cuda_device is -1, but this machine has 1 CUDA device; it must be in 0..0");
  Fake()->devices = 3;
  CHECK_ERROR(LoadAdder({.cuda_device = 3}), ErrorCode::kUnsupportedGpu,
              "adder: cuda_device is 3, but this machine has 3 CUDA devices; it must be in 0..2");
  REQUIRE_OK(LoadAdder({.cuda_device = 2}));
}

TEST(TooLittleMemoryForTheWeightsIsAnError) {
  const FakeScope scope;
  Fake()->memory = 8;
  CHECK_ERROR(LoadAdder(), ErrorCode::kOutOfMemory,
              "adder: allocating 16 bytes on device 0 (Fake GPU): out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)");
}

TEST(TooLittleMemoryInACallIsAnErrorOfTheCall) {
  const FakeScope scope;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  Fake()->memory = 1000;
  CHECK_ERROR(Add(*model), ErrorCode::kExecutionFailed,
              "adder: allocating 32 bytes on device 0 (Fake GPU): out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY) (in aoti_torch_empty_strided)");
  Fake()->memory = 16;
  CHECK_ERROR(Add(*model, 1000), ErrorCode::kOutOfMemory,
              "adder: allocating 16000 bytes on device 0 (Fake GPU): out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)");
  Fake()->memory = 100000;
  REQUIRE_OK(Add(*model));
}

TEST(ErrorsOfTheDriverSayWhatWasBeingDone) {
  const FakeScope scope;
  const auto model = LoadAdder();
  REQUIRE_OK(model);
  Fake()->failing = "cuMemcpyHtoDAsync_v2";
  CHECK_ERROR(Add(*model), ErrorCode::kExecutionFailed,
              "adder: copying 32 bytes to device 0 (Fake GPU): an illegal memory access was "
              "encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
  Fake()->failing = "cuLaunchKernel";
  CHECK_ERROR(Add(*model), ErrorCode::kExecutionFailed,
              "adder: launching the kernel add_row (1 x 1 x 1 blocks) on device 0 (Fake GPU): "
              "invalid argument (CUDA_ERROR_INVALID_VALUE)");
  Fake()->failing = "cuStreamSynchronize";
  CHECK_ERROR(Add(*model), ErrorCode::kExecutionFailed,
              "adder: running on device 0 (Fake GPU): an illegal memory access was encountered "
              "(CUDA_ERROR_ILLEGAL_ADDRESS)");
  Fake()->failing = "";
  REQUIRE_OK(Add(*model));
}

TEST(AKernelThatCannotBeLoadedIsAnError) {
  const FakeScope scope;
  Fake()->failing = "cuModuleLoadData";
  CHECK_ERROR(LoadAdder(), ErrorCode::kExecutionFailed,
              "adder: loading the kernel add_row (sm_80) on device 0 (Fake GPU): invalid argument "
              "(CUDA_ERROR_INVALID_VALUE)");
}

TEST(ASessionOutlivesItsModel) {
  const FakeScope scope;
  std::optional<Session> session;
  {
    const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
    REQUIRE_OK(model);
    session = *model->NewSession();
  }
  CHECK_TRUE(Count(session->model()) == Floats({2, 3, 4, 5}));
}

TEST(ChildrenOfForkGetAnError) {
  const FakeScope scope;
  const auto model = Model::Load(CounterSpec(), {.weights_path = Total()});
  REQUIRE_OK(model);
  CHECK_TRUE(Count(*model) == Floats({2, 3, 4, 5}));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that would wait for ever
    const std::string expected =
        "counter: CUDA can't be used in a child of fork() after its parent has used it; load "
        "models and kernels for CUDA in the child only, or start the child with exec()";
    Floats x(4, 1);
    const auto out = Run(*model, x, {4});
    if (out.ok() || out.error().message() != expected) _exit(1);
    const auto loaded = Model::Load(CounterSpec(), {.weights_path = Total()});
    if (loaded.ok() || loaded.error().message() != expected) _exit(2);
    if (!model->SwapWeights(Total())) _exit(3);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK_TRUE(Count(*model) == Floats({3, 4, 5, 6}));
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
