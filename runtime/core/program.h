// The interface between generated code and the runtime.
//
// A generated program is one C++ class that torch's code generator wrote, renamed so that any
// number of them link into one binary. The runtime sees it only through a table of functions, so
// that the runtime is compiled once and never includes generated code.

#ifndef AOTI_RUNTIME_CORE_PROGRAM_H_
#define AOTI_RUNTIME_CORE_PROGRAM_H_

#include <torch/csrc/inductor/aoti_torch/c/macros.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace aoti::cuda {
struct KernelTable;
}  // namespace aoti::cuda

namespace aoti::internal {

class Device;

// How many tensors a program takes, returns and refers to, according to the generated code.
struct ProgramCounts {
  std::size_t inputs;
  std::size_t outputs;
  std::size_t constants;
};

// The functions of AOTInductor's C ABI that the runtime calls, as the library that the program was
// linked with defines them: programs of different libraries can be in one process. All but the last
// four are the functions `aoti_torch_<name>`.
struct ShimFunctions {
  std::uint64_t (*abi_version)();
  AOTITorchError (*create_tensor_from_blob)(void* data, std::int64_t rank,
                                            const std::int64_t* sizes, const std::int64_t* strides,
                                            std::int64_t offset, std::int32_t dtype,
                                            std::int32_t device_type, std::int32_t device_index,
                                            AtenTensorHandle* result);
  AOTITorchError (*delete_tensor_object)(AtenTensorHandle tensor);
  AOTITorchError (*get_data_ptr)(AtenTensorHandle tensor, void** data);
  AOTITorchError (*get_dtype)(AtenTensorHandle tensor, std::int32_t* dtype);
  AOTITorchError (*get_dim)(AtenTensorHandle tensor, std::int64_t* dim);
  AOTITorchError (*get_sizes)(AtenTensorHandle tensor, std::int64_t** sizes);
  AOTITorchError (*get_strides)(AtenTensorHandle tensor, std::int64_t** strides);
  AOTITorchError (*get_device_type)(AtenTensorHandle tensor, std::int32_t* type);
  bool (*grad_mode_is_enabled)();
  void (*grad_mode_set_enabled)(bool enabled);
  // delete_tensor_object() as a Tensor's deleter.
  void (*release)(void* tensor);
  // The reason why the last call on this thread failed; null if the library does not give one.
  const char* (*last_error)();
  // Attaches to a constant its copy in the layout that operators read fastest; null on libtorch,
  // which has no such layouts. `kind` and `data` must outlive the tensor.
  AOTITorchError (*set_packed)(AtenTensorHandle tensor, const char* kind, const void* data,
                               std::size_t bytes);
  // Seeds the generator of random numbers; null on libtorch, and on slim without random operators.
  void (*manual_seed)(std::uint64_t seed);
};

}  // namespace aoti::internal

namespace aoti {

// One generated program. Every function but `destroy` may throw std::exception.
//
// An instance runs one call at a time. Different instances of one program may run at the same time,
// even if they share constants.
struct ProgramVTable {
  internal::ShimFunctions shim;
  // Makes an instance that has no constants yet. device: the index of a CUDA device; 0 for the CPU.
  void* (*create)(std::int32_t device);
  void (*destroy)(void* instance);
  internal::ProgramCounts (*counts)(const void* instance);
  // Sets the constants, in the order of the manifest's `codegen.constants`. The array is read
  // during the call only; the handles are borrowed and must outlive the instance.
  void (*set_constants)(void* instance, const AtenTensorHandle* handles);
  // Runs the program. It takes ownership of the input handles, even if it throws. The output
  // handles are new references that the caller owns; they are written only if it does not throw.
  // stream: a CUstream, on which work may go on after it returns; null for the CPU.
  void (*run)(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void* stream);
  // Null for a program that runs on the CPU.
  const cuda::KernelTable* cuda;
  // Makes the kernels ready on a device, for as long as the result exists; null if `cuda` is. All
  // programs of a library get the same object for one index. Throws internal::DeviceError.
  std::shared_ptr<internal::Device> (*open_device)(const cuda::KernelTable& kernels,
                                                   std::int32_t index);
};

}  // namespace aoti

#endif  // AOTI_RUNTIME_CORE_PROGRAM_H_
