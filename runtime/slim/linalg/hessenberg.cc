#include "runtime/slim/linalg/hessenberg.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/slim/linalg/qr.h"

namespace aoti::slim {
namespace {

using std::int64_t;

template <typename T>
void ExchangeRowsOf(const MatrixView<T>& a, int64_t i, int64_t k) {
  for (int64_t j = 0; j < a.columns; ++j) std::swap(a(i, j), a(k, j));
}

}  // namespace

template <typename T>
Balance<T>::Balance(const MatrixView<T>& a)
    : last_(a.rows - 1),
      exchanged_(static_cast<std::size_t>(a.rows)),
      scales_(static_cast<std::size_t>(a.rows)) {
  for (int64_t i = 0; i < a.rows; ++i) {
    exchanged_.data()[i] = i;
    scales_.data()[i] = 1;
  }
  Isolate(a);
  Scale(a);
}

// Moves rows and columns that have nothing beside the diagonal to the end and to the beginning.
template <typename T>
void Balance<T>::Isolate(const MatrixView<T>& a) {
  const auto alone = [&](int64_t i, bool row) {
    for (int64_t j = first_; j <= last_; ++j) {
      if (j != i && (row ? a(i, j) : a(j, i)) != T(0)) return false;
    }
    return true;
  };
  for (bool found = true; found && last_ > 0;) {
    found = false;
    for (int64_t i = last_; i >= 0; --i) {
      if (!alone(i, /*row=*/true)) continue;
      Exchange(a, i, last_--);
      found = true;
      break;
    }
  }
  for (bool found = true; found && first_ < last_;) {
    found = false;
    for (int64_t i = first_; i <= last_; ++i) {
      if (!alone(i, /*row=*/false)) continue;
      Exchange(a, i, first_++);
      found = true;
      break;
    }
  }
}

template <typename T>
void Balance<T>::Exchange(const MatrixView<T>& a, int64_t from, int64_t to) {
  exchanged_.data()[to] = from;
  if (from == to) return;
  std::swap_ranges(a.At(0, from), a.At(0, from) + a.rows, a.At(0, to));
  ExchangeRowsOf(a, from, to);
}

template <typename T>
void Balance<T>::Scale(const MatrixView<T>& a) {
  using R = Real<T>;
  constexpr int kMost = std::numeric_limits<R>::max_exponent / 8;
  const int64_t size = last_ - first_ + 1;
  Scratch<T> row(static_cast<std::size_t>(size));
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t i = first_; i <= last_; ++i) {
      for (int64_t j = 0; j < size; ++j) row.data()[j] = a(i, first_ + j);
      const R in_column = Norm(size, a.At(first_, i)), in_row = Norm(size, row.data());
      if (in_column == 0 || in_row == 0) continue;
      const int exponent = (std::ilogb(in_row) - std::ilogb(in_column)) / 2;
      const R factor = std::ldexp(R(1), std::clamp(exponent, -kMost, kMost));
      const R total = scales_.data()[i] * factor;
      if (in_column * factor + in_row / factor >= R(0.95) * (in_column + in_row)) continue;
      if (std::abs(std::ilogb(total)) > kMost) continue;
      for (int64_t j = 0; j < a.columns; ++j) a(i, j) /= factor;
      for (int64_t j = 0; j < a.rows; ++j) a(j, i) *= factor;
      scales_.data()[i] = total;
      changed = true;
    }
  }
}

template <typename T>
template <typename V>
void Balance<T>::Undo(const MatrixView<V>& v) const {
  for (int64_t i = first_; i <= last_; ++i) {
    const Real<T> scale = scales_.data()[i];
    if (scale == 1) continue;
    for (int64_t j = 0; j < v.columns; ++j) v(i, j) *= scale;
  }
  for (int64_t i = first_ - 1; i >= 0; --i) ExchangeRowsOf(v, i, exchanged_.data()[i]);
  for (int64_t i = last_ + 1; i < v.rows; ++i) ExchangeRowsOf(v, i, exchanged_.data()[i]);
}

template <typename T>
void FactorHessenberg(const MatrixView<T>& a, int64_t first, int64_t last, const MatrixView<T>& q) {
  const int64_t count = std::max<int64_t>(last - first, 0);
  Scratch<T> taus(static_cast<std::size_t>(count));
  Scratch<T> v(static_cast<std::size_t>(a.rows)), sums(static_cast<std::size_t>(a.rows));
  for (int64_t k = first; k < last; ++k) {
    const int64_t below = last - k;
    T* column = a.At(k + 1, k);
    const T tau = taus.data()[k - first] = MakeReflector(below, column);
    if (tau == T(0)) continue;
    std::copy_n(column, below, v.data());
    v.data()[0] = T(1);
    // a = h^H a h, with h = 1 - tau v v^H
    std::fill_n(sums.data(), last + 1, T(0));
    for (int64_t j = 0; j < below; ++j) {
      AddColumn(last + 1, v.data()[j], a.At(0, k + 1 + j), sums.data());
    }
    for (int64_t j = 0; j < below; ++j) {
      AddColumn(last + 1, -Product(tau, Conjugate(v.data()[j])), sums.data(), a.At(0, k + 1 + j));
    }
    for (int64_t j = k + 1; j < a.columns; ++j) {
      const T sum = DotColumns(below, v.data(), a.At(k + 1, j));
      AddColumn(below, -Product(Conjugate(tau), sum), v.data(), a.At(k + 1, j));
    }
  }
  MakeIdentity(q);
  MultiplyByQ(Const(a.Block(first + 1, first, count, count)), taus.data(), count,
              q.Block(first + 1, first + 1, count, count));
  for (int64_t j = first; j < last; ++j) std::fill(a.At(j, j) + 2, a.At(0, j) + last + 1, T(0));
}

#define AOTI_INSTANTIATE(T)                                                       \
  template class Balance<T>;                                                      \
  template void Balance<T>::Undo(const MatrixView<std::complex<Real<T>>>&) const; \
  template void FactorHessenberg(const MatrixView<T>&, int64_t, int64_t, const MatrixView<T>&);
AOTI_INSTANTIATE(float)
AOTI_INSTANTIATE(double)
AOTI_INSTANTIATE(std::complex<float>)
AOTI_INSTANTIATE(std::complex<double>)
#undef AOTI_INSTANTIATE

}  // namespace aoti::slim
