#include "runtime/cuda/modules.h"

#include "runtime/cuda/context.h"
#include "runtime/cuda/driver.h"

namespace aoti::cuda {

std::vector<const KernelImage*> ImagesFor(const Kernel& kernel, std::uint32_t arch) {
  const KernelImage* cubin = nullptr;
  const KernelImage* ptx = nullptr;
  for (const KernelImage& image : std::span(kernel.images, kernel.image_count)) {
    if (image.arch > arch) continue;
    if (image.is_ptx) {
      if (ptx == nullptr || image.arch > ptx->arch) ptx = &image;
    } else if (image.arch / 10 == arch / 10) {
      if (cubin == nullptr || image.arch > cubin->arch) cubin = &image;
    }
  }
  std::vector<const KernelImage*> images;
  if (cubin != nullptr) images.push_back(cubin);
  if (ptx != nullptr) images.push_back(ptx);
  return images;
}

std::string ArchsOf(const Kernel& kernel) {
  std::string text;
  for (const KernelImage& image : std::span(kernel.images, kernel.image_count)) {
    text += StrCat(text.empty() ? "" : ", ", image.is_ptx ? "PTX of sm_" : "sm_", image.arch);
  }
  return text;
}

Modules::Modules(const Context& context, const KernelTable& kernels)
    : context_(context), table_(kernels) {
  loaded_.reserve(kernels.kernel_count);
  try {
    for (const Kernel& kernel : std::span(kernels.kernels, kernels.kernel_count)) {
      loaded_.push_back(Load(kernel));
    }
  } catch (...) {
    Unload();
    throw;
  }
}

Modules::~Modules() {
  if (IsForkedChild()) return;
  const Context::Current current(context_);
  Unload();
}

Modules::Loaded Modules::Load(const Kernel& kernel) const {
  const auto images = ImagesFor(kernel, context_.arch());
  if (images.empty()) {
    throw DeviceError(ErrorCode::kUnsupportedGpu,
                      StrCat("the program was built for ", ArchsOf(kernel), "; ", context_.Text(),
                             " is sm_", context_.arch(), "; add it to cuda_archs"));
  }
  Loaded loaded;
  CuResult result = kErrorNoBinaryForGpu;
  for (const KernelImage* image : images) {
    loaded.image = image;
    result = Driver().ModuleLoadData(&loaded.module, table_.images + image->offset);
    if (result != kErrorNoBinaryForGpu) break;
  }
  const auto doing = [&] {
    return StrCat("loading the kernel ", kernel.symbol, " (",
                  loaded.image->is_ptx ? "PTX of sm_" : "sm_", loaded.image->arch, ") on ",
                  context_.Text());
  };
  Check(result, doing);
  result = Driver().ModuleGetFunction(&loaded.function, loaded.module, kernel.symbol);
  if (result == kSuccess && loaded.image->shared_bytes > 0) {
    result = Driver().FuncSetAttribute(loaded.function, kMaxDynamicSharedSizeBytes,
                                       static_cast<int>(loaded.image->shared_bytes));
  }
  if (result != kSuccess) Driver().ModuleUnload(loaded.module);
  Check(result, doing);
  return loaded;
}

void Modules::Unload() noexcept {
  for (const Loaded& loaded : loaded_) Driver().ModuleUnload(loaded.module);
  loaded_.clear();
}

void Modules::Launch(std::uint32_t kernel, std::uint32_t grid_x, std::uint32_t grid_y,
                     std::uint32_t grid_z, void** arguments, CuStream stream) const {
  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return;  // no elements: the driver refuses it
  const Loaded& loaded = loaded_[kernel];
  Check(Driver().LaunchKernel(loaded.function, grid_x, grid_y, grid_z, loaded.image->threads, 1, 1,
                              loaded.image->shared_bytes, stream, arguments, nullptr),
        [&] {
          return StrCat("launching the kernel ", table_.kernels[kernel].symbol, " (", grid_x, " x ",
                        grid_y, " x ", grid_z, " blocks) on ", context_.Text());
        });
}

}  // namespace aoti::cuda
