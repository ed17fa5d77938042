// The C ABI's numbers of dtypes, devices, layouts and memory formats, as libtorch 2.13 gives them.

#include "runtime/slim/tensor/dtype.h"

using aoti::slim::ScalarType;

extern "C" {

std::int32_t aoti_torch_device_type_cpu() { return 0; }
std::int32_t aoti_torch_device_type_cuda() { return 1; }
std::int32_t aoti_torch_device_type_xpu() { return 12; }
std::int32_t aoti_torch_device_type_mps() { return 13; }
std::int32_t aoti_torch_device_type_meta() { return 14; }
std::int32_t aoti_torch_device_type_privateuse1() { return 20; }

std::int32_t aoti_torch_dtype_uint8() { return static_cast<std::int32_t>(ScalarType::kUInt8); }
std::int32_t aoti_torch_dtype_int8() { return static_cast<std::int32_t>(ScalarType::kInt8); }
std::int32_t aoti_torch_dtype_int16() { return static_cast<std::int32_t>(ScalarType::kInt16); }
std::int32_t aoti_torch_dtype_int32() { return static_cast<std::int32_t>(ScalarType::kInt32); }
std::int32_t aoti_torch_dtype_int64() { return static_cast<std::int32_t>(ScalarType::kInt64); }
std::int32_t aoti_torch_dtype_float16() { return static_cast<std::int32_t>(ScalarType::kFloat16); }
std::int32_t aoti_torch_dtype_float32() { return static_cast<std::int32_t>(ScalarType::kFloat32); }
std::int32_t aoti_torch_dtype_float64() { return static_cast<std::int32_t>(ScalarType::kFloat64); }
std::int32_t aoti_torch_dtype_complex32() { return 8; }
std::int32_t aoti_torch_dtype_complex64() {
  return static_cast<std::int32_t>(ScalarType::kComplex64);
}
std::int32_t aoti_torch_dtype_complex128() {
  return static_cast<std::int32_t>(ScalarType::kComplex128);
}
std::int32_t aoti_torch_dtype_bool() { return static_cast<std::int32_t>(ScalarType::kBool); }
std::int32_t aoti_torch_dtype_bfloat16() {
  return static_cast<std::int32_t>(ScalarType::kBFloat16);
}
std::int32_t aoti_torch_dtype_float8_e5m2() { return 23; }
std::int32_t aoti_torch_dtype_float8_e4m3fn() { return 24; }
std::int32_t aoti_torch_dtype_float8_e5m2fnuz() { return 25; }
std::int32_t aoti_torch_dtype_float8_e4m3fnuz() { return 26; }
std::int32_t aoti_torch_dtype_uint16() { return static_cast<std::int32_t>(ScalarType::kUInt16); }
std::int32_t aoti_torch_dtype_uint32() { return static_cast<std::int32_t>(ScalarType::kUInt32); }
std::int32_t aoti_torch_dtype_uint64() { return static_cast<std::int32_t>(ScalarType::kUInt64); }

std::size_t aoti_torch_dtype_element_size(std::int32_t dtype) {
  // No exception may leave the C ABI, and this function has no status: 0 for what isn't known.
  try {
    return aoti::slim::SizeOf(static_cast<ScalarType>(dtype));
  } catch (const aoti::slim::OpError&) {
    return 0;
  }
}

std::int32_t aoti_torch_layout_strided() { return 0; }

std::int32_t aoti_torch_memory_format_contiguous_format() { return 0; }
std::int32_t aoti_torch_memory_format_preserve_format() { return 1; }
std::int32_t aoti_torch_memory_format_channels_last() { return 2; }
std::int32_t aoti_torch_memory_format_channels_last_3d() { return 3; }

// The version whose C ABI this is: one byte each from the top, major, minor, patch.
std::uint64_t aoti_torch_abi_version() {
  return std::uint64_t{2} << 56 | std::uint64_t{13} << 48 | std::uint64_t{0} << 40;
}

}  // extern "C"
