// The functions of the C ABI that only PyTorch's stable C++ API (torch/csrc/stable) calls: the
// operators of programs, not generated code.

#include <cstdint>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

extern "C" {

const char* torch_exception_get_what() { return torch_exception_get_what_without_backtrace(); }

AOTITorchError torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret_data_ptr) {
  *ret_data_ptr = tensor->address();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret_data_ptr) {
  *ret_data_ptr = tensor->address();
  return AOTI_TORCH_SUCCESS;
}

AOTITorchError torch_from_blob(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t,
                               int32_t, int32_t, AtenTensorHandle*, int32_t, const uint8_t*,
                               int64_t, void (*)(void* data, void* ctx), void*) {
  return aoti::slim::Guarded([] {
    throw aoti::slim::OpError(
        "from_blob() with a deleter is not supported by the slim runtime: make the tensor with "
        "torch::stable::empty() and write into it");
  });
}

// dtypes that slim has no tensors of
int32_t torch_dtype_float8_e8m0fnu() { return 44; }
int32_t torch_dtype_float4_e2m1fn_x2() { return 45; }

// layouts that slim has no tensors of
int32_t aoti_torch_layout_sparse_coo() { return 1; }
int32_t aoti_torch_layout_sparse_csr() { return 2; }
int32_t aoti_torch_layout__mkldnn() { return 3; }
int32_t aoti_torch_layout_sparse_csc() { return 4; }
int32_t aoti_torch_layout_sparse_bsr() { return 5; }
int32_t aoti_torch_layout_sparse_bsc() { return 6; }
int32_t aoti_torch_layout_jagged() { return 7; }

// what a schema says of its operator, which only tracing reads
int32_t torch_tag_core() { return 0; }
int32_t torch_tag_cudagraph_unsafe() { return 1; }
int32_t torch_tag_data_dependent_output() { return 2; }
int32_t torch_tag_dynamic_output_shape() { return 3; }
int32_t torch_tag_flexible_layout() { return 4; }
int32_t torch_tag_generated() { return 5; }
int32_t torch_tag_inplace_view() { return 7; }
int32_t torch_tag_maybe_aliasing_or_mutating() { return 8; }
int32_t torch_tag_needs_contiguous_strides() { return 9; }
int32_t torch_tag_needs_exact_strides() { return 10; }
int32_t torch_tag_needs_fixed_stride_order() { return 11; }
int32_t torch_tag_nondeterministic_bitwise() { return 12; }
int32_t torch_tag_nondeterministic_seeded() { return 13; }
int32_t torch_tag_out_variant() { return 15; }
int32_t torch_tag_pointwise() { return 16; }
int32_t torch_tag_pt2_compliant_tag() { return 17; }
int32_t torch_tag_reduction() { return 18; }
int32_t torch_tag_view_copy() { return 19; }

}  // extern "C"
