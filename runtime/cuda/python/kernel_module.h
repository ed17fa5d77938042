// The Python module of a Triton kernel. A generated module is one call of InitKernelModule().

#ifndef AOTI_RUNTIME_CUDA_PYTHON_KERNEL_MODULE_H_
#define AOTI_RUNTIME_CUDA_PYTHON_KERNEL_MODULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "aoti/cuda_kernel.h"
#include "aoti/dtype.h"
#include "aoti/result.h"

struct _object;  // PyObject; without Python's headers, generated files compile faster

namespace aoti::python {

enum class KernelKind : std::uint8_t { kPointer, kSigned, kUnsigned, kFloat, kBool };

// A parameter of the launcher.
struct KernelParameter {
  const char* name;
  const char* type;  // as in the BUILD file: "const float32*"
  KernelKind kind;
  int bits = 0;            // of an integer
  bool read_only = false;  // whether the kernel only reads what the pointer is to
  // Of a pointer: that of tensors; none where tensors of no library that DLPack knows have it.
  std::optional<DType> dtype = std::nullopt;
};

// What is passed for it.
union KernelValue {
  void* pointer;
  std::int64_t integer;
  std::uint64_t bits;
  double real;
  bool truth;
};

struct KernelModule {
  const char* name;   // the module's
  const char* label;  // the target's: begins every error
  const char* doc;
  std::span<const KernelParameter> parameters;
  // The names of a call's own arguments, which no parameter has. grid: null where the target
  // computes it.
  const char* stream;
  const char* grid;
  Result<std::shared_ptr<const void>> (*load)(const CudaKernelOptions& options);
  // values: one for each parameter.
  Result<void> (*launch)(const void* loaded, CudaStream stream, CudaGrid grid,
                         const KernelValue* values);
};

// The body of PyInit_<name>(). The argument must have static lifetime.
_object* InitKernelModule(const KernelModule& kernel);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_CUDA_PYTHON_KERNEL_MODULE_H_
