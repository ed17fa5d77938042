// The C ABI's numbers of dtypes, devices, layouts and memory formats, as in libtorch 2.13.

#include "runtime/slim/tensor/dtype.h"

using aoti::slim::ScalarType;

extern "C" {

std::int32_t aoti_torch_device_type_cpu() { return 0; }
std::int32_t aoti_torch_device_type_cuda() { return 1; }
std::int32_t aoti_torch_device_type_xpu() { return 12; }
std::int32_t aoti_torch_device_type_mps() { return 13; }
std::int32_t aoti_torch_device_type_meta() { return 14; }
std::int32_t aoti_torch_device_type_privateuse1() { return 20; }

// BEGIN abi_numbers: generated from toolchain/tables by ./bazelw run //tools/tables:update
std::int32_t aoti_torch_dtype_uint8() { return 0; }
std::int32_t aoti_torch_dtype_int8() { return 1; }
std::int32_t aoti_torch_dtype_int16() { return 2; }
std::int32_t aoti_torch_dtype_int32() { return 3; }
std::int32_t aoti_torch_dtype_int64() { return 4; }
std::int32_t aoti_torch_dtype_float16() { return 5; }
std::int32_t aoti_torch_dtype_float32() { return 6; }
std::int32_t aoti_torch_dtype_float64() { return 7; }
std::int32_t aoti_torch_dtype_complex32() { return 8; }
std::int32_t aoti_torch_dtype_complex64() { return 9; }
std::int32_t aoti_torch_dtype_complex128() { return 10; }
std::int32_t aoti_torch_dtype_bool() { return 11; }
std::int32_t aoti_torch_dtype_bfloat16() { return 15; }
std::int32_t aoti_torch_dtype_float8_e5m2() { return 23; }
std::int32_t aoti_torch_dtype_float8_e4m3fn() { return 24; }
std::int32_t aoti_torch_dtype_float8_e5m2fnuz() { return 25; }
std::int32_t aoti_torch_dtype_float8_e4m3fnuz() { return 26; }
std::int32_t aoti_torch_dtype_uint16() { return 27; }
std::int32_t aoti_torch_dtype_uint32() { return 28; }
std::int32_t aoti_torch_dtype_uint64() { return 29; }
// END abi_numbers

std::size_t aoti_torch_dtype_element_size(std::int32_t dtype) {
  // No exception may leave the C ABI, and this function can't return an error: unknown dtypes give
  // 0.
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

// The version of torch whose C ABI this is, one byte each from the most significant: major, minor,
// patch.
std::uint64_t aoti_torch_abi_version() {
  return std::uint64_t{2} << 56 | std::uint64_t{13} << 48 | std::uint64_t{0} << 40;
}

}  // extern "C"
