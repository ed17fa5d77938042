// The C ABI's conversions between one-element tensors and C++ values.

#include <complex>
#include <type_traits>

#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

template <typename T>
AOTITorchError Item(AtenTensorHandle tensor, ScalarType dtype, T* value) {
  return Guarded([&] {
    Require(tensor->numel() == 1, "a tensor of ", tensor->numel(),
            " elements can't be converted to a number; it must have one element");
    TensorPtr downloaded;
    if (tensor->storage().device() != kOnCpu) {
      downloaded = Downloaded(*tensor);
      tensor = downloaded.get();
    }
    if (tensor->dtype() == dtype) {
      *value = *tensor->data<T>();
    } else {
      *value = *Converted(*tensor, dtype)->template data<T>();
    }
  });
}

template <typename T>
AOTITorchError FromScalar(T value, ScalarType dtype, AtenTensorHandle* result) {
  return Guarded([&] {
    TensorPtr tensor = Empty(dtype, Ints{});
    *tensor->data<T>() = value;
    *result = tensor.release();
  });
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::FromScalar;
using aoti::slim::Item;
using aoti::slim::ScalarType;

extern "C" {

AOTITorchError aoti_torch_item_float16(AtenTensorHandle tensor, c10::Half* ret_value) {
  return Item(tensor, ScalarType::kFloat16, ret_value);
}
AOTITorchError aoti_torch_item_bfloat16(AtenTensorHandle tensor, c10::BFloat16* ret_value) {
  return Item(tensor, ScalarType::kBFloat16, ret_value);
}
AOTITorchError aoti_torch_item_float32(AtenTensorHandle tensor, float* ret_value) {
  return Item(tensor, ScalarType::kFloat32, ret_value);
}
AOTITorchError aoti_torch_item_float64(AtenTensorHandle tensor, double* ret_value) {
  return Item(tensor, ScalarType::kFloat64, ret_value);
}
AOTITorchError aoti_torch_item_uint8(AtenTensorHandle tensor, uint8_t* ret_value) {
  return Item(tensor, ScalarType::kUInt8, ret_value);
}
AOTITorchError aoti_torch_item_uint16(AtenTensorHandle tensor, uint16_t* ret_value) {
  return Item(tensor, ScalarType::kUInt16, ret_value);
}
AOTITorchError aoti_torch_item_uint32(AtenTensorHandle tensor, uint32_t* ret_value) {
  return Item(tensor, ScalarType::kUInt32, ret_value);
}
AOTITorchError aoti_torch_item_uint64(AtenTensorHandle tensor, uint64_t* ret_value) {
  return Item(tensor, ScalarType::kUInt64, ret_value);
}
AOTITorchError aoti_torch_item_int8(AtenTensorHandle tensor, int8_t* ret_value) {
  return Item(tensor, ScalarType::kInt8, ret_value);
}
AOTITorchError aoti_torch_item_int16(AtenTensorHandle tensor, int16_t* ret_value) {
  return Item(tensor, ScalarType::kInt16, ret_value);
}
AOTITorchError aoti_torch_item_int32(AtenTensorHandle tensor, int32_t* ret_value) {
  return Item(tensor, ScalarType::kInt32, ret_value);
}
AOTITorchError aoti_torch_item_int64(AtenTensorHandle tensor, int64_t* ret_value) {
  return Item(tensor, ScalarType::kInt64, ret_value);
}
AOTITorchError aoti_torch_item_bool(AtenTensorHandle tensor, bool* ret_value) {
  return Item(tensor, ScalarType::kBool, ret_value);
}
AOTITorchError aoti_torch_item_complex64(AtenTensorHandle tensor, c10::complex<float>* ret_value) {
  return Item(tensor, ScalarType::kComplex64, ret_value);
}

AOTITorchError aoti_torch_scalar_to_tensor_float32(float value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kFloat32, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_float64(double value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kFloat64, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_uint8(uint8_t value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kUInt8, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_uint16(uint16_t value,
                                                  AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kUInt16, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_uint32(uint32_t value,
                                                  AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kUInt32, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_uint64(uint64_t value,
                                                  AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kUInt64, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_int8(int8_t value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kInt8, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_int16(int16_t value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kInt16, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_int32(int32_t value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kInt32, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_int64(int64_t value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kInt64, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_bool(bool value, AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kBool, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_complex64(c10::complex<float> value,
                                                     AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kComplex64, ret_new_tensor);
}
AOTITorchError aoti_torch_scalar_to_tensor_complex128(c10::complex<double> value,
                                                      AtenTensorHandle* ret_new_tensor) {
  return FromScalar(value, ScalarType::kComplex128, ret_new_tensor);
}

}  // extern "C"
