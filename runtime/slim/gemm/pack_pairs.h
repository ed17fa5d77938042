// Copies numbers of 16 bits into pairs. Private to this folder.

#ifndef AOTI_RUNTIME_SLIM_GEMM_PACK_PAIRS_H_
#define AOTI_RUNTIME_SLIM_GEMM_PACK_PAIRS_H_

#include <cstdint>

namespace aoti::slim {

// to[p * to_step + i] = the pair of from[i, 2 p] and from[i, 2 p + 1], where from[i, k] is at
// from + i * row + k * column; behind the last k is 0.
inline void CopyPairs(const std::uint16_t* from, std::int64_t row, std::int64_t column,
                      std::int64_t rows, std::int64_t depth, std::uint32_t* to,
                      std::int64_t to_step) {
  for (std::int64_t k = 0; k < depth; k += 2, to += to_step) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::uint16_t* pair = from + i * row + k * column;
      const std::uint32_t high = k + 1 < depth ? pair[column] : 0;
      to[i] = pair[0] | high << 16;
    }
  }
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_GEMM_PACK_PAIRS_H_
