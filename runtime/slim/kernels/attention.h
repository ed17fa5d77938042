// Vector kernels of scaled dot product attention, one table per CpuLevel.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_H_
#define AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_H_

#include <stdint.h>

#include "runtime/slim/kernels/levels.h"

namespace aoti::slim {

inline constexpr int64_t kAttentionKeys = 128;  // the greatest number of keys in a block
inline constexpr int64_t kAttentionRows = 24;   // of queries whose scores exist at a time
inline constexpr int64_t kAttentionPad = 16;    // depths are padded with zeros to multiples of this
// Up to this number of rows, keys are not worth packing, and reading them takes most of the time.
inline constexpr int64_t kAttentionFewRows = 4;

// A block of keys, and the rows of queries that it is added to. All matrices are row-major;
// queries, keys and values are float32, or bfloat16 for attend_pairs.
struct AttentionBlock {
  int64_t rows;
  int64_t keys;         // 1..kAttentionKeys
  int64_t depth;        // of queries and keys; a multiple of kAttentionPad
  int64_t value_depth;  // likewise
  float scale;
  const void* query;  // [rows, depth]
  const void* key;    // [keys, depth]
  int64_t key_stride;
  const void* value;  // [keys, value_depth]
  int64_t value_stride;
  bool more;                 // whether the keys of another block follow in memory
  const float* const* mask;  // `keys` addends per row; null if there is no mask
  const int32_t* visible;    // per row, the number of keys that it sees, from the first on
  // The state of the running softmax, which a block updates. A score is a product times
  // scale, plus the mask, times log2(e). Per row: the largest score so far, the sum of
  // 2^(score - maximum), and the sum of the values with these weights [rows, value_depth].
  float* maximum;
  float* sum;
  float* result;
  float* scratch;  // AttentionScratch(depth, value_depth) floats
};

// For scores, and packed keys; of bfloat16, also packed values.
inline constexpr int64_t AttentionScratch(int64_t depth, int64_t value_depth) {
  const int64_t pairs = (depth + value_depth) / 2;
  return kAttentionKeys * (kAttentionRows + (depth > pairs ? depth : pairs));
}

inline constexpr int64_t AttentionFewScratch(int64_t rows) { return kAttentionKeys * rows; }

enum class AttentionType { kFloat, kHalf, kBFloat16 };

struct AttentionKernels {
  void (*attend)(const AttentionBlock& block);
  // The same for up to kAttentionFewRows rows, and several heads with the same sizes but for
  // `keys`, which may also be 0. The first one's scratch is count * AttentionFewScratch(rows)
  // floats, and the others' is not used.
  void (*attend_few)(const AttentionBlock* heads, int64_t count);
  // The same for bfloat16. Keys are aligned to 4 bytes, and key_stride is even. Null where no CPU
  // of the level has the instructions; callers check whether this CPU has them. Subnormal numbers
  // count as zeros.
  void (*attend_pairs)(const AttentionBlock& block);
  // Sets *begin..*end - 1 to the range that has all values other than -infinity.
  void (*visible_range)(const float* mask, int64_t size, int64_t* begin, int64_t* end);
  void (*widen)(const void* from, AttentionType type, float* to, int64_t size);
  // to = from * factor
  void (*narrow)(const float* from, float factor, AttentionType type, void* to, int64_t size);
};

AOTI_SLIM_DECLARE_KERNELS(AttentionKernels, kAttention)

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_ATTENTION_H_
