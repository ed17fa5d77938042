#include "runtime/slim/kernels/attention.h"

#include <math.h>
#include <stdint.h>

#include "runtime/slim/kernels/attention_few.h"
#include "runtime/slim/kernels/attention_pairs.h"
#include "runtime/slim/kernels/attention_softmax.h"
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

// Tiles of rows that are computed together, so that all of them but the first find a panel of keys,
// and the values, in the nearest cache.
constexpr int kTiles = kAttentionRows / kRows;

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

// Transposes keys into panels [depth, kPanel]; the last panel repeats the last key.
void PackKeys(const float* rows, int64_t stride, int64_t keys, int64_t depth, float* panels) {
  const auto panel = [&](int64_t key) {
    return panels + key / kPanel * kPanel * depth + key % kPanel;
  };
  const auto quads = [&](int64_t first, int64_t d) {
    const float* from[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t key = first + i < keys ? first + i : keys - 1;
      from[i] = rows + key * stride;
    }
    for (; d < depth; d += 4) {
      Quad x[4];
      for (int i = 0; i < 4; ++i) x[i] = *reinterpret_cast<const QuadAny*>(from[i] + d);
      StoreTurnedQuads(x, panel(first) + d * kPanel, kPanel);
    }
  };
  int64_t first = 0;
#if defined(__AVX512F__)
  for (; first + kLanes <= keys; first += kLanes) {
    int64_t d = 0;
    for (; d + kLanes <= depth; d += kLanes) {
      TurnTile(rows + first * stride + d, stride, panel(first) + d * kPanel, kPanel);
    }
    for (int64_t key = first; d < depth && key < first + kLanes; key += 4) quads(key, d);
  }
#endif
  for (; first < keys; first += 4) quads(first, 0);
}

// One lane for each of kCount vectors, step apart: `combine` of its lanes, spread over every
// kCount-th lane.
template <int kCount, typename Combine>
inline VecF Lanes(const VecF* rows, int step, const Combine& combine) {
  if constexpr (kCount == 1) {
    return *rows;
  } else {
    const VecF even = Lanes<kCount / 2>(rows, 2 * step, combine);
    const VecF odd = Lanes<kCount / 2>(rows + step, 2 * step, combine);
    return combine(InterleaveLow(even, odd), InterleaveHigh(even, odd));
  }
}

// The softmax of up to kLanes rows from `row` on, whose products are in `scores`. Writes the
// factors that adapt the rows' earlier sums to the new maximum.
void Soften(const AttentionBlock& block, int64_t row, int rows, float* scores, float* factors) {
  const float scale = block.scale * kLog2E;
  const int32_t* visible = block.visible + row;
  VecF each[kLanes];
  for (int r = 0; r < kLanes; ++r) each[r] = Splat(-INFINITY);
  for (int r = 0; r < rows; ++r) {
    const float* mask = block.mask == nullptr ? nullptr : block.mask[row + r];
    each[r] = Largest(scores + r * kAttentionKeys, visible[r], mask, scale);
  }
  const auto max = [](VecF a, VecF b) { return Max(a, b); };
  const VecF before = LoadPart(block.maximum + row, rows);
  const VecF after = Max(before, Lanes<kLanes>(each, 1, max));
  StorePart(block.maximum + row, after, rows);
  const VecF maximum = after == Splat(-INFINITY) ? VecF{} : after;
  const VecF factor = Exp2(before - maximum);
  StorePart(factors, factor, rows);
  for (int r = 0; r < rows; ++r) {
    each[r] = Weigh(scores + r * kAttentionKeys, visible[r], block.mask == nullptr ? scale : 1,
                    maximum[r]);
  }
  const auto add = [](VecF a, VecF b) { return a + b; };
  const VecF sum = Fma(LoadPart(block.sum + row, rows), factor, Lanes<kLanes>(each, 1, add));
  StorePart(block.sum + row, sum, rows);
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

// A few rows of queries.
struct Tile {
  int rows;
  int64_t keys;  // that one of the rows sees
  const void* queries;
  float* scores;         // [rows, kAttentionKeys]
  const float* factors;  // by which earlier results are multiplied
  float* result;
};

template <int kQueries>
void Score(const AttentionBlock& block, const Tile& tile, const float* panels, int64_t key) {
  const float* queries = static_cast<const float*>(tile.queries);
  const float* panel = panels + key * block.depth;
  const int64_t left = tile.keys - key;
  if (left > kPanel / 2) {
    ScorePanel<kQueries, kWide>(queries, block.depth, panel, tile.scores + key);
  } else if (left > 0) {
    ScorePanel<kQueries, kWide / 2>(queries, block.depth, panel, tile.scores + key);
  }
}

template <int kQueries>
void MixTile(const AttentionBlock& block, const Tile& tile, const float*) {
  if (tile.keys == 0) return;
  constexpr int kVectors = kWide == 4 || kQueries <= 3 ? 4 : 2;
  const int64_t depth = block.value_depth;
  float* result = tile.result;
  const float* values = static_cast<const float*>(block.value);
  int64_t left = depth / kLanes;
  const auto mix = [&]<int kCount>() {
    Mix<kQueries, kCount>(tile.scores, tile.factors, values, block.value_stride, tile.keys, result,
                          depth);
    result += kCount * kLanes;
    values += kCount * kLanes;
    left -= kCount;
  };
  while (left >= kVectors) mix.template operator()<kVectors>();
  if (kVectors > 2 && left >= 2) mix.template operator()<2>();
  if (left > 0) mix.template operator()<1>();
}

// What depends on the dtype of queries, keys and values. `packed` is what Pack() has written.
struct Floats {
  using Number = float;
  static constexpr int64_t kKeys = 1;  // that are multiplied at once
  static void Pack(const AttentionBlock& block, float* packed) {
    PackKeys(static_cast<const float*>(block.key), block.key_stride, block.keys, block.depth,
             packed);
  }
  template <int kQueries>
  static void Score(const AttentionBlock& block, const Tile& tile, const float* packed,
                    int64_t key) {
    AOTI_ISA::Score<kQueries>(block, tile, packed, key);
  }
  static void FinishWeights(float*, int64_t) {}
  template <int kQueries>
  static void Mix(const AttentionBlock& block, const Tile& tile, const float* packed) {
    MixTile<kQueries>(block, tile, packed);
  }
};

#if defined(__AVX512F__)
struct Pairs {
  using Number = uint16_t;
  static constexpr int64_t kKeys = 2;
  // Keys are turned like floats of half the depth, and the pairs of values follow them.
  static void Pack(const AttentionBlock& block, float* packed) {
    PackKeys(static_cast<const float*>(block.key), block.key_stride / 2, block.keys,
             block.depth / 2, packed);
    PairValues(static_cast<const uint16_t*>(block.value), block.value_stride, block.keys,
               block.value_depth, Values(block, packed));
  }
  template <int kQueries>
  static void Score(const AttentionBlock& block, const Tile& tile, const float* packed,
                    int64_t key) {
    const auto* queries = static_cast<const uint16_t*>(tile.queries);
    const auto* panel = reinterpret_cast<const uint32_t*>(packed + key * (block.depth / 2));
    const int64_t left = tile.keys - key;
    if (left > kPanel / 2) {
      ScorePairs<kQueries, kWide>(queries, block.depth, panel, kPanel, tile.scores + key);
    } else if (left > 0) {
      ScorePairs<kQueries, kWide / 2>(queries, block.depth, panel, kPanel, tile.scores + key);
    }
  }
  static void FinishWeights(float* weights, int64_t keys) { NarrowWeights(weights, keys); }
  template <int kQueries>
  static void Mix(const AttentionBlock& block, const Tile& tile, const float* packed) {
    const int64_t pairs = (tile.keys + 1) / 2, vector = (block.keys + 1) / 2 * kLanes;
    const uint32_t* values = Values(block, const_cast<float*>(packed));
    const int64_t depth = block.value_depth;
    int64_t d = 0;
    for (; d + 4 * kLanes <= depth; d += 4 * kLanes) {
      MixPairs<kQueries, 4>(tile.scores, tile.factors, values + d / kLanes * vector, vector, pairs,
                            tile.result + d, depth);
    }
    for (; d < depth; d += kLanes) {
      MixPairs<kQueries, 1>(tile.scores, tile.factors, values + d / kLanes * vector, vector, pairs,
                            tile.result + d, depth);
    }
  }

 private:
  static uint32_t* Values(const AttentionBlock& block, float* packed) {
    return reinterpret_cast<uint32_t*>(packed + kAttentionKeys * (block.depth / 2));
  }
};
#endif

// Functions for each number of rows.
template <typename Kind>
struct ByRows {
  using ScoreFunction = void (*)(const AttentionBlock&, const Tile&, const float*, int64_t);
  using MixFunction = void (*)(const AttentionBlock&, const Tile&, const float*);
  static constexpr ScoreFunction kScore[] = {Kind::template Score<1>, Kind::template Score<2>,
                                             Kind::template Score<3>, Kind::template Score<4>,
                                             Kind::template Score<5>, Kind::template Score<6>};
  static constexpr MixFunction kMix[] = {Kind::template Mix<1>, Kind::template Mix<2>,
                                         Kind::template Mix<3>, Kind::template Mix<4>,
                                         Kind::template Mix<5>, Kind::template Mix<6>};
  static_assert(sizeof(kScore) / sizeof(kScore[0]) == kRows);
};

template <typename Kind>
void Attend(const AttentionBlock& block) {
  float* packed = block.scratch + kAttentionRows * kAttentionKeys;
  Kind::Pack(block, packed);
  const int64_t tiles = (block.rows + kRows - 1) / kRows;
  for (int64_t first = 0; first < tiles; first += kTiles) {
    const int count = static_cast<int>(tiles - first < kTiles ? tiles - first : kTiles);
    // Tiles of nearly equal heights.
    const auto row_of = [&](int tile) { return block.rows * (first + tile) / tiles; };
    const int64_t begin = row_of(0), end = row_of(count);
    Tile group[kTiles];
    float factors[kAttentionRows];
    int64_t most = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t row = row_of(i), next = row_of(i + 1);
      group[i] = {
          .rows = static_cast<int>(next - row),
          .keys = 0,
          .queries = static_cast<const typename Kind::Number*>(block.query) + row * block.depth,
          .scores = block.scratch + (row - begin) * kAttentionKeys,
          .factors = factors + (row - begin),
          .result = block.result + row * block.value_depth};
      for (int64_t r = row; r < next; ++r) {
        if (block.visible[r] > group[i].keys) group[i].keys = block.visible[r];
      }
      if (group[i].keys > most) most = group[i].keys;
    }
    if (most == 0) continue;
    for (int64_t key = 0; key < most; key += kPanel) {
      for (int i = 0; i < count; ++i) {
        ByRows<Kind>::kScore[group[i].rows - 1](block, group[i], packed, key);
      }
    }
    for (int64_t row = begin; row < end; row += kLanes) {
      Soften(block, row, static_cast<int>(end - row < kLanes ? end - row : kLanes),
             block.scratch + (row - begin) * kAttentionKeys, factors + (row - begin));
    }
    for (int i = 0; i < count; ++i) {
      for (int r = 0; r < group[i].rows; ++r) {
        float* scores = group[i].scores + r * kAttentionKeys;
        const int64_t zeros = (group[i].keys + Kind::kKeys - 1) / Kind::kKeys * Kind::kKeys;
        for (int64_t key = block.visible[row_of(i) + r]; key < zeros; ++key) scores[key] = 0;
        Kind::FinishWeights(scores, group[i].keys);
      }
      ByRows<Kind>::kMix[group[i].rows - 1](block, group[i], packed);
    }
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

extern const AttentionKernels kAttention = {
    .attend = Attend<Floats>,
    .attend_few = AttendFew,
#if defined(__AVX512F__)
    .attend_pairs = Attend<Pairs>,
#else
    .attend_pairs = nullptr,
#endif
    .visible_range = VisibleRange,
    .widen = Widen,
    .narrow = Narrow,
};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
