#include "runtime/slim/kernels/linalg.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <typename T>
struct Vectors {
  typedef T Any __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  typedef T Vec __attribute__((vector_size(kBytes)));
  static constexpr int64_t kLanes = kBytes / sizeof(T);
};

template <typename T>
inline typename Vectors<T>::Vec Load(const T* p) {
  return *reinterpret_cast<const typename Vectors<T>::Any*>(p);
}
template <typename T>
inline void Store(T* p, typename Vectors<T>::Vec v) {
  *reinterpret_cast<typename Vectors<T>::Any*>(p) = v;
}

template <typename T>
void Add(int64_t size, T a, const T* x, T* y) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  int64_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    Store(y + i, Load(y + i) + a * Load(x + i));
    Store(y + i + kLanes, Load(y + i + kLanes) + a * Load(x + i + kLanes));
  }
  for (; i < size; ++i) y[i] += a * x[i];
}

template <typename T>
T Dot(int64_t size, const T* x, const T* y) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  typename Vectors<T>::Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
    for (int64_t j = 0; j < 4; ++j) sums[j] += Load(x + i + j * kLanes) * Load(y + i + j * kLanes);
  }
  for (; i + kLanes <= size; i += kLanes) sums[0] += Load(x + i) * Load(y + i);
  const typename Vectors<T>::Vec sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T result = 0;
  for (int64_t j = 0; j < kLanes; ++j) result += sum[j];
  for (; i < size; ++i) result += x[i] * y[i];
  return result;
}

template <typename T>
void Rotate(int64_t size, T c, T s, T* x, T* y) {
  constexpr int64_t kLanes = Vectors<T>::kLanes;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const typename Vectors<T>::Vec a = Load(x + i), b = Load(y + i);
    Store(x + i, c * a - s * b);
    Store(y + i, s * a + c * b);
  }
  for (; i < size; ++i) {
    const T a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

void Tile64(int64_t depth, const double* a, const double* b, double* tile) {
  constexpr int64_t kLanes = Vectors<double>::kLanes, kParts = kTileRows64 / kLanes;
  Vectors<double>::Vec sums[kTileColumns64][kParts] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vectors<double>::Vec left[kParts];
    for (int64_t i = 0; i < kParts; ++i) left[i] = Load(a + k * kTileRows64 + i * kLanes);
    for (int64_t j = 0; j < kTileColumns64; ++j) {
      const double right = b[k * kTileColumns64 + j];
      for (int64_t i = 0; i < kParts; ++i) sums[j][i] += left[i] * right;
    }
  }
  for (int64_t j = 0; j < kTileColumns64; ++j) {
    for (int64_t i = 0; i < kParts; ++i) Store(tile + j * kTileRows64 + i * kLanes, sums[j][i]);
  }
}

}  // namespace

extern const LinalgKernels kLinalg = {
    {Add<float>, Dot<float>, Rotate<float>},
    {Add<double>, Dot<double>, Rotate<double>},
    Tile64,
};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
