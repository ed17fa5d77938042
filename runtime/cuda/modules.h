// The kernels of a program, loaded on a device.

#ifndef AOTI_RUNTIME_CUDA_MODULES_H_
#define AOTI_RUNTIME_CUDA_MODULES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/driver_api.h"
#include "runtime/cuda/kernel_table.h"

namespace aoti::cuda {

class Context;

// The images of a kernel that can run on a device, the best one first: the cubin of the highest
// arch with the device's major version and not above it, then PTX that is not above it.
std::vector<const KernelImage*> ImagesFor(const Kernel& kernel, std::uint32_t arch);

// "sm_80, sm_90, PTX of sm_80": what a kernel was compiled for.
std::string ArchsOf(const Kernel& kernel);

// Immutable, and so thread safe. Its context must outlive it.
class Modules {
 public:
  // Loads all kernels. `context` is current. Throws DeviceError.
  Modules(const Context& context, const KernelTable& kernels);
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  const KernelTable& table() const { return table_; }

  // As cuda::Launch().
  void Launch(std::uint32_t kernel, std::uint32_t grid_x, std::uint32_t grid_y,
              std::uint32_t grid_z, void** arguments, CuStream stream) const;

 private:
  struct Loaded {
    CuModule module = nullptr;
    CuFunction function = nullptr;
    const KernelImage* image = nullptr;
  };

  Loaded Load(const Kernel& kernel) const;
  void Unload() noexcept;

  const Context& context_;
  const KernelTable& table_;
  std::vector<Loaded> loaded_;
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_MODULES_H_
