// Python objects as borrowed tensors.

#ifndef AOTI_RUNTIME_PYTHON_INPUTS_H_
#define AOTI_RUNTIME_PYTHON_INPUTS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aoti/device_type.h"
#include "aoti/dtype.h"
#include "aoti/model.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor_view.h"

namespace aoti::python {

// Where a call works.
struct CallDevice {
  bool on_cuda = false;
  void* stream = nullptr;  // RunOptions::cuda_stream
};

inline CallDevice DeviceOf(const Model& model, const RunOptions& options) {
  return {model.device() == DeviceType::kCuda, options.cuda_stream};
}

// Keeps the memory of one argument alive and in place as long as this object exists. Needs the GIL.
//
// Accepts objects with a buffer (NumPy arrays, memoryview, bytes, array.array), ml_dtypes' bfloat16
// arrays, and objects with __dlpack__() (torch and others), in this order.
class BorrowedInput {
 public:
  BorrowedInput() = default;
  ~BorrowedInput();
  BorrowedInput(const BorrowedInput&) = delete;
  BorrowedInput& operator=(const BorrowedInput&) = delete;

  // Errors: 1xx, without the name of the input. An exception that the object raises is thrown as
  // pybind11::error_already_set; Doing() then names the operation.
  // A tensor on a GPU is borrowed if `device` says that the model runs on one.
  Result<TensorView> Borrow(const pybind11::object& object, const CallDevice& device = {});

  // A Python number as a tensor of rank 0, for an input that is a float64 or an int64. Accepts what
  // float() takes without parsing text, or what operator.index() takes. Errors as above.
  Result<TensorView> BorrowNumber(const pybind11::object& object, DType dtype);

  // The default of an input that is a number.
  TensorView Default(const InputSpec& input);

  // The operation that was attempted last, such as "__dlpack__()".
  const char* Doing() const { return doing_; }

  // Whether the exporter says that it made a copy: then the caller does not see what is written to
  // it.
  bool IsCopy() const { return is_copy_; }

 private:
  Result<TensorView> BorrowBuffer(const pybind11::object& object);
  // ml_dtypes' arrays: NumPy can't export their buffer, but can export the buffer of an int16 view.
  Result<TensorView> BorrowBFloat16(const pybind11::object& object);
  Result<TensorView> BorrowDLPack(const pybind11::object& object, const CallDevice& device);
  bool IsBFloat16(const pybind11::object& object);
  std::string ElementType(const pybind11::object& object);
  // Whether a tensor is on a GPU; an error if no model could take it, or none on this device.
  Result<bool> CheckDevice(const pybind11::object& object, const CallDevice& device);
  // An attribute; null where there is none.
  pybind11::object Find(const pybind11::object& object, const char* name);
  pybind11::object Call(const pybind11::object& function, const char* doing,
                        const pybind11::tuple& args, const pybind11::dict& kwargs);

  const char* doing_ = "";
  bool is_copy_ = false;
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  pybind11::object keep_alive_;
  double float_ = 0;
  std::int64_t int_ = 0;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_INPUTS_H_
