// Elementary functions of vectors of floats, accurate to about one unit in the last place.
//
// Polynomials are minimax approximations; where the precision of float is not enough (angles,
// powers), each half of a vector is computed as doubles. Only files in kernels/ include this
// header; see simd.h.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_VECMATH_FLOAT_H_
#define AOTI_RUNTIME_SLIM_KERNELS_VECMATH_FLOAT_H_

#include <math.h>

#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

typedef double VecD __attribute__((vector_size(4 * kLanes)));  // half as many lanes
typedef int64_t VecL __attribute__((vector_size(4 * kLanes)));
typedef float HalfF __attribute__((vector_size(2 * kLanes)));

inline VecF Bits(VecI v) { return reinterpret_cast<VecF>(v); }
inline VecI Bits(VecF v) { return reinterpret_cast<VecI>(v); }
inline VecI SplatI(int32_t x) { return VecI{} + x; }
inline VecD SplatD(double x) { return VecD{} + x; }
inline VecF Abs(VecF v) { return Bits(Bits(v) & 0x7fffffff); }
inline VecF WithSign(VecF magnitude, VecF sign) {
  return Bits((Bits(magnitude) & 0x7fffffff) | (Bits(sign) & SplatI(INT32_MIN)));
}
// Whether a lane is not 0.
inline bool Any(VecI mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256((__m256i)mask, (__m256i)mask) == 0;
#else
  VecL halves = reinterpret_cast<VecL>(mask);
  int64_t any = 0;
  for (int i = 0; i < kLanes / 2; ++i) any |= halves[i];
  return any != 0;
#endif
}

// c[0] + x * c[1] + x^2 * c[2] + ...
template <typename Vec, typename Number, int kSize>
inline Vec Polynomial(Vec x, const Number (&c)[kSize]) {
  Vec sum = Vec{} + c[kSize - 1];
  for (int i = kSize - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// The nearest integer; requires |x| < 2^22.
struct Rounded {
  VecF number;
  VecI integer;
};
inline Rounded Round(VecF x) {
  const VecF magic = Splat(12582912.0f);  // 1.5 * 2^23
  const VecF shifted = x + magic;
  return {shifted - magic, Bits(shifted) - Bits(magic)};
}

// x * 2^n for n in -250..250.
inline VecF TimesPower(VecF x, VecI n) {
  const VecI half = n >> 1;
  const VecF a = Bits((half + 127) << 23), b = Bits((n - half + 127) << 23);
  return x * a * b;
}

// The same for x in 0.5..2, and as fast if the result is subnormal.
inline VecF Scale(VecF x, VecI n) {
  const VecI small = n < -125;
  if (__builtin_expect(!Any(small), 1)) return TimesPower(x, n);
  // CPUs take twenty times as long for a product that is subnormal. It is a multiple of 2^-149, and
  // the factor's bits.
  const VecI subnormal = small & (VecI)(x < (n < -126 ? Splat(2.0f) : Splat(1.0f)));  // not NaN
  const VecF factor = x * Bits((n + 149 + 127) << 23) + 0x1p23f;
  const VecF normal = TimesPower(x, subnormal ? VecI{} : n);
  return subnormal ? Bits(Bits(factor) - Bits(Splat(0x1p23f))) : normal;
}

// exp(x) = 2^n * (1 + rest), where rest is accurate even if it is tiny.
struct Exponential {
  VecF rest;
  VecI n;
};
inline Exponential SplitExp(VecF x) {
  const Rounded n = Round(x * 1.44269504f);
  VecF r = n.number * -0.693359375f + x;
  r = n.number * 2.12194440e-4f + r;
  constexpr float kQ[] = {0.5000000047f,   0.1666666682f,   0.04166635354f,
                          0.008333272834f, 0.001394110219f, 0.0001991430048f};
  return {r * r * Polynomial(r, kQ) + r, n.integer};
}

// Restricts x to low..high; NaN stays NaN.
inline VecF Clamp(VecF x, float low, float high) {
  x = x < low ? Splat(low) : x;
  return x > high ? Splat(high) : x;
}

inline VecF Exp(VecF x) {
  const Exponential e = SplitExp(Clamp(x, -104.0f, 89.0f));
  return Scale(e.rest + 1.0f, e.n);
}

inline VecF Expm1(VecF x) {
  const Exponential e = SplitExp(Clamp(x, -104.0f, 89.0f));
  const VecF power = Bits((e.n + 127) << 23);  // for n in -59..59
  const VecF near = power * e.rest + (power - 1.0f);
  const VecF far = Scale(e.rest + 1.0f, e.n) - 1.0f;
  const VecF result = Abs(x) < 30.0f ? near : far;
  return x == 0.0f ? x : result;
}

inline VecF Exp2(VecF x) {
  x = Clamp(x, -151.0f, 129.0f);
  const Rounded n = Round(x);
  const VecF r = (x - n.number) * 0.693147182f + (x - n.number) * -1.90465421e-9f;
  constexpr float kQ[] = {0.5000000047f,   0.1666666682f,   0.04166635354f,
                          0.008333272834f, 0.001394110219f, 0.0001991430048f};
  return Scale(r * r * Polynomial(r, kQ) + r + 1.0f, n.integer);
}

// log(x) = k * log(2) + rest, for x > 0, including subnormal numbers.
struct Logarithm {
  VecF k;
  VecF rest;
};
inline Logarithm SplitLog(VecF x) {
  const VecI tiny = x < 1.17549435e-38f;
  VecI bits = Bits(tiny ? x * 8388608.0f : x);
  bits -= 0x3f3504f3;  // sqrt(1/2): this brings the mantissa into sqrt(1/2)..sqrt(2)
  VecI k = (bits >> 23) - (tiny & 23);
  const VecF f = Bits((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const VecF s = f / (f + 2.0f);
  const VecF z = s * s;
  constexpr float kP[] = {0.6666666564f, 0.4000033725f, 0.2853716796f, 0.2358498797f};
  const VecF half_square = 0.5f * f * f;
  const VecF rest = f - (half_square - s * (half_square + z * Polynomial(z, kP)));
  return {__builtin_convertvector(k, VecF), rest};
}

// Sets the logarithm's results for zero, negative numbers, infinity and NaN.
inline VecF FixLog(VecF result, VecF x) {
  const float infinity = __builtin_inff();
  result = x == infinity ? x : result;
  result = x == 0.0f ? Splat(-infinity) : result;
  return x >= 0.0f ? result : Splat(__builtin_nanf(""));
}

inline VecF Log(VecF x) {
  const Logarithm l = SplitLog(x);
  return FixLog(l.k * 0.693359375f + (l.k * -2.12194440e-4f + l.rest), x);
}
inline VecF Log2(VecF x) {
  const Logarithm l = SplitLog(x);
  return FixLog(l.k + (l.rest * 1.44269502f + l.rest * 1.92596303e-8f), x);
}
inline VecF Log10(VecF x) {
  const Logarithm l = SplitLog(x);
  const VecF low = l.k * -4.60503840e-6f + l.rest * 1.03013414e-8f;
  return FixLog(l.k * 0.301034599f + (l.rest * 0.434294462f + low), x);
}

inline VecF Log1p(VecF x) {
  const VecF u = x + 1.0f;
  const VecF lost = x - (u - 1.0f);
  const Logarithm l = SplitLog(u);
  const VecF low = l.k * -2.12194440e-4f + lost / u;
  const VecF result = l.k * 0.693359375f + (low + l.rest);
  const VecI simple = (u <= 0.0f) | (u == __builtin_inff());
  return u == 1.0f ? x : FixLog(simple ? u : result, u);
}

inline VecF Tanh(VecF x) {
  const VecF size = Abs(x);
  const VecF a = size > 10.0f ? Splat(10.0f) : size;  // NaN stays NaN
  const VecF z = a * a;
  constexpr float kP[] = {-0.333333309f,  0.1333320959f,    -0.05394718101f,
                          0.02170283327f, -0.008182328262f, 0.00214720797f};
  const VecF near = z * a * Polynomial(z, kP) + a;
  const Exponential e = SplitExp(a + a);
  const VecF power = Bits((e.n + 127) << 23);
  const VecF far = 1.0f - Ratio(Splat(2.0f), power * e.rest + (power + 1.0f));
  return WithSign(a < 0.625f ? near : far, x);
}

inline VecF Erf(VecF x) {
  const VecF a = Clamp(Abs(x), 0.0f, 4.0f);
  const VecF z = a * a;
  constexpr float kNear[] = {0.1283791666f,   -0.376126332f,     0.1128368635f,  -0.02685885124f,
                             0.005199599914f, -0.0008125807253f, 8.296613018e-5f};
  constexpr float kFar[] = {0.0001784540351f, -1.129533157f,    -0.6333098604f,   -0.1083210882f,
                            0.02514608955f,   -0.004181245052f, 0.0004365757558f, -2.127882544e-5f};
  const VecF near = a * Polynomial(z, kNear) + a;
  const VecF far = 1.0f - Exp(Polynomial(a, kFar));
  return WithSign(a < 0.9375f ? near : far, x);
}

inline VecD Widen(VecF v, int half) {
  HalfF part;
  __builtin_memcpy(&part, reinterpret_cast<const char*>(&v) + half * sizeof(part), sizeof(part));
  return __builtin_convertvector(part, VecD);
}
inline VecF Narrow(VecD low, VecD high) {
  const HalfF parts[2] = {__builtin_convertvector(low, HalfF),
                          __builtin_convertvector(high, HalfF)};
  VecF v;
  __builtin_memcpy(&v, parts, sizeof(v));
  return v;
}
inline VecL BitsD(VecD v) { return reinterpret_cast<VecL>(v); }
inline VecD BitsD(VecL v) { return reinterpret_cast<VecD>(v); }

// Sine and cosine of floats with |x| <= 1e8.
struct Angle {
  VecD sine;
  VecD cosine;
};
inline Angle SineCosine(VecD x) {
  const VecD magic = SplatD(6755399441055744.0);  // 1.5 * 2^52
  const VecD shifted = x * 0.63661977236758138 + magic;
  const VecD n = shifted - magic;
  const VecL quarter = BitsD(shifted) - BitsD(magic);
  VecD r = n * -1.5707963267948966 + x;
  r = n * -6.123233995736766e-17 + r;
  const VecD z = r * r;
  constexpr double kS[] = {-0.166666666666315896, 0.00833333332527077255, -0.000198412638222745691,
                           2.75553575815407618e-6, -2.47616382202819707e-8};
  constexpr double kC[] = {0.0416666666666022023, -0.00138888888782666692, 0.0000248015809681334728,
                           -2.75555664661244871e-7, 2.06476939630564699e-9};
  const VecD s = r * z * Polynomial(z, kS) + r;
  const VecD c = z * z * Polynomial(z, kC) + (1.0 - 0.5 * z);
  const VecL swap = (quarter & 1) != 0;
  const VecL sine_sign = (quarter & 2) << 62, cosine_sign = ((quarter + 1) & 2) << 62;
  return {BitsD(BitsD(swap ? c : s) ^ sine_sign), BitsD(BitsD(swap ? s : c) ^ cosine_sign)};
}

// base^y for floats, with base > 0 and both finite.
inline VecD Power(VecD base, VecD y) {
  const VecL offset = VecL{} + 0x3fe6a09e667f3bcdLL;  // sqrt(1/2)
  const VecL bits = BitsD(base) - offset;
  const VecL mantissa = (bits & 0xfffffffffffffLL) + offset;
  // The exponents of floats fit into the low half; this avoids a 64-bit conversion.
  const VecD magic = SplatD(6755399441055744.0);
  const VecD k = BitsD((bits >> 52) + BitsD(magic)) - magic;
  const VecD f = BitsD(mantissa) - 1.0;
  const VecD s = f / (f + 2.0);
  const VecD z = s * s;
  constexpr double kP[] = {0.666666666665862305, 0.400000000528108233, 0.285714170355176255,
                           0.222233788168608074, 0.181233999464939416, 0.168228666660640419};
  const VecD logarithm = 2.0 * s + s * z * Polynomial(z, kP);
  VecD e = y * (k + logarithm * 1.4426950408889634);
  e = e < -200.0 ? SplatD(-200.0) : e;
  e = e > 200.0 ? SplatD(200.0) : e;
  const VecD shifted = e + magic;
  const VecD n = shifted - magic;
  const VecD r = (e - n) * 0.69314718055994531;
  constexpr double kE[] = {1.0,
                           0.999999999999891682,
                           0.499999999994536721,
                           0.166666666678361505,
                           0.0416666670346460623,
                           0.00833333300087660414,
                           0.0013888802486074078,
                           0.00019841597652184627,
                           0.0000248841742705206983,
                           2.74820582754435556e-6};
  return BitsD(BitsD(Polynomial(r, kE)) + ((BitsD(shifted) - BitsD(magic)) << 52));
}

// Calls a scalar function for each lane, for rare arguments or large ones.
inline VecF EachLane(VecF x, float (*function)(float)) {
  VecF result = x;
  for (int i = 0; i < kLanes; ++i) result[i] = function(x[i]);
  return result;
}
inline VecF EachLane(VecF x, VecF y, float (*function)(float, float)) {
  VecF result = x;
  for (int i = 0; i < kLanes; ++i) result[i] = function(x[i], y[i]);
  return result;
}
inline VecD EachLane(VecD x, double (*function)(double)) {
  VecD result = x;
  for (int i = 0; i < kLanes / 2; ++i) result[i] = function(x[i]);
  return result;
}
inline VecD EachLane(VecD x, VecD y, double (*function)(double, double)) {
  VecD result = x;
  for (int i = 0; i < kLanes / 2; ++i) result[i] = function(x[i], y[i]);
  return result;
}

inline bool LargeAngles(VecF x) { return Any(~(Abs(x) <= 1e8f)); }

inline VecF Sin(VecF x) {
  if (LargeAngles(x)) return EachLane(x, sinf);
  const VecF result = Narrow(SineCosine(Widen(x, 0)).sine, SineCosine(Widen(x, 1)).sine);
  return x == 0.0f ? x : result;
}
inline VecF Cos(VecF x) {
  if (LargeAngles(x)) return EachLane(x, cosf);
  return Narrow(SineCosine(Widen(x, 0)).cosine, SineCosine(Widen(x, 1)).cosine);
}
inline VecF Tan(VecF x) {
  if (LargeAngles(x)) return EachLane(x, tanf);
  const Angle low = SineCosine(Widen(x, 0)), high = SineCosine(Widen(x, 1));
  const VecF result = Narrow(low.sine / low.cosine, high.sine / high.cosine);
  return x == 0.0f ? x : result;
}

inline VecF Pow(VecF x, VecF y) {
  const VecI ordinary = (x > 0.0f) & (x < __builtin_inff()) & (Abs(y) < __builtin_inff());
  if (Any(~ordinary)) return EachLane(x, y, powf);
  return Narrow(Power(Widen(x, 0), Widen(y, 0)), Power(Widen(x, 1), Widen(y, 1)));
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_VECMATH_FLOAT_H_
