// Discrete Fourier transforms of one line of numbers.

#ifndef AOTI_RUNTIME_SLIM_MATH_FFT_H_
#define AOTI_RUNTIME_SLIM_MATH_FFT_H_

#include <cstdint>
#include <memory>

#include "runtime/slim/tensor/memory.h"

namespace aoti::slim {

struct Complex {
  double real, imag;
};

// All computations are in double, which costs little for float32 data and loses none of its digits.
class Fourier {
 public:
  // size may be any number from 1 on. Several threads may share one object.
  Fourier(std::int64_t size, bool forward);

  std::int64_t size() const { return size_; }
  std::int64_t scratch_size() const;

  // Transforms line[0..size - 1] in place. scratch: scratch_size() numbers.
  void Run(Complex* line, Complex* scratch) const;

 private:
  void Mixed(Complex* line, Complex* scratch) const;
  void Bluestein(Complex* line, Complex* scratch) const;

  std::int64_t size_;
  std::int64_t factors_[64];
  int factor_count_ = 0;
  Scratch<Complex> roots_;  // e^(-2 pi i k / size), or their conjugates
  // For sizes with a large prime factor: a convolution of chirps, whose size is a power of 2.
  std::unique_ptr<Fourier> to_, from_;
  Scratch<Complex> chirp_;
  Scratch<Complex> kernel_;  // the transformed kernel of that convolution
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_MATH_FFT_H_
