#include "runtime/slim/linalg/matrix.h"

#include <algorithm>
#include <limits>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/kernels/linalg.h"
#include "runtime/slim/kernels/rounding.h"

namespace aoti::slim {
namespace {

using std::int64_t;

const LinalgKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kLinalg); }

template <typename T>
const ColumnKernels<T>& Columns() {
  if constexpr (std::is_same_v<T, float>) return Kernels().f32;
  if constexpr (std::is_same_v<T, double>) return Kernels().f64;
}

// The real parts (0) or the imaginary parts (1) of a complex matrix.
template <typename T>
MatrixView<T> Part(const MatrixView<std::complex<T>>& a, int64_t which) {
  return {reinterpret_cast<T*>(a.data) + which, a.rows, a.columns, 2 * a.row, 2 * a.column};
}
template <typename T>
MatrixView<const T> Part(const MatrixView<const std::complex<T>>& a, int64_t which) {
  return {reinterpret_cast<const T*>(a.data) + which, a.rows, a.columns, 2 * a.row, 2 * a.column};
}

// Packs panels as the kernel reads them: `width` rows of `a` interleaved, with 0 beyond the last
// row.
void Pack(const MatrixView<const double>& a, int64_t width, double* to) {
  for (int64_t first = 0; first < a.rows; first += width) {
    const int64_t some = std::min(width, a.rows - first);
    for (int64_t k = 0; k < a.columns; ++k, to += width) {
      for (int64_t i = 0; i < some; ++i) to[i] = a(first + i, k);
      for (int64_t i = some; i < width; ++i) to[i] = 0;
    }
  }
}

void AddProduct64(const MatrixView<double>& c, double alpha, const MatrixView<const double>& a,
                  const MatrixView<const double>& b) {
  constexpr int64_t kRows = kTileRows64, kColumns = kTileColumns64;
  const auto run = Kernels().tile64;
  const int64_t depth = a.columns;
  Scratch<double> left(static_cast<std::size_t>(RoundUp(c.rows, kRows) * depth));
  Scratch<double> right(static_cast<std::size_t>(RoundUp(c.columns, kColumns) * depth));
  Pack(a, kRows, left.data());
  Pack(b.Transposed(), kColumns, right.data());
  const int64_t panels = RoundUp(c.columns, kColumns) / kColumns;
  const int64_t grain = (1 << 16) / std::max<int64_t>(1, c.rows * depth * kColumns) + 1;
  internal::ParallelFor(0, panels, grain, [&](int64_t first, int64_t last) {
    alignas(64) double tile[kRows * kColumns];
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t j0 = panel * kColumns, width = std::min(kColumns, c.columns - j0);
      for (int64_t i0 = 0; i0 < c.rows; i0 += kRows) {
        run(depth, left.data() + i0 * depth, right.data() + j0 * depth, tile);
        const int64_t height = std::min(kRows, c.rows - i0);
        for (int64_t j = 0; j < width; ++j) {
          for (int64_t i = 0; i < height; ++i) {
            c(i0 + i, j0 + j) += alpha * tile[j * kRows + i];
          }
        }
      }
    }
  });
}

}  // namespace

template <typename T>
void AddColumn(int64_t size, T a, const T* x, T* y) {
  if constexpr (kComplex<T>) {
    for (int64_t i = 0; i < size; ++i) y[i] += Product(a, x[i]);
  } else {
    Columns<T>().add(size, a, x, y);
  }
}

template <typename T>
T DotColumns(int64_t size, const T* x, const T* y) {
  if constexpr (kComplex<T>) {
    T sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += Product(std::conj(x[i]), y[i]);
    return sum;
  } else {
    return Columns<T>().dot(size, x, y);
  }
}

template <typename T>
void RotateColumns(int64_t size, Real<T> c, Real<T> s, T* x, T* y) {
  if constexpr (kComplex<T>) size *= 2;
  Columns<Real<T>>().rotate(size, c, s, reinterpret_cast<Real<T>*>(x),
                            reinterpret_cast<Real<T>*>(y));
}

template <typename T>
Real<T> Norm(int64_t size, const T* x) {
  using R = Real<T>;
  const R* parts = reinterpret_cast<const R*>(x);
  const int64_t count = kComplex<T> ? 2 * size : size;
  const R squares = Columns<R>().dot(count, parts, parts);
  // If squares may have underflowed or overflowed, the numbers are scaled first.
  constexpr R kLeast = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  if (squares >= kLeast && squares <= std::numeric_limits<R>::max()) return std::sqrt(squares);
  R most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const R size_of = std::abs(parts[i]);
    if (!(size_of <= most)) most = size_of;  // also for NaN
  }
  if (most == 0 || !std::isfinite(most)) return most;
  R sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const R scaled = parts[i] / most;
    sum += scaled * scaled;
  }
  return most * std::sqrt(sum);
}

template <typename T>
void AddProduct(const MatrixView<T>& c, std::type_identity_t<Real<T>> alpha,
                const MatrixView<const std::type_identity_t<T>>& a,
                const MatrixView<const std::type_identity_t<T>>& b) {
  if (c.rows == 0 || c.columns == 0 || a.columns == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    Gemm(GemmF32{.m = c.rows,
                 .n = c.columns,
                 .k = a.columns,
                 .a = a.data,
                 .a_row = a.row,
                 .a_col = a.column,
                 .b = b.data,
                 .b_row = b.row,
                 .b_col = b.column,
                 .c = c.data,
                 .c_row = c.row,
                 .c_col = c.column,
                 .alpha = alpha,
                 .beta = 1,
                 .bias = c.data,
                 .bias_row = c.row,
                 .bias_col = c.column});
  } else if constexpr (std::is_same_v<T, double>) {
    AddProduct64(c, alpha, a, b);
  } else {
    // The real and the imaginary parts are real matrices with a stride of two numbers.
    AddProduct(Part(c, 0), alpha, Part(a, 0), Part(b, 0));
    AddProduct(Part(c, 0), -alpha, Part(a, 1), Part(b, 1));
    AddProduct(Part(c, 1), alpha, Part(a, 0), Part(b, 1));
    AddProduct(Part(c, 1), alpha, Part(a, 1), Part(b, 0));
  }
}

#define AOTI_INSTANTIATE(T)                                                           \
  template void AddColumn(int64_t, T, const T*, T*);                                  \
  template T DotColumns(int64_t, const T*, const T*);                                 \
  template void RotateColumns(int64_t, Real<T>, Real<T>, T*, T*);                     \
  template Real<T> Norm(int64_t, const T*);                                           \
  template void AddProduct(const MatrixView<T>&, Real<T>, const MatrixView<const T>&, \
                           const MatrixView<const T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
