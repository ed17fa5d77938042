#include "runtime/cuda/tests/test_kernels.h"

#include <cstddef>

namespace aoti::testing {
namespace {

// y[i] = x[i] + row[i % 4]
constexpr char kAddRowPtx[] = R"(.version 6.4
.target sm_75
.address_size 64

.visible .entry add_row(
	.param .u64 add_row_param_0,
	.param .u64 add_row_param_1,
	.param .u64 add_row_param_2,
	.param .u32 add_row_param_3
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<12>;

	ld.param.u64 %rd1, [add_row_param_0];
	ld.param.u64 %rd2, [add_row_param_1];
	ld.param.u64 %rd3, [add_row_param_2];
	ld.param.u32 %r1, [add_row_param_3];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %tid.x;
	shl.b32 %r4, %r2, 5;
	add.s32 %r5, %r4, %r3;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra $done;
	and.b32 %r6, %r5, 3;
	mul.wide.s32 %rd4, %r5, 4;
	mul.wide.s32 %rd5, %r6, 4;
	add.s64 %rd6, %rd1, %rd4;
	add.s64 %rd7, %rd2, %rd5;
	add.s64 %rd8, %rd3, %rd4;
	ld.global.f32 %f1, [%rd6];
	ld.global.f32 %f2, [%rd7];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%rd8], %f3;
$done:
	ret;
}
)";

// total[i] += x[i]
constexpr char kAccumulatePtx[] = R"(.version 6.4
.target sm_75
.address_size 64

.visible .entry accumulate(
	.param .u64 accumulate_param_0,
	.param .u64 accumulate_param_1,
	.param .u32 accumulate_param_2
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<8>;

	ld.param.u64 %rd1, [accumulate_param_0];
	ld.param.u64 %rd2, [accumulate_param_1];
	ld.param.u32 %r1, [accumulate_param_2];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %tid.x;
	shl.b32 %r4, %r2, 5;
	add.s32 %r5, %r4, %r3;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra $done;
	mul.wide.s32 %rd3, %r5, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.f32 %f1, [%rd4];
	ld.global.f32 %f2, [%rd5];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%rd5], %f3;
$done:
	ret;
}
)";

// Reports x[0] if it is not an index below 4.
constexpr char kCheckIndexPtx[] = R"(.version 6.4
.target sm_75
.address_size 64

.visible .entry check_index(
	.param .u64 check_index_param_0,
	.param .u64 check_index_param_1
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .f32 %f<2>;
	.reg .b64 %rd<6>;

	ld.param.u64 %rd1, [check_index_param_0];
	ld.param.u64 %rd2, [check_index_param_1];
	ld.global.f32 %f1, [%rd1];
	cvt.rzi.s32.f32 %r1, %f1;
	setp.lt.s32 %p1, %r1, 4;
	@%p1 bra $done;
	cvt.u64.u32 %rd3, %r1;
	shl.b64 %rd4, %rd3, 32;
	or.b64 %rd5, %rd4, 5;
	st.global.u64 [%rd2], %rd5;
$done:
	ret;
}
)";

// The images of the kernels. No ptxas made these cubins, which every driver refuses.
struct alignas(16) Images {
  char cubin[16] =
      "\x7f"
      "ELF";
  char add_row[sizeof(kAddRowPtx)];
  alignas(16) char accumulate[sizeof(kAccumulatePtx)];
  alignas(16) char check_index[sizeof(kCheckIndexPtx)];
};

constexpr Images MakeImages() {
  Images images{};
  for (std::size_t i = 0; i < sizeof(kAddRowPtx); ++i) images.add_row[i] = kAddRowPtx[i];
  for (std::size_t i = 0; i < sizeof(kAccumulatePtx); ++i) images.accumulate[i] = kAccumulatePtx[i];
  for (std::size_t i = 0; i < sizeof(kCheckIndexPtx); ++i)
    images.check_index[i] = kCheckIndexPtx[i];
  return images;
}

constinit const Images kImages = MakeImages();

constexpr cuda::KernelImage kAddRowImages[] = {
    {80, false, 0, 16, 64, kTestThreads},
    {90, false, 0, 16, 64, kTestThreads},
    {75, true, offsetof(Images, add_row), sizeof(kAddRowPtx), 0, kTestThreads},
};
constexpr cuda::KernelImage kAccumulateImages[] = {
    {80, false, 0, 16, 0, kTestThreads},
    {90, false, 0, 16, 0, kTestThreads},
    {75, true, offsetof(Images, accumulate), sizeof(kAccumulatePtx), 0, kTestThreads},
};
constexpr cuda::KernelImage kCheckIndexImages[] = {
    {80, false, 0, 16, 0, kTestThreads},
    {90, false, 0, 16, 0, kTestThreads},
    {75, true, offsetof(Images, check_index), sizeof(kCheckIndexPtx), 0, kTestThreads},
};
constexpr cuda::Kernel kKernels[] = {{"add_row", kAddRowImages, 3},
                                     {"accumulate", kAccumulateImages, 3},
                                     {"check_index", kCheckIndexImages, 3}};
}  // namespace

const cuda::KernelTable kTestKernels = {reinterpret_cast<const unsigned char*>(&kImages), kKernels,
                                        3, true};

}  // namespace aoti::testing
