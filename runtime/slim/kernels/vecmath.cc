// The vector functions that PyTorch's headers call in generated kernels, with the names that they
// have in the Sleef library. Compiled for x86-64-v3 they are for 8 floats or 4 doubles, for
// x86-64-v4 for 16 or 8, and for AArch64 for 4 or 2. Code for the x86 baseline calls none.
//
// The functions are hidden, so that libtorch in the same process uses its own.

#include "runtime/slim/kernels/vecmath_float.h"

#if defined(__AVX2__) || defined(__aarch64__)

#if defined(__AVX512F__)
#define AOTI_F(name, suffix) Sleef_##name##f16##suffix
#define AOTI_D(name, suffix) Sleef_##name##d8##suffix
#elif defined(__AVX2__)
#define AOTI_F(name, suffix) Sleef_##name##f8##suffix
#define AOTI_D(name, suffix) Sleef_##name##d4##suffix
#else
#define AOTI_F(name, suffix) Sleef_##name##f4##suffix
#define AOTI_D(name, suffix) Sleef_##name##d2##suffix
#endif

#define AOTI_FUNCTION extern "C" __attribute__((visibility("hidden")))

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

struct TwoF {
  VecF x, y;
};
struct TwoD {
  VecD x, y;
};

}  // namespace

#define AOTI_FLOAT(name, suffix, value) \
  AOTI_FUNCTION VecF AOTI_F(name, suffix)(VecF x) { return value; }
AOTI_FLOAT(exp, _u10, Exp(x))
AOTI_FLOAT(exp2, _u10, Exp2(x))
AOTI_FLOAT(expm1, _u10, Expm1(x))
AOTI_FLOAT(log, _u10, Log(x))
AOTI_FLOAT(log2, _u10, Log2(x))
AOTI_FLOAT(log10, _u10, Log10(x))
AOTI_FLOAT(log1p, _u10, Log1p(x))
AOTI_FLOAT(tanh, _u10, Tanh(x))
AOTI_FLOAT(erf, _u10, Erf(x))
AOTI_FLOAT(sin, _u10, Sin(x))
AOTI_FLOAT(sin, _u35, Sin(x))
AOTI_FLOAT(cos, _u10, Cos(x))
AOTI_FLOAT(cos, _u35, Cos(x))
AOTI_FLOAT(tan, _u10, Tan(x))

#define AOTI_BOTH(name, suffix)                                                    \
  AOTI_FUNCTION VecF AOTI_F(name, suffix)(VecF x) { return EachLane(x, name##f); } \
  AOTI_FUNCTION VecD AOTI_D(name, suffix)(VecD x) { return EachLane(x, name); }
AOTI_BOTH(acos, _u10)
AOTI_BOTH(acosh, _u10)
AOTI_BOTH(asin, _u10)
AOTI_BOTH(asinh, _u10)
AOTI_BOTH(atan, _u10)
AOTI_BOTH(atanh, _u10)
AOTI_BOTH(cosh, _u10)
AOTI_BOTH(sinh, _u10)
AOTI_BOTH(lgamma, _u10)
AOTI_BOTH(erfc, _u15)

#define AOTI_DOUBLE(name) \
  AOTI_FUNCTION VecD AOTI_D(name, _u10)(VecD x) { return EachLane(x, name); }
AOTI_DOUBLE(exp)
AOTI_DOUBLE(exp2)
AOTI_DOUBLE(expm1)
AOTI_DOUBLE(log)
AOTI_DOUBLE(log2)
AOTI_DOUBLE(log10)
AOTI_DOUBLE(log1p)
AOTI_DOUBLE(tanh)
AOTI_DOUBLE(erf)
AOTI_DOUBLE(sin)
AOTI_DOUBLE(cos)
AOTI_DOUBLE(tan)

AOTI_FUNCTION VecF AOTI_F(pow, _u10)(VecF x, VecF y) { return Pow(x, y); }
AOTI_FUNCTION VecD AOTI_D(pow, _u10)(VecD x, VecD y) { return EachLane(x, y, pow); }

#define AOTI_BINARY(name, suffix)                                                             \
  AOTI_FUNCTION VecF AOTI_F(name, suffix)(VecF x, VecF y) { return EachLane(x, y, name##f); } \
  AOTI_FUNCTION VecD AOTI_D(name, suffix)(VecD x, VecD y) { return EachLane(x, y, name); }
AOTI_BINARY(atan2, _u10)
AOTI_BINARY(hypot, _u05)
AOTI_BINARY(fmod, )
AOTI_BINARY(nextafter, )
AOTI_BINARY(copysign, )

AOTI_FUNCTION TwoF AOTI_F(sincos, _u10)(VecF x) { return {Sin(x), Cos(x)}; }
AOTI_FUNCTION TwoD AOTI_D(sincos, _u10)(VecD x) { return {EachLane(x, sin), EachLane(x, cos)}; }

}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif
