// The kernels of a CUDA program, as generated code describes them to the runtime.

#ifndef AOTI_RUNTIME_CUDA_KERNEL_TABLE_H_
#define AOTI_RUNTIME_CUDA_KERNEL_TABLE_H_

#include <cstdint>

namespace aoti::cuda {

// One compiled form of a kernel.
struct KernelImage {
  std::uint32_t arch;          // the compute capability: 80 for sm_80
  bool is_ptx;                 // text that the driver compiles for newer devices; else a cubin
  std::uint64_t offset;        // in KernelTable::images, 16-byte aligned; PTX ends with a zero byte
  std::uint64_t bytes;         // with that zero byte
  std::uint32_t shared_bytes;  // dynamic shared memory of a block
  std::uint32_t threads;       // of a block
};

struct Kernel {
  const char* symbol;         // in the images
  const KernelImage* images;  // cubins from the lowest arch to the highest, then one PTX of the
                              // lowest
  std::uint32_t image_count;
};

// All kernels of a program. Everything that it refers to is constant and lives as long as the
// process.
struct KernelTable {
  const unsigned char* images;
  const Kernel* kernels;
  std::uint32_t kernel_count;
  bool reports_indices;  // whether a kernel gets IndexStatus()
};

// Launches kernel number `kernel` on the current device. arguments: pointers to the kernel's
// parameters, as cuLaunchKernel takes them. stream: a CUstream. Throws std::runtime_error with the
// kernel's name and the driver's reason. Thread safe.
void Launch(const KernelTable& table, std::uint32_t kernel, std::uint32_t grid_x,
            std::uint32_t grid_y, std::uint32_t grid_z, void** arguments, void* stream);

// The device's address of a 64-bit word of the call that this thread runs. A kernel that meets an
// index out of range uses the nearest element, and stores the index in the high 32 bits of the word
// (saturated) and the size of the dimension plus one in the low 32 bits. It is 0 before the call.
void* IndexStatus();

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_KERNEL_TABLE_H_
