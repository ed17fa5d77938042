// The program of a model for CUDA. MODEL_HEADER and MODEL_CLASS come from the BUILD file
// (benchmarks/defs.bzl).

#include <memory>
#include <span>
#include <stdexcept>

#include "aoti/cuda_kernel.h"
#include "benchmarks/runner.h"

#include MODEL_HEADER

namespace {

class OnCuda : public aoti::benchmark::InputMemory {
 public:
  std::shared_ptr<void> Copy(std::span<const std::byte> bytes) const override {
    const auto memory = aoti::CudaMemory::Allocate(bytes.size());
    if (!memory.ok()) throw std::runtime_error(memory.error().message());
    const auto copied = memory->CopyFrom(bytes);
    if (!copied.ok()) throw std::runtime_error(copied.error().message());
    const auto owner = std::make_shared<const aoti::CudaMemory>(*memory);
    return {owner, owner->data()};
  }
};

}  // namespace

int main(int argc, char** argv) {
  const OnCuda memory;
  return aoti::benchmark::RunnerMain(MODEL_CLASS::Spec(), argc, argv, &memory);
}
