#include "runtime/slim/math/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace aoti::slim {
namespace {

inline Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
inline Complex operator-(Complex a, Complex b) { return {a.real - b.real, a.imag - b.imag}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
inline Complex Conjugate(Complex a) { return {a.real, -a.imag}; }

// e^(-2 pi i k / size), or its conjugate.
Complex Root(std::int64_t k, std::int64_t size, bool forward) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
  return {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
}

// Writes the prime factors up to 31, with pairs of 2 joined to 4. Returns what remains of size.
std::int64_t Factorize(std::int64_t size, std::int64_t* factors, int* count) {
  for (std::int64_t factor : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}) {
    while (size % factor == 0) {
      factors[(*count)++] = factor;
      size /= factor;
    }
  }
  return size;
}

std::int64_t LeftOver(std::int64_t size) {
  std::int64_t factors[64];
  int count = 0;
  return Factorize(size, factors, &count);
}

// A stage of Stockham's algorithm: transforms of `factor` numbers. Number j of a transform is
// from[q + width * (p + rest * j)]; its result k, times root^(p k), goes to to[q + width * (factor
// * p + k)]. step: the distance between this stage's roots in the table of all roots.
struct Stage {
  std::int64_t factor, rest, width, size, step;
  const Complex* roots;
};

void Stage2(const Stage& s, const Complex* from, Complex* to) {
  for (std::int64_t p = 0; p < s.rest; ++p) {
    const Complex root = s.roots[p * s.step];
    const Complex* a = from + s.width * p;
    const Complex* b = a + s.width * s.rest;
    Complex* out = to + 2 * s.width * p;
    for (std::int64_t q = 0; q < s.width; ++q) {
      out[q] = a[q] + b[q];
      out[q + s.width] = (a[q] - b[q]) * root;
    }
  }
}

void Stage4(const Stage& s, const Complex* from, Complex* to) {
  // The fourth root of unity in the table: -i, or i for inverse transforms.
  const double turn = s.roots[s.size / 4].imag;
  for (std::int64_t p = 0; p < s.rest; ++p) {
    const Complex root1 = s.roots[p * s.step];
    const Complex root2 = s.roots[2 * p * s.step];
    const Complex root3 = s.roots[3 * p * s.step];
    const Complex* in = from + s.width * p;
    const std::int64_t next = s.width * s.rest;
    Complex* out = to + 4 * s.width * p;
    for (std::int64_t q = 0; q < s.width; ++q) {
      const Complex a = in[q], b = in[q + next], c = in[q + 2 * next], d = in[q + 3 * next];
      const Complex sum = a + c, difference = a - c, other = b + d, turned = b - d;
      const Complex side = {-turned.imag * turn, turned.real * turn};
      out[q] = sum + other;
      out[q + s.width] = (difference + side) * root1;
      out[q + 2 * s.width] = (sum - other) * root2;
      out[q + 3 * s.width] = (difference - side) * root3;
    }
  }
}

void StageAny(const Stage& s, const Complex* from, Complex* to) {
  const std::int64_t unity = s.size / s.factor;  // distance between the roots of order `factor`
  for (std::int64_t p = 0; p < s.rest; ++p) {
    for (std::int64_t k = 0; k < s.factor; ++k) {
      const Complex root = s.roots[p * k * s.step];
      for (std::int64_t q = 0; q < s.width; ++q) {
        Complex sum = from[q + s.width * p];
        for (std::int64_t j = 1; j < s.factor; ++j) {
          sum = sum + from[q + s.width * (p + s.rest * j)] * s.roots[j * k % s.factor * unity];
        }
        to[q + s.width * (s.factor * p + k)] = sum * root;
      }
    }
  }
}

std::size_t Count(std::int64_t size) { return static_cast<std::size_t>(size); }

}  // namespace

Fourier::Fourier(std::int64_t size, bool forward)
    : size_(size),
      roots_(LeftOver(size) == 1 ? Count(size) : 0),
      chirp_(LeftOver(size) == 1 ? 0 : Count(size)),
      kernel_(LeftOver(size) == 1 ? 0 : std::bit_ceil(Count(2 * size - 1))) {
  if (Factorize(size, factors_, &factor_count_) == 1) {
    for (std::int64_t k = 0; k < size; ++k) roots_[Count(k)] = Root(k, size, forward);
    return;
  }
  // With 2 j k = j^2 + k^2 - (k - j)^2, the transform is a convolution with e^(pi i k^2 / size).
  const auto padded = static_cast<std::int64_t>(kernel_.size());
  to_ = std::make_unique<Fourier>(padded, true);
  from_ = std::make_unique<Fourier>(padded, false);
  std::fill(kernel_.begin(), kernel_.end(), Complex{0, 0});
  std::int64_t square = 0;  // k^2 modulo 2 size, which keeps the angles small
  for (std::int64_t k = 0; k < size; ++k) {
    chirp_[Count(k)] = Root(square, 2 * size, forward);
    kernel_[Count(k)] = Conjugate(chirp_[Count(k)]);
    if (k > 0) kernel_[Count(padded - k)] = kernel_[Count(k)];
    square = (square + 2 * k + 1) % (2 * size);
  }
  Scratch<Complex> scratch(Count(to_->scratch_size()));
  to_->Run(kernel_.data(), scratch.data());
  for (Complex& value : kernel_) {
    value = {value.real / static_cast<double>(padded), value.imag / static_cast<double>(padded)};
  }
}

std::int64_t Fourier::scratch_size() const {
  return to_ == nullptr ? size_ : 2 * static_cast<std::int64_t>(kernel_.size());
}

void Fourier::Run(Complex* line, Complex* scratch) const {
  if (to_ == nullptr) {
    Mixed(line, scratch);
  } else {
    Bluestein(line, scratch);
  }
}

void Fourier::Mixed(Complex* line, Complex* scratch) const {
  Complex* from = line;
  Complex* to = scratch;
  std::int64_t width = 1;
  for (int i = 0; i < factor_count_; ++i) {
    const std::int64_t factor = factors_[i];
    const Stage stage = {factor, size_ / width / factor, width, size_, width, roots_.data()};
    if (factor == 2) {
      Stage2(stage, from, to);
    } else if (factor == 4) {
      Stage4(stage, from, to);
    } else {
      StageAny(stage, from, to);
    }
    std::swap(from, to);
    width *= factor;
  }
  if (from != line) std::copy(from, from + size_, line);
}

void Fourier::Bluestein(Complex* line, Complex* scratch) const {
  const auto padded = static_cast<std::int64_t>(kernel_.size());
  Complex* work = scratch;
  for (std::int64_t k = 0; k < size_; ++k) work[k] = line[k] * chirp_[Count(k)];
  std::fill(work + size_, work + padded, Complex{0, 0});
  to_->Run(work, scratch + padded);
  for (std::int64_t k = 0; k < padded; ++k) work[k] = work[k] * kernel_[Count(k)];
  from_->Run(work, scratch + padded);
  for (std::int64_t k = 0; k < size_; ++k) line[k] = work[k] * chirp_[Count(k)];
}

}  // namespace aoti::slim
