#include "runtime/cuda/open.h"

#include <utility>

#include "runtime/cuda/context.h"
#include "runtime/cuda/modules.h"

namespace aoti::cuda {

std::shared_ptr<internal::Device> Open(const KernelTable& kernels, std::int32_t index) {
  // Destroyed from the last member on: kernels need their context.
  struct Opened {
    std::shared_ptr<Context> context;
    std::shared_ptr<const Modules> kernels;
  };
  auto opened = std::make_shared<Opened>();
  opened->context = Context::Open(index);
  opened->kernels = opened->context->Load(kernels);
  Context* context = opened->context.get();
  return {std::move(opened), context};
}

}  // namespace aoti::cuda
