#include "runtime/cuda/python/kernel_module.h"

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/cuda/python/kernel_arguments.h"
#include "runtime/python/definition.h"
#include "runtime/python/errors.h"
#include "runtime/python/gil.h"
#include "runtime/python/inputs.h"
#include "runtime/python/seal.h"
#include "runtime/python/text.h"

namespace aoti::python {
namespace py = pybind11;
namespace {

using internal::StrCat;

// The legacy default stream, as DLPack names it.
constexpr std::uintptr_t kDefaultStream = 1;

// What the objects of a module share. Never destroyed: modules are not unloaded.
struct State {
  const KernelModule& kernel;
  ErrorTypes errors;
};

class PyKernel {
 public:
  PyKernel(const State& state, std::shared_ptr<const void> loaded, int cuda_device)
      : state_(state), loaded_(std::move(loaded)), cuda_device_(cuda_device) {}

  void Launch(const py::args& args, const py::kwargs& kwargs) const {
    const KernelModule& kernel = state_.kernel;
    const KernelCall call = BindKernelCall(kernel, args, kwargs);
    const std::uintptr_t stream = Converted(kernel.stream, [&] { return ToStream(call.stream); });
    const CudaGrid grid = Converted(kernel.grid, [&] { return ToGrid(call.grid); });
    const CallDevice device{
        .on_cuda = true, .stream = reinterpret_cast<void*>(stream == 0 ? kDefaultStream : stream)};
    // Exports of tensors, which are kept until the kernel is on the stream.
    std::vector<BorrowedInput> borrowed(call.arguments.size());
    std::vector<KernelValue> values;
    for (std::size_t i = 0; i < borrowed.size(); ++i) {
      const KernelParameter& parameter = kernel.parameters[i];
      const py::object& object = call.arguments[i];
      values.push_back(Converted(
          parameter.name,
          [&] { return ToKernelValue(parameter, object, device, cuda_device_, borrowed[i]); },
          &object, &borrowed[i]));
    }
    const auto launched = WithoutGil([&] {
      return kernel.launch(loaded_.get(), reinterpret_cast<void*>(stream), grid, values.data());
    });
    if (!launched.ok()) state_.errors.Raise(launched.error());
  }

  std::string Repr() const {
    return StrCat("Kernel(", state_.kernel.label, ", device=cuda:", cuda_device_, ")");
  }

 private:
  // What `convert` returns for an argument; raises its errors.
  template <typename Function>
  typename std::invoke_result_t<Function>::value_type Converted(
      const char* name, const Function& convert, const py::object* object = nullptr,
      const BorrowedInput* borrowed = nullptr) const {
    std::optional<std::invoke_result_t<Function>> value;
    try {
      value.emplace(convert());
    } catch (py::error_already_set& error) {
      // Exceptions that are not about the argument are passed on, such as KeyboardInterrupt.
      if (object == nullptr || !error.matches(PyExc_Exception) ||
          error.matches(PyExc_MemoryError)) {
        throw;
      }
      const std::string doing = *borrowed->Doing() == '\0' ? "its conversion" : borrowed->Doing();
      Refuse(name,
             Error(ErrorCode::kInvalidArgument,
                   StrCat(TypeName(*object), ": ", doing, " raised ", Describe(error))),
             error.value());
    }
    if (!value->ok()) Refuse(name, value->error());
    return *std::move(*value);
  }

  [[noreturn]] void Refuse(const char* name, const Error& error,
                           const py::object& cause = {}) const {
    state_.errors.Raise(Error(error.code(), StrCat(state_.kernel.label, ": argument \"", name,
                                                   "\": ", error.message())),
                        cause);
  }

  const State& state_;
  std::shared_ptr<const void> loaded_;
  int cuda_device_;
};

void DefineModule(py::module_& module, const KernelModule& kernel) {
  module.doc() = kernel.doc;
  auto* const state = new State{kernel, ErrorTypes::Define(module, "kernel")};
  py::dict signature;
  for (const KernelParameter& parameter : kernel.parameters) {
    signature[parameter.name] = parameter.type;
  }
  module.attr("signature") = signature;
  // module_local: a process may load the modules of any number of kernels.
  py::class_<PyKernel> loaded(module, "Kernel", py::module_local(), py::is_final(),
                              "A loaded kernel, made by load() alone. Thread safe; calls release "
                              "the GIL.");
  loaded
      .def("__call__", Method(&PyKernel::Launch),
           "Returns when the kernel is on the stream, which may be before it has run.")
      .def("__repr__", Method(&PyKernel::Repr));
  Seal(loaded, "a kernel can't be made, copied or pickled: call load(), in each process");
  module.def(
      "load",
      [state](int cuda_device) {
        auto found = WithoutGil(
            [&] { return state->kernel.load(CudaKernelOptions{.cuda_device = cuda_device}); });
        return PyKernel(*state, state->errors.Unwrap(std::move(found)), cuda_device);
      },
      py::arg("cuda_device") = 0,
      "Opens the GPU with this number, as the driver counts, and loads the kernel.");
}

}  // namespace

_object* InitKernelModule(const KernelModule& kernel) {
  return InitDefinition(&kernel,
                        {kernel.name, kernel.label, "kernels",
                         [&kernel](py::module_& module) { DefineModule(module, kernel); }});
}

}  // namespace aoti::python
