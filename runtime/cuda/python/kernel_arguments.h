// The arguments of a kernel's call, as Python passes them.

#ifndef AOTI_RUNTIME_CUDA_PYTHON_KERNEL_ARGUMENTS_H_
#define AOTI_RUNTIME_CUDA_PYTHON_KERNEL_ARGUMENTS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "runtime/cuda/python/kernel_module.h"
#include "runtime/python/inputs.h"

namespace aoti::python {

// The objects of a call. grid and stream: null where they are not given.
struct KernelCall {
  std::vector<pybind11::object> arguments;  // in the order of the parameters
  pybind11::object grid;
  pybind11::object stream;
};

// Raises a TypeError where there are too many, too few or unknown ones.
KernelCall BindKernelCall(const KernelModule& kernel, const pybind11::args& args,
                          const pybind11::kwargs& kwargs);

// All errors are without the name of the argument.
Result<KernelValue> ToKernelValue(const KernelParameter& parameter, const pybind11::object& object,
                                  const CallDevice& device, int cuda_device,
                                  BorrowedInput& borrowed);

// null: the legacy default stream.
Result<std::uintptr_t> ToStream(const pybind11::object& stream);

Result<CudaGrid> ToGrid(const pybind11::object& grid);

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_CUDA_PYTHON_KERNEL_ARGUMENTS_H_
