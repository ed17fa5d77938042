#include "runtime/slim/linalg/schur.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/qr.h"

namespace aoti::slim {
namespace {

using std::int64_t;

// A step for a real matrix has two shifts, which are real or conjugate, so that its numbers stay
// real; one for a complex matrix has one shift. The step begins with a reflector of kWidth rows.
template <typename T>
inline constexpr int64_t kWidth = kComplex<T> ? 2 : 3;

// Steps for one eigenvalue, after which the shift is replaced by another one, in case the steps go
// round in circles. Usually two or three are enough.
constexpr int64_t kPatience = 10;

// Two rows of a real matrix, [[a, b], [c, d]], and the rotation that gave them this form: rows x
// and y were replaced by cosine x + sine y and cosine y - sine x, and columns likewise.
template <typename R>
struct Rows {
  R a, b, c, d;
  R cosine = 1, sine = 0;
};

// Rotates the rows so that c is 0 if their eigenvalues are real, and else a and d are equal.
template <typename R>
Rows<R> Standard(const Rows<R>& given) {
  const auto [a, b, c, d, cosine, sine] = given;
  if (c == 0) return given;
  const R half = (a - d) / 2;
  const R size = std::max({std::abs(half), std::abs(b), std::abs(c)});
  const R square = (half / size) * half + (b / size) * c;
  if (square >= 0) {
    // (z, c) is an eigenvector of the eigenvalue d + z.
    const R z = half + std::copysign(std::sqrt(size) * std::sqrt(square), half);
    const R length = std::hypot(c, z);
    return {d + z, b - c, 0, z == 0 ? d : d - (b / z) * c, z / length, c / length};
  }
  Rows<R> to = given;
  if (half != 0) {
    const R sum = b + c, length = std::hypot(sum, 2 * half);
    to.cosine = std::sqrt((1 + std::abs(sum) / length) / 2);
    to.sine = -half / (length * to.cosine) * std::copysign(R(1), sum);
    const R aa = a * to.cosine + b * to.sine, bb = b * to.cosine - a * to.sine;
    const R cc = c * to.cosine + d * to.sine, dd = d * to.cosine - c * to.sine;
    to.a = aa * to.cosine + cc * to.sine;
    to.b = bb * to.cosine + dd * to.sine;
    to.c = cc * to.cosine - aa * to.sine;
    to.d = dd * to.cosine - bb * to.sine;
  }
  to.a = to.d = (to.a + to.d) / 2;
  if ((to.b > 0) == (to.c < 0) && to.b != 0 && to.c != 0) return to;
  // Only rounding errors give both numbers the same sign: the smaller one is about 0.
  if (std::abs(to.b) < std::abs(to.c)) {
    to.b = -to.c;
    std::swap(to.cosine, to.sine);
    to.cosine = -to.cosine;
  }
  to.c = 0;
  return to;
}

template <typename T>
class Schur {
 public:
  using R = Real<T>;

  Schur(const MatrixView<T>& h, const MatrixView<T>& q, std::complex<R>* values)
      : h_(h), q_(q), values_(values) {}

  bool Run(int64_t first, int64_t last) {
    for (int64_t i = 0; i < h_.rows; ++i) {
      if (i < first || i > last) values_[i] = h_(i, i);
    }
    const int64_t most = 30 * std::max<int64_t>(10, last - first + 1);
    int64_t steps = 0;  // since the last eigenvalue was found
    for (int64_t total = 0; last >= first;) {
      const int64_t begin = Split(first, last);
      if (begin > last - (kWidth<T> - 1)) {
        if (begin == last) values_[last] = h_(last, last);
        if constexpr (!kComplex<T>) {
          if (begin < last) Finish(begin);
        }
        last = begin - 1;
        steps = 0;
        continue;
      }
      if (++total > most) return false;
      T column[3];
      const int64_t start = BeginStep(begin, last, ++steps, column);
      Sweep(begin, start, last, column);
    }
    return true;
  }

 private:
  // Finds the last number next to the diagonal that is small enough to count as 0, sets it to 0,
  // and returns its row; `first` if there is none.
  int64_t Split(int64_t first, int64_t last) {
    constexpr R kUnit = std::numeric_limits<R>::epsilon();
    const R least = std::numeric_limits<R>::min() * (static_cast<R>(last - first + 1) / kUnit);
    for (int64_t k = last; k > first; --k) {
      const R below = Magnitude(h_(k, k - 1)), above = Magnitude(h_(k - 1, k));
      R around = Magnitude(h_(k - 1, k - 1)) + Magnitude(h_(k, k));
      if (around == 0) {
        if (k - 2 >= first) around += Magnitude(h_(k - 1, k - 2));
        if (k + 1 <= last) around += Magnitude(h_(k + 1, k));
      }
      bool small = below <= least;
      if (!small && below <= kUnit * around) {
        // The eigenvalues of the two rows differ from the diagonal by about below * above / gap.
        const R own = Magnitude(h_(k, k)), gap = Magnitude(h_(k - 1, k - 1) - h_(k, k));
        const R more = std::max(own, gap), less = std::min(own, gap);
        const R sum = more + std::max(below, above);
        small = std::min(below, above) * (std::max(below, above) / sum) <=
                std::max(least, kUnit * (less * (more / sum)));
      }
      if (small) {
        h_(k, k - 1) = T(0);
        return k;
      }
    }
    return first;
  }

  // Computes the first column of h - shift or of (h - shift) (h - other shift), up to a factor, for
  // the rows from the one on that is returned: a step may begin late, where two numbers next to the
  // diagonal are small.
  int64_t BeginStep(int64_t begin, int64_t last, int64_t steps, T* column) {
    // The rows whose eigenvalues are the shifts: [[a, b], [c, d]].
    T a = h_(last - 1, last - 1), b = h_(last - 1, last), c = h_(last, last - 1),
      d = h_(last, last);
    if (steps % kPatience == 0) {
      const bool from_end = steps % (2 * kPatience) == 0;
      const int64_t at = from_end ? last : begin;
      R size = Magnitude(from_end ? h_(last, last - 1) : h_(begin + 1, begin));
      if (!kComplex<T>) {
        size += from_end ? Magnitude(h_(last - 1, last - 2)) : Magnitude(h_(begin + 2, begin + 1));
      }
      a = d = h_(at, at) + T(R(0.75) * size);
      b = T(R(-0.4375) * size);
      c = kComplex<T> ? T(0) : T(size);
    }
    T shift = 0;
    if constexpr (kComplex<T>) shift = Nearest(a, b, c, d);
    for (int64_t start = last - kWidth<T> + 1;; --start) {
      const MatrixView<T> rows = h_.Block(start, start, kWidth<T>, kWidth<T>);
      if constexpr (kComplex<T>) {
        SingleShift(rows, shift, column);
      } else {
        DoubleShift(rows, {a, b, c, d}, column);
      }
      if (start == begin || MayBegin(start, column)) return start;
    }
  }

  // Whether a step that begins at this row changes the row's number next to the diagonal by less
  // than rounding does.
  bool MayBegin(int64_t start, const T* column) const {
    R rest = Magnitude(column[1]), around = Magnitude(h_(start, start));
    if constexpr (!kComplex<T>) {
      rest += Magnitude(column[2]);
      around += Magnitude(h_(start - 1, start - 1));
    }
    around += Magnitude(h_(start + 1, start + 1));
    return Magnitude(h_(start, start - 1)) * rest <=
           std::numeric_limits<R>::epsilon() * Magnitude(column[0]) * around;
  }

  // The eigenvalue of [[a, b], [c, d]] that is nearer to d.
  static T Nearest(T a, T b, T c, T d) {
    const T root = Product(std::sqrt(b), std::sqrt(c));
    if (Magnitude(root) == 0) return d;
    const T half = (a - d) * R(0.5);
    const R size = std::max(Magnitude(root), Magnitude(half));
    const T x = half / size, y = root / size;
    T length = size * std::sqrt(Product(x, x) + Product(y, y));
    if (RealPart(x) * RealPart(length) + ImaginaryPart(x) * ImaginaryPart(length) < 0) {
      length = -length;
    }
    return d - Product(root, root / (half + length));
  }

  static void SingleShift(const MatrixView<T>& h, T shift, T* column) {
    const T first = h(0, 0) - shift;
    const R size = Magnitude(first) + Magnitude(h(1, 0));
    column[0] = first / size;
    column[1] = h(1, 0) / size;
  }

  // The two shifts are the eigenvalues of the rows; where these are real, twice the one nearer to
  // d.
  static void DoubleShift(const MatrixView<T>& h, const Rows<T>& rows, T* column) {
    R re[2] = {0, 0}, im = 0;
    const R size = std::abs(rows.a) + std::abs(rows.b) + std::abs(rows.c) + std::abs(rows.d);
    if (size > 0) {
      const R a = rows.a / size, b = rows.b / size, c = rows.c / size, d = rows.d / size;
      const R middle = (a + d) / 2, det = (a - middle) * (d - middle) - b * c;
      const R root = std::sqrt(std::abs(det));
      if (det >= 0) {
        re[0] = re[1] = middle * size;
        im = root * size;
      } else {
        const R up = middle + root, down = middle - root;
        re[0] = re[1] = (std::abs(up - d) <= std::abs(down - d) ? up : down) * size;
      }
    }
    const R scale = std::abs(h(0, 0) - re[1]) + std::abs(im) + std::abs(h(1, 0));
    const R below = h(1, 0) / scale;
    column[0] =
        below * h(0, 1) + (h(0, 0) - re[0]) * ((h(0, 0) - re[1]) / scale) + im * (im / scale);
    column[1] = below * (h(0, 0) + h(1, 1) - re[0] - re[1]);
    column[2] = below * h(2, 1);
    const R sum = std::abs(column[0]) + std::abs(column[1]) + std::abs(column[2]);
    if (sum == 0) return;
    for (int64_t i = 0; i < 3; ++i) column[i] /= sum;
  }

  // A QR step on rows and columns begin..last: a reflector at row `start`, made of `column`,
  // disturbs the Hessenberg form, and the next ones move the disturbance down to the end.
  void Sweep(int64_t begin, int64_t start, int64_t last, T* column) {
    for (int64_t k = start; k < last; ++k) {
      const int64_t width = std::min(kWidth<T>, last - k + 1);
      if (k > start) std::copy_n(h_.At(k, k - 1), width, column);
      const T tau = MakeReflector(width, column);
      if (k > start) {
        std::fill_n(h_.At(k, k - 1), width, T(0));
        h_(k, k - 1) = column[0];
      } else if (k > begin) {
        h_(k, k - 1) = Product(h_(k, k - 1), T(1) - Conjugate(tau));
      }
      column[0] = T(1);
      for (int64_t j = k; j < h_.columns; ++j) {
        T* x = h_.At(k, j);
        T sum = x[0];
        for (int64_t i = 1; i < width; ++i) sum += Product(Conjugate(column[i]), x[i]);
        sum = Product(Conjugate(tau), sum);
        for (int64_t i = 0; i < width; ++i) x[i] -= Product(column[i], sum);
      }
      ReflectColumns(h_.Block(0, k, std::min(k + kWidth<T>, last) + 1, width), tau, column);
      ReflectColumns(q_.Block(0, k, q_.rows, width), tau, column);
    }
  }

  // b = b (1 - tau v v^H), for two or three columns.
  static void ReflectColumns(const MatrixView<T>& b, T tau, const T* v) {
    T *x = b.At(0, 0), *y = b.At(0, 1), *z = b.At(0, b.columns - 1);
    const T second = Conjugate(v[1]), third = Conjugate(v[b.columns - 1]);
    for (int64_t i = 0; i < b.rows; ++i) {
      T sum = x[i] + Product(v[1], y[i]);
      if (b.columns == 3) sum += Product(v[2], z[i]);
      sum = Product(tau, sum);
      x[i] -= sum;
      y[i] -= Product(sum, second);
      if (b.columns == 3) z[i] -= Product(sum, third);
    }
  }

  // Gives rows and columns i and i + 1 of a real matrix their final form.
  void Finish(int64_t i) {
    const Rows<T> rows = Standard<T>({h_(i, i), h_(i, i + 1), h_(i + 1, i), h_(i + 1, i + 1)});
    for (int64_t j = i + 2; j < h_.columns; ++j) {
      const T x = h_(i, j), y = h_(i + 1, j);
      h_(i, j) = rows.cosine * x + rows.sine * y;
      h_(i + 1, j) = rows.cosine * y - rows.sine * x;
    }
    RotateColumns(i, rows.cosine, -rows.sine, h_.At(0, i), h_.At(0, i + 1));
    RotateColumns(q_.rows, rows.cosine, -rows.sine, q_.At(0, i), q_.At(0, i + 1));
    h_(i, i) = rows.a;
    h_(i, i + 1) = rows.b;
    h_(i + 1, i) = rows.c;
    h_(i + 1, i + 1) = rows.d;
    const T part = std::sqrt(std::abs(rows.b)) * std::sqrt(std::abs(rows.c));
    values_[i] = {rows.a, part};
    values_[i + 1] = {rows.d, 0 - part};
  }

  const MatrixView<T> h_, q_;
  std::complex<R>* const values_;
};

}  // namespace

template <typename T>
bool FactorSchur(const MatrixView<T>& h, int64_t first, int64_t last, std::complex<Real<T>>* values,
                 const MatrixView<T>& q) {
  return Schur<T>(h, q, values).Run(first, last);
}

#define AOTI_INSTANTIATE(T)                                                                 \
  template bool FactorSchur(const MatrixView<T>&, int64_t, int64_t, std::complex<Real<T>>*, \
                            const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
