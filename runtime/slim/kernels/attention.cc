#include "runtime/slim/kernels/attention.h"

#include <math.h>
#include <stdint.h>

#include "runtime/slim/kernels/exp.h"
#include "runtime/slim/kernels/gemm_load.h"
#include "runtime/slim/kernels/simd.h"
#include "runtime/slim/kernels/transpose.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

// The number of queries whose products with a panel of keys are kept in registers.
constexpr int kRows = 6;
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kWide = 4;  // with 32 registers
#else
constexpr int kWide = 2;  // with 16 registers
#endif
constexpr int kPanel = kWide * kLanes;
static_assert(kAttentionKeys % kPanel == 0 && kAttentionPad % kLanes == 0);

// How many keys ahead memory is prefetched: the rows of a head are apart from each other, which the
// hardware prefetcher does not foresee.
constexpr int64_t kKeysAhead = 32;

inline void PrefetchRow(const float* row, int64_t size) {
  for (int64_t i = 0; i < size; i += 16) __builtin_prefetch(row + i);
}

// Up to this number of rows, transposing the keys costs more than adding up the lanes of vectors.
constexpr int64_t kFewRows = 4;

inline float Exp(float x) { return Exp(Splat(x))[0]; }

// (a0, b0, a1, b1, ..) from the lower and from the upper halves.
inline VecF InterleaveLow(VecF a, VecF b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
inline VecF InterleaveHigh(VecF a, VecF b) {
#if defined(__AVX512F__)
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
#elif defined(__AVX2__)
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

struct Keys {
  const float* data;
  int64_t stride;
  int64_t last;  // the last key, which is read again in place of keys beyond it
};

// Products of kQueries queries with kCount keys: first, first + step, ... The product with key i is
// spread over lane i of a vector and every kCount-th lane after it.
template <int kQueries, int kCount>
inline __attribute__((always_inline)) void Products(const AttentionBlock& block,
                                                    const float* queries, const Keys& keys,
                                                    int64_t first, int64_t step, VecF* sums) {
  if constexpr (kCount == 1) {
    const float* key = keys.data + (first < keys.last ? first : keys.last) * keys.stride;
    for (int q = 0; q < kQueries; ++q) sums[q] = VecF{};
    for (int64_t d = 0; d < block.depth; d += kLanes) {
      const VecF x = Load(key + d);
      for (int q = 0; q < kQueries; ++q) {
        sums[q] = Fma(Load(queries + q * block.depth + d), x, sums[q]);
      }
    }
  } else {
    VecF even[kQueries], odd[kQueries];
    Products<kQueries, kCount / 2>(block, queries, keys, first, 2 * step, even);
    Products<kQueries, kCount / 2>(block, queries, keys, first + step, 2 * step, odd);
    for (int q = 0; q < kQueries; ++q) {
      sums[q] = InterleaveLow(even[q], odd[q]) + InterleaveHigh(even[q], odd[q]);
    }
  }
}

// scores[q, key] for a few queries, from keys that are not packed.
template <int kQueries>
void ScoreFew(const AttentionBlock& block, const float* queries, int64_t keys, float* scores) {
  const Keys source = {block.key, block.key_stride, keys - 1};
  for (int64_t key = 0; key < keys; key += kLanes) {
    for (int64_t i = key; i < key + kLanes; ++i) {
      PrefetchRow(block.key + (i + kKeysAhead) * block.key_stride, block.depth);
    }
    VecF sums[kQueries];
    Products<kQueries, kLanes>(block, queries, source, key, 1, sums);
    for (int q = 0; q < kQueries; ++q) Store(scores + q * kAttentionKeys + key, sums[q]);
  }
}

// scores[q, key] for the first kVectors vectors of keys of a panel [depth, kPanel].
template <int kQueries, int kVectors>
void ScorePanel(const float* queries, int64_t depth, const float* panel, float* scores) {
  VecF sums[kQueries][kVectors] = {};
  for (int64_t d = 0; d < depth; ++d) {
    VecF x[kVectors];
    for (int w = 0; w < kVectors; ++w) x[w] = Load(panel + d * kPanel + w * kLanes);
    for (int q = 0; q < kQueries; ++q) {
      const VecF query = Splat(queries[q * depth + d]);
      for (int w = 0; w < kVectors; ++w) sums[q][w] = Fma(query, x[w], sums[q][w]);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) Store(scores + q * kAttentionKeys + w * kLanes, sums[q][w]);
  }
}

// scores[q, key], from keys that are packed in panels.
template <int kQueries>
void ScoreMany(const AttentionBlock& block, const float* queries, const float* panels, int64_t keys,
               float* scores) {
  int64_t key = 0;
  for (; keys - key > kPanel / 2; key += kPanel) {
    ScorePanel<kQueries, kWide>(queries, block.depth, panels + key * block.depth, scores + key);
  }
  if (key < keys) {
    ScorePanel<kQueries, kWide / 2>(queries, block.depth, panels + key * block.depth, scores + key);
  }
}

// Transposes keys into panels [depth, kPanel]; the last panel repeats the last key.
void PackKeys(const AttentionBlock& block, float* panels) {
  for (int64_t first = 0; first < block.keys; first += 4) {
    const float* from[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t key = first + i < block.keys ? first + i : block.keys - 1;
      from[i] = block.key + key * block.key_stride;
    }
    float* to = panels + first / kPanel * kPanel * block.depth + first % kPanel;
    for (int64_t d = 0; d < block.depth; d += 4) {
      Quad x[4];
      for (int i = 0; i < 4; ++i) x[i] = *reinterpret_cast<const QuadAny*>(from[i] + d);
      StoreTurnedQuads(x, to + d * kPanel, kPanel);
    }
  }
}

// Replaces a row's products by the weights exp(score - maximum), and by 0 from `keys` on up to a
// full vector. Returns the factor that adapts earlier sums to the new maximum.
float Soften(float* scores, int64_t keys, const float* mask, float scale, float* maximum,
             float* sum) {
  VecF most = Splat(-INFINITY);
  int64_t i = 0;
  for (; i + kLanes <= keys; i += kLanes) {
    VecF x = Load(scores + i) * scale;
    if (mask != nullptr) x += Load(mask + i);
    most = Max(most, x);
    Store(scores + i, x);
  }
  if (i < keys) {
    VecF x = Load(scores + i) * scale;
    if (mask != nullptr) x += LoadPart(mask + i, static_cast<int>(keys - i));
    for (int64_t lane = keys - i; lane < kLanes; ++lane) x[lane] = -INFINITY;
    most = Max(most, x);
    Store(scores + i, x);
  }
  const float before = *maximum;
  const float block_most = ReduceMax(most);
  const float after = before > block_most ? before : block_most;
  *maximum = after;
  // Before the row's first visible key: exp(-inf - 0) is 0, but exp(-inf - -inf) would be NaN.
  const float shift = after == -INFINITY ? 0.0f : after;
  VecF total = {};
  for (i = 0; i < keys; i += kLanes) {
    const VecF weight = Exp(Load(scores + i) - shift);
    total += weight;
    Store(scores + i, weight);
  }
  const float factor = before == after ? 1.0f : Exp(before - shift);
  *sum = *sum * factor + ReduceAdd(total);
  return factor;
}

// result[q, :] = result[q, :] * factors[q] + weights[q, :] * values, for kVectors vectors.
template <int kQueries, int kVectors>
void Mix(const float* weights, const float* factors, const float* values, int64_t stride,
         int64_t keys, float* result, int64_t result_stride) {
  VecF sums[kQueries][kVectors];
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) {
      sums[q][w] = Load(result + q * result_stride + w * kLanes) * factors[q];
    }
  }
  for (int64_t key = 0; key < keys; ++key) {
    if constexpr (kQueries <= kFewRows) {
      PrefetchRow(values + (key + kKeysAhead) * stride, kVectors * kLanes);
    }
    VecF x[kVectors];
    for (int w = 0; w < kVectors; ++w) x[w] = Load(values + key * stride + w * kLanes);
    for (int q = 0; q < kQueries; ++q) {
      const VecF weight = Splat(weights[q * kAttentionKeys + key]);
      for (int w = 0; w < kVectors; ++w) sums[q][w] = Fma(weight, x[w], sums[q][w]);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int w = 0; w < kVectors; ++w) {
      Store(result + q * result_stride + w * kLanes, sums[q][w]);
    }
  }
}

template <int kQueries>
void Tile(const AttentionBlock& block, int64_t row, const float* panels, float* scores) {
  int64_t keys = 0;
  for (int q = 0; q < kQueries; ++q) {
    if (block.visible[row + q] > keys) keys = block.visible[row + q];
  }
  if (keys == 0) return;
  const float* queries = block.query + row * block.depth;
  if constexpr (kQueries <= kFewRows) {
    if (panels == nullptr) {
      ScoreFew<kQueries>(block, queries, keys, scores);
    } else {
      ScoreMany<kQueries>(block, queries, panels, keys, scores);
    }
  } else {
    ScoreMany<kQueries>(block, queries, panels, keys, scores);
  }
  float factors[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    const int64_t visible = block.visible[row + q];
    float* own = scores + q * kAttentionKeys;
    factors[q] = 1;
    if (visible > 0) {
      factors[q] = Soften(own, visible, block.mask == nullptr ? nullptr : block.mask[row + q],
                          block.scale, block.maximum + row + q, block.sum + row + q);
    }
    for (int64_t key = visible; key < keys; ++key) own[key] = 0;
  }
  constexpr int kVectors = kWide == 4 || kQueries <= 3 ? 4 : 2;
  const int64_t depth = block.value_depth;
  float* result = block.result + row * depth;
  const float* values = block.value;
  int64_t left = depth / kLanes;
  const auto mix = [&]<int kCount>() {
    Mix<kQueries, kCount>(scores, factors, values, block.value_stride, keys, result, depth);
    result += kCount * kLanes;
    values += kCount * kLanes;
    left -= kCount;
  };
  while (left >= kVectors) mix.template operator()<kVectors>();
  if (kVectors > 2 && left >= 2) mix.template operator()<2>();
  if (left > 0) mix.template operator()<1>();
}

void Attend(const AttentionBlock& block) {
  float* scores = block.scratch;
  float* panels = nullptr;
  if (block.rows > kFewRows) {
    panels = scores + 8 * kAttentionKeys;
    PackKeys(block, panels);
  }
  using TileFunction = void (*)(const AttentionBlock&, int64_t, const float*, float*);
  static constexpr TileFunction kTiles[] = {Tile<1>, Tile<2>, Tile<3>, Tile<4>, Tile<5>, Tile<6>};
  static_assert(sizeof(kTiles) / sizeof(kTiles[0]) == kRows);
  const int64_t tiles = (block.rows + kRows - 1) / kRows;
  for (int64_t tile = 0; tile < tiles; ++tile) {  // tiles of nearly equal heights
    const int64_t row = block.rows * tile / tiles;
    const int64_t next = block.rows * (tile + 1) / tiles;
    kTiles[next - row - 1](block, row, panels, scores);
  }
}

constexpr int64_t kScan = 4 * kLanes;

// Whether kScan values are all -infinity.
inline bool AllMasked(const float* mask) {
  VecF masked = {};
  for (int64_t i = 0; i < kScan; i += kLanes) {
    masked += Load(mask + i) == -INFINITY ? Splat(1) : VecF{};
  }
  return ReduceAdd(masked) == kScan;
}

void VisibleRange(const float* mask, int64_t size, int64_t* begin, int64_t* end) {
  int64_t last = size;
  while (last > 0 && mask[last - 1] == -INFINITY) {
    last -= last >= kScan && AllMasked(mask + last - kScan) ? kScan : 1;
  }
  int64_t first = 0;
  while (first < last && mask[first] == -INFINITY) {
    first += first + kScan <= last && AllMasked(mask + first) ? kScan : 1;
  }
  *begin = first;
  *end = last;
}

inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t Bits(float x) { return __builtin_bit_cast(uint32_t, x); }

inline uint16_t NarrowHalf(float x) {
  const uint32_t sign = Bits(x) >> 16 & 0x8000;
  const uint32_t magnitude = Bits(x) & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;
  } else if (magnitude >= 0x477ff000) {
    half = 0x7c00;  // rounds to infinity
  } else if (magnitude < 0x38800000) {
    half = Bits(FromBits(magnitude) + 0.5f) - Bits(0.5f);  // the addition rounds to half's last bit
  } else {
    half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(half | sign);
}

inline uint16_t NarrowBFloat16(float x) {
  const uint32_t bits = Bits(x);
  if (x != x) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
void WidenFrom(const T* from, float* to, int64_t size) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) Store(to + i, LoadFloats(from + i));
  for (; i < size; ++i) to[i] = ToFloat(from[i]);
}

void Widen(const void* from, AttentionType type, float* to, int64_t size) {
  switch (type) {
    case AttentionType::kFloat:
      return WidenFrom(static_cast<const float*>(from), to, size);
    case AttentionType::kHalf:
      return WidenFrom(static_cast<const HalfBits*>(from), to, size);
    case AttentionType::kBFloat16:
      return WidenFrom(static_cast<const BFloat16Bits*>(from), to, size);
  }
}

void Narrow(const float* from, float factor, AttentionType type, void* to, int64_t size) {
  int64_t i = 0;
  if (type == AttentionType::kFloat) {
    for (; i < size; ++i) static_cast<float*>(to)[i] = from[i] * factor;
    return;
  }
  uint16_t* target = static_cast<uint16_t*>(to);
  if (type == AttentionType::kBFloat16) {
    for (; i < size; ++i) target[i] = NarrowBFloat16(from[i] * factor);
    return;
  }
#if defined(__F16C__)
  for (; i + 8 <= size; i += 8) {
    const __m256 x = _mm256_mul_ps(_mm256_loadu_ps(from + i), _mm256_set1_ps(factor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i),
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < size; ++i) target[i] = NarrowHalf(from[i] * factor);
}

}  // namespace

extern const AttentionKernels kAttention = {Attend, VisibleRange, Widen, Narrow};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
