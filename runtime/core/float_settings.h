// How a thread computes with floating-point numbers: how it rounds, and whether subnormal ones (in
// float, below 1.2e-38) count as zeros. On x86-64 alone; elsewhere this does nothing.

#ifndef AOTI_RUNTIME_CORE_FLOAT_SETTINGS_H_
#define AOTI_RUNTIME_CORE_FLOAT_SETTINGS_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aoti::internal {

class FloatSettings {
 public:
  // Those of the calling thread.
  FloatSettings() : bits_(Current() & kSettings) {}

  // Lets the calling thread have them.
  void Set() const {
#if defined(__x86_64__)
    const unsigned current = Current();
    if ((current & kSettings) != bits_) _mm_setcsr(bits_ | (current & ~kSettings));
#endif
  }

  // The same, and subnormal operands are zeros. Results may still be subnormal.
  FloatSettings WithoutSubnormals() const { return FloatSettings(bits_ | kOperandsAreZeros); }

 private:
  explicit FloatSettings(unsigned bits) : bits_(bits) {}

  // The lowest bits of MXCSR tell which exceptions have been met.
  static constexpr unsigned kSettings = ~0x3FU;
  static constexpr unsigned kOperandsAreZeros = 0x40;

  static unsigned Current() {
#if defined(__x86_64__)
    return _mm_getcsr();
#else
    return 0;
#endif
  }

  unsigned bits_;
};

// As long as it exists, subnormal operands are zeros for the calling thread, and in the parallel
// regions that it begins. Intel's CPUs take 44 ns for a product of vectors with one, and 0.2 ns for
// others: weights of an attention, exp(-100) where a mask is -100, are subnormal.
class WithoutSubnormals {
 public:
  WithoutSubnormals() { before_.WithoutSubnormals().Set(); }
  ~WithoutSubnormals() { before_.Set(); }
  WithoutSubnormals(const WithoutSubnormals&) = delete;
  WithoutSubnormals& operator=(const WithoutSubnormals&) = delete;

 private:
  const FloatSettings before_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_FLOAT_SETTINGS_H_
