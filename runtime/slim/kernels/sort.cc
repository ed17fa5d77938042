#include "runtime/slim/kernels/sort.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

constexpr int kBlock = 64;

// Tests a whole block at once, which the compiler turns into a few vector comparisons.
template <typename T, typename Beats>
inline int64_t Find(const T* line, int64_t from, int64_t size, Beats beats) {
  int64_t i = from;
  for (; i + kBlock <= size; i += kBlock) {
    T found = 0;
    for (int j = 0; j < kBlock; ++j) found = beats(line[i + j]) ? T(1) : found;
    if (found != 0) break;
  }
  while (i < size && !beats(line[i])) ++i;
  return i;
}

int64_t FindGreater(const float* line, int64_t from, int64_t size, float bound) {
  return Find(line, from, size, [bound](float x) { return !(x <= bound); });
}

int64_t FindLess(const float* line, int64_t from, int64_t size, float bound) {
  return Find(line, from, size, [bound](float x) { return x < bound; });
}

// Converts sign and magnitude to an integer with the same order.
inline int16_t Ordered(uint16_t bits) {
  const auto value = static_cast<int16_t>(bits);
  return static_cast<int16_t>(value ^ ((value >> 15) & 0x7fff));
}

int64_t FindGreater16(const uint16_t* line, int64_t from, int64_t size, uint16_t bound,
                      uint16_t infinity) {
  const int16_t least = Ordered(bound);
  return Find(line, from, size, [least, infinity](uint16_t x) {
    return (Ordered(x) > least) | (static_cast<uint16_t>(x & 0x7fff) > infinity);
  });
}

int64_t FindLess16(const uint16_t* line, int64_t from, int64_t size, uint16_t bound,
                   uint16_t infinity) {
  const int16_t most = Ordered(bound);
  return Find(line, from, size, [most, infinity](uint16_t x) {
    return (Ordered(x) < most) & (static_cast<uint16_t>(x & 0x7fff) <= infinity);
  });
}

}  // namespace

const SortKernels kSort = {FindGreater, FindLess, FindGreater16, FindLess16};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
