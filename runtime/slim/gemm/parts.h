// Helpers that the implementations of matrix products share. Private to this folder.

#ifndef AOTI_RUNTIME_SLIM_GEMM_PARTS_H_
#define AOTI_RUNTIME_SLIM_GEMM_PARTS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/kernels/gemm.h"

namespace aoti::slim {

// With fewer products per thread, starting a thread costs more than it saves. With few rows,
// products wait for memory and take longer.
inline constexpr std::int64_t ProductsPerThread(std::int64_t rows) {
  return rows <= 2 ? 1 << 15 : 1 << 16;
}

// The kernels for this CPU.
const GemmKernels& CurrentGemmKernels();

// base + offset, in elements.
inline const void* GemmAt(GemmType type, const void* base, std::int64_t offset) {
  return static_cast<const std::byte*>(base) + offset * (type == GemmType::kFloat ? 4 : 2);
}

// Whether b is larger than what a core's L2 cache keeps from one call to the next, such as the
// weight of a recurrent layer from step to step.
inline bool StreamsB(const GemmAny& g) {
  constexpr std::int64_t kKept = std::int64_t{1} << 20;
  return g.n * g.k > kKept / (g.type == GemmType::kFloat ? 4 : 2);
}

// Whether the kernel can write float sums to c directly, including the bias.
inline bool WritesSumsToC(const GemmAny& g) {
  return g.type == GemmType::kFloat && g.c_col == 1 &&
         (g.bias == nullptr || g.bias_col == 1 || g.bias_col == 0);
}

// c[i, j] = activation(alpha * sums[i, j] + beta * bias[i, j]) for the rows i0..i1 and the columns
// j0..j1 of c; sums has only these rows and columns. Null sums count as zeros.
void FinishSums(const GemmAny& g, std::int64_t i0, std::int64_t i1, std::int64_t j0,
                std::int64_t j1, const float* sums, std::int64_t sums_row);

// to[i * to_row + j * to_col] = from[i * from_row + j * from_col], as float.
void CopyAsFloat(GemmType type, const void* from, std::int64_t from_row, std::int64_t from_col,
                 std::int64_t rows, std::int64_t columns, float* to, std::int64_t to_row,
                 std::int64_t to_col);

// Computes tiles that stay in registers, of blocks that stay in the caches; packs b if it is not
// packed. Computes the activation if WritesSumsToC().
void RunTiledGemm(const GemmAny& g);

// The same product, computed as c' = b' * a'. b must not be packed.
GemmAny Transposed(const GemmAny& g);

// Whether this process can use AMX, and the product is one of bfloat16 that is faster with it.
bool CanRunAmx(const GemmAny& g);

// The same as RunTiledGemm() for such a product. Subnormal numbers count as zeros.
void RunAmxGemm(const GemmAny& g);

// Whether this CPU has instructions for pairs of bfloat16, and the product is one of bfloat16.
bool CanRunPairs(const GemmAny& g);

// The same as RunTiledGemm() for such a product. Subnormal numbers count as zeros.
void RunPairsGemm(const GemmAny& g);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_PARTS_H_
