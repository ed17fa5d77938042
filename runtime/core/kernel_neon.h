// The vector functions that torch's headers call in kernels for AArch64. torch's package has a
// sleef.h for the CPU that the package is for; if that is another CPU, the functions are declared
// here. The slim runtime defines them (slim/kernels/vecmath.cc).

#ifndef AOTI_RUNTIME_CORE_KERNEL_NEON_H_
#define AOTI_RUNTIME_CORE_KERNEL_NEON_H_

#if defined(__aarch64__) && defined(AT_BUILD_ARM_VEC256_WITH_SLEEF)
#include <sleef.h>

#if !defined(Sleef_float32x4_t_2_DEFINED)
#include <arm_neon.h>

#define AOTI_ONE(name, suffix)                                  \
  extern "C" float32x4_t Sleef_##name##f4##suffix(float32x4_t); \
  extern "C" float64x2_t Sleef_##name##d2##suffix(float64x2_t);
#define AOTI_TWO(name, suffix)                                               \
  extern "C" float32x4_t Sleef_##name##f4##suffix(float32x4_t, float32x4_t); \
  extern "C" float64x2_t Sleef_##name##d2##suffix(float64x2_t, float64x2_t);

AOTI_ONE(acos, _u10)
AOTI_ONE(acosh, _u10)
AOTI_ONE(asin, _u10)
AOTI_ONE(asinh, _u10)
AOTI_ONE(atan, _u10)
AOTI_ONE(atanh, _u10)
AOTI_ONE(cos, _u10)
AOTI_ONE(cosh, _u10)
AOTI_ONE(erf, _u10)
AOTI_ONE(erfc, _u15)
AOTI_ONE(exp, _u10)
AOTI_ONE(exp2, _u10)
AOTI_ONE(expm1, _u10)
AOTI_ONE(lgamma, _u10)
AOTI_ONE(log, _u10)
AOTI_ONE(log10, _u10)
AOTI_ONE(log1p, _u10)
AOTI_ONE(log2, _u10)
AOTI_ONE(sin, _u10)
AOTI_ONE(sinh, _u10)
AOTI_ONE(tan, _u10)
AOTI_ONE(tanh, _u10)
AOTI_TWO(atan2, _u10)
AOTI_TWO(copysign, )
AOTI_TWO(fmod, )
AOTI_TWO(hypot, _u05)
AOTI_TWO(nextafter, )
AOTI_TWO(pow, _u10)

#undef AOTI_ONE
#undef AOTI_TWO
#endif
#endif

#endif  // AOTI_RUNTIME_CORE_KERNEL_NEON_H_
