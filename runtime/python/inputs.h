// Python objects as borrowed tensors.

#ifndef AOTI_RUNTIME_PYTHON_INPUTS_H_
#define AOTI_RUNTIME_PYTHON_INPUTS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "aoti/result.h"
#include "aoti/tensor_view.h"

namespace aoti::python {

// Keeps the memory of one argument alive and in place for as long as it lives. Needs the GIL.
//
// Taken are objects with a buffer (NumPy arrays, memoryview, bytes, array.array), ml_dtypes'
// bfloat16 arrays, and objects with __dlpack__() (torch and others), in this order.
class BorrowedInput {
 public:
  BorrowedInput() = default;
  ~BorrowedInput();
  BorrowedInput(const BorrowedInput&) = delete;
  BorrowedInput& operator=(const BorrowedInput&) = delete;

  // Errors: 1xx, without the name of the input.
  Result<TensorView> Borrow(const pybind11::object& object);

 private:
  Result<TensorView> BorrowBuffer(const pybind11::object& object);
  Result<TensorView> BorrowDLPack(const pybind11::object& object);

  Py_buffer buffer_{};
  bool has_buffer_ = false;
  pybind11::object keep_alive_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
};

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_INPUTS_H_
