// Kernels that C++ launches itself, with the fake driver.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aoti/cuda_kernel.h"
#include "runtime/cuda/tests/support.h"
#include "runtime/cuda/tests/test_kernels.h"

namespace aoti::testing {
namespace {

constexpr const char* kLabel = "//pkg:add";

Result<CudaKernel> LoadKernel(const CudaKernelOptions& options = {}) {
  return CudaKernel::Load(kLabel, kTestKernels, options);
}

// Adds `row` to `x` with blocks of 32 threads.
Result<void> Add(const CudaKernel& kernel, const CudaArray<float>& x, const CudaArray<float>& row,
                 const CudaArray<float>& y, std::uint32_t blocks, bool divisible = true) {
  void* pointers[] = {x.data(), row.data(), y.data()};
  auto n = static_cast<std::int32_t>(x.size());
  void* arguments[] = {&pointers[0], &pointers[1], &pointers[2], &n};
  return kernel.Launch({}, {.x = blocks}, arguments, {{"x", true}, {"n", divisible}});
}

TEST(LaunchesOnTheArrays) {
  *Fake() = FakeDriver();
  {
    const auto kernel = LoadKernel();
    REQUIRE_OK(kernel);
    const auto x = CudaArray<float>::Of(Floats(40, 1));
    REQUIRE_OK(x);
    const auto row = CudaArray<float>::Of(Floats{10, 20, 30, 40});
    REQUIRE_OK(row);
    const auto y = CudaArray<float>::Uninitialized(40);
    REQUIRE_OK(y);
    REQUIRE_OK(Add(*kernel, *x, *row, *y, 0));  // no blocks: not launched
    CHECK_EQ(Fake()->launches, 0);
    REQUIRE_OK(Add(*kernel, *x, *row, *y, 2));
    CHECK_EQ(Fake()->launched, std::string("add_row 2x1x1, 32 threads, 64 bytes shared"));
    const auto result = y->ToHost();
    REQUIRE_OK(result);
    CHECK_EQ(result->size(), std::size_t{40});
    CHECK_EQ((*result)[0], 11.0F);
    CHECK_EQ((*result)[39], 41.0F);

    CHECK_ERROR(
        Add(*kernel, *x, *row, *y, 2, false), ErrorCode::kInvalidArgument,
        "//pkg:add: n is not divisible by 16, as the kernel was compiled for; pass one that "
        "is, or take it out of divisible_by_16");
    CHECK_EQ(Fake()->launches, 1);
    Fake()->failing = "cuLaunchKernel";
    CHECK_ERROR(
        Add(*kernel, *x, *row, *y, 2), ErrorCode::kExecutionFailed,
        "//pkg:add: launching the kernel add_row (2 x 1 x 1 blocks) on device 0 (Fake GPU): "
        "invalid argument (CUDA_ERROR_INVALID_VALUE)");
  }
  CHECK_EQ(Fake()->bytes, std::size_t{0});
  CHECK_EQ(Fake()->modules, 0);
  CHECK_EQ(Fake()->contexts, 0);
  CHECK_EQ(Fake()->pushed, 0);
}

TEST(AGpuThatDoesNotFitIsAnError) {
  *Fake() = FakeDriver();
  Fake()->arch = 70;
  CHECK_ERROR(LoadKernel(), ErrorCode::kUnsupportedGpu,
              "//pkg:add: the program was built for sm_80, sm_90, PTX of sm_75; device 0 (Fake "
              "GPU) is sm_70; add it to cuda_archs");
  CHECK_ERROR(
      LoadKernel({.cuda_device = 1}), ErrorCode::kUnsupportedGpu,
      "//pkg:add: cuda_device is 1, but this machine has 1 CUDA device; it must be in 0..0");
}

TEST(AnObjectThatWasMovedFromIsAnError) {
  *Fake() = FakeDriver();
  auto kernel = LoadKernel();
  REQUIRE_OK(kernel);
  const CudaKernel taken = *std::move(kernel);
  CHECK_ERROR(kernel->Launch({}, {}, nullptr, {}), ErrorCode::kInvalidArgument,
              "aoti::CudaKernel: the object was moved from");
}

TEST(MemoryOfOtherSizesIsAnError) {
  *Fake() = FakeDriver();
  const auto memory = CudaMemory::Allocate(16);
  REQUIRE_OK(memory);
  Floats host(3);
  const std::string expected =
      "aoti::CudaMemory: the host's memory has 12 bytes, and the device's 16; expected as many";
  CHECK_ERROR(memory->CopyFrom(std::as_bytes(std::span(host))), ErrorCode::kWrongSize, expected);
  CHECK_ERROR(memory->CopyTo(std::as_writable_bytes(std::span(host))), ErrorCode::kWrongSize,
              expected);
  Fake()->memory = 8;
  CHECK_ERROR(CudaMemory::Allocate(16), ErrorCode::kOutOfMemory,
              "aoti::CudaMemory: allocating 16 bytes on device 0 (Fake GPU): out of memory "
              "(CUDA_ERROR_OUT_OF_MEMORY)");
}

}  // namespace
}  // namespace aoti::testing

int main() { return aoti::testing::RunAllTests(); }
