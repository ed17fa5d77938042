// Refers to the operators that torch/csrc/stable/ops.h calls by name, so that the linker takes
// them. Defines what AOTI_CUSTOM_CLASS calls.

#include <cstdint>

extern "C" {
// Here a class is its operators alone: see runtime/operators/include/aoti/custom_class.h.
void aoti_custom_class_define(const char*, const char*, const char*, std::uint32_t) {}

extern const char aoti_slim_op_aten_clone[];
extern const char aoti_slim_op_aten_contiguous[];
extern const char aoti_slim_op_aten_copy_[];
extern const char aoti_slim_op_aten_empty_like[];
extern const char aoti_slim_op_aten_empty_memory_format[];
extern const char aoti_slim_op_aten_flatten_using_ints[];
extern const char aoti_slim_op_aten_matmul[];
extern const char aoti_slim_op_aten_new_empty[];
extern const char aoti_slim_op_aten_new_zeros[];
extern const char aoti_slim_op_aten_reshape[];
extern const char aoti_slim_op_aten_select_int[];
extern const char aoti_slim_op_aten_squeeze_dim[];
extern const char aoti_slim_op_aten_sum_IntList_out[];
extern const char aoti_slim_op_aten_sum_dim_IntList[];
extern const char aoti_slim_op_aten_to_dtype_layout[];
extern const char aoti_slim_op_aten_transpose_int[];
extern const char aoti_slim_op_aten_unsqueeze[];
extern const char aoti_slim_op_aten_view[];
extern const char aoti_slim_op_aten_zero_[];
}

namespace {
[[gnu::used]] const void* const kOperators[] = {
    aoti_slim_op_aten_clone,
    aoti_slim_op_aten_contiguous,
    aoti_slim_op_aten_copy_,
    aoti_slim_op_aten_empty_like,
    aoti_slim_op_aten_empty_memory_format,
    aoti_slim_op_aten_flatten_using_ints,
    aoti_slim_op_aten_matmul,
    aoti_slim_op_aten_new_empty,
    aoti_slim_op_aten_new_zeros,
    aoti_slim_op_aten_reshape,
    aoti_slim_op_aten_select_int,
    aoti_slim_op_aten_squeeze_dim,
    aoti_slim_op_aten_sum_IntList_out,
    aoti_slim_op_aten_sum_dim_IntList,
    aoti_slim_op_aten_to_dtype_layout,
    aoti_slim_op_aten_transpose_int,
    aoti_slim_op_aten_unsqueeze,
    aoti_slim_op_aten_view,
    aoti_slim_op_aten_zero_,
};
}  // namespace
