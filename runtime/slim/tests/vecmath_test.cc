// Compares the vector functions with long double, for floats of all magnitudes. Compiled for the
// level whose functions it tests, like kernels/vecmath.cc.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__AVX512F__)
#define AOTI_LANES 16
#define AOTI_F(name, suffix) Sleef_##name##f16##suffix
#define AOTI_D(name, suffix) Sleef_##name##d8##suffix
#elif defined(__AVX2__)
#define AOTI_LANES 8
#define AOTI_F(name, suffix) Sleef_##name##f8##suffix
#define AOTI_D(name, suffix) Sleef_##name##d4##suffix
#else
#define AOTI_LANES 4
#define AOTI_F(name, suffix) Sleef_##name##f4##suffix
#define AOTI_D(name, suffix) Sleef_##name##d2##suffix
#endif

namespace {

typedef float VecF __attribute__((vector_size(4 * AOTI_LANES)));
typedef double VecD __attribute__((vector_size(4 * AOTI_LANES)));
struct TwoF {
  VecF x, y;
};

// Where long double is implemented in software, and in an emulator, a smaller sample is tested.
#if defined(__aarch64__)
constexpr int kSparse = 37;
#else
constexpr int kSparse = 1;
#endif

int failures = 0;

// The error in units in the last place (ulp) of a float near `expected`.
double Error(float got, long double expected) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : INFINITY;
  const float rounded = static_cast<float>(expected);
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded) || std::isnan(got)) {
    // Rounding to infinity is an error of one ulp, too.
    return std::fabs(got) == FLT_MAX || std::fabs(rounded) == FLT_MAX ? 1 : INFINITY;
  }
  int exponent;
  std::frexp(std::fmax(std::fabs(rounded), FLT_MIN), &exponent);
  const long double place = std::ldexp(1.0L, exponent - 24);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - expected) / place);
}

std::vector<float> Samples() {
  std::vector<float> samples;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 10007 * kSparse) {
    const auto word = static_cast<std::uint32_t>(bits);
    float x;
    std::memcpy(&x, &word, sizeof(x));
    samples.push_back(x);
  }
  // The range in which most arguments are.
  for (int i = -200000; i <= 200000; i += kSparse)
    samples.push_back(static_cast<float>(i) * 5.3e-4f);
  for (int i = -2000; i <= 2000; ++i) samples.push_back(1 + static_cast<float>(i) * FLT_EPSILON);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f, 1.0f, 2.0f, 10.0f, 0.5f, FLT_MIN, FLT_TRUE_MIN, FLT_MAX, infinity,
                        88.72284f, 88.8f, 103.97f, 104.1f, 128.0f, 149.0f, 150.0f, 127.99999f}) {
    samples.push_back(x);
    samples.push_back(-x);
  }
  samples.push_back(std::numeric_limits<float>::quiet_NaN());
  while (samples.size() % AOTI_LANES != 0) samples.push_back(0);
  return samples;
}

void Report(const char* name, double worst, float at, float got, double bound) {
  const bool bad = !(worst <= bound);
  if (bad) ++failures;
  std::printf("%s %-8s %8.3f at %.9g -> %.9g\n", bad ? "FAILED" : "ok    ", name, worst,
              static_cast<double>(at), static_cast<double>(got));
}

template <typename Function, typename Reference>
void Check(const char* name, Function function, Reference reference, double bound) {
  static const std::vector<float> samples = Samples();
  double worst = 0;
  float at = 0, got = 0;
  for (std::size_t i = 0; i < samples.size(); i += AOTI_LANES) {
    VecF x;
    std::memcpy(&x, samples.data() + i, sizeof(x));
    const VecF y = function(x);
    for (int k = 0; k < AOTI_LANES; ++k) {
      const double error = Error(y[k], reference(static_cast<long double>(x[k])));
      const bool sign =
          x[k] == 0 && y[k] == 0 &&
          std::signbit(y[k]) != std::signbit(reference(static_cast<long double>(x[k])));
      if (error > worst || sign) {
        worst = sign ? INFINITY : error;
        at = x[k];
        got = y[k];
      }
    }
  }
  Report(name, worst, at, got, bound);
}

template <typename Function>
void CheckPow(Function function) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,    -0.0f,      1,     -1,     2,        -2,        0.5f,
                               3,    -3,         1e30f, 1e-30f, infinity, -infinity, FLT_MIN,
                               7.5f, 1.0000001f, 1e8f,  -1e8f,  NAN};
  for (int i = 1; i < 700; i += kSparse)
    values.push_back(static_cast<float>(std::exp(i * 0.17 - 60)));
  for (int i = 1; i < 300; i += kSparse) values.push_back(static_cast<float>(i) * -0.37f);
  double worst = 0;
  float at = 0, got = 0;
  for (const float base : values) {
    for (std::size_t i = 0; i + AOTI_LANES <= values.size(); i += AOTI_LANES) {
      VecF y;
      std::memcpy(&y, values.data() + i, sizeof(y));
      VecF x = {};
      for (int k = 0; k < AOTI_LANES; ++k) x[k] = base;
      const VecF result = function(x, y);
      for (int k = 0; k < AOTI_LANES; ++k) {
        const double error = Error(
            result[k], std::pow(static_cast<long double>(base), static_cast<long double>(y[k])));
        if (error > worst) {
          worst = error;
          at = base;
          got = result[k];
        }
      }
    }
  }
  Report("pow", worst, at, got, 1.0);
}

template <typename Function>
void CheckDouble(const char* name, Function function, double (*reference)(double)) {
  double worst = 0;
  for (int i = -4000; i < 4000; i += AOTI_LANES / 2) {
    VecD x;
    for (int k = 0; k < AOTI_LANES / 2; ++k) x[k] = (i + k) * 0.0123;
    const VecD y = function(x);
    for (int k = 0; k < AOTI_LANES / 2; ++k) {
      const double expected = reference(x[k]);
      if (std::isnan(expected) ? !std::isnan(y[k]) : y[k] != expected) worst = INFINITY;
    }
  }
  Report(name, worst, 0, 0, 0);
}

}  // namespace

extern "C" {
#define AOTI_DECLARE(name, suffix) \
  VecF AOTI_F(name, suffix)(VecF); \
  VecD AOTI_D(name, suffix)(VecD);
AOTI_DECLARE(exp, _u10)
AOTI_DECLARE(exp2, _u10)
AOTI_DECLARE(expm1, _u10)
AOTI_DECLARE(log, _u10)
AOTI_DECLARE(log2, _u10)
AOTI_DECLARE(log10, _u10)
AOTI_DECLARE(log1p, _u10)
AOTI_DECLARE(tanh, _u10)
AOTI_DECLARE(erf, _u10)
AOTI_DECLARE(erfc, _u15)
AOTI_DECLARE(sin, _u10)
AOTI_DECLARE(cos, _u10)
AOTI_DECLARE(tan, _u10)
AOTI_DECLARE(atan, _u10)
AOTI_DECLARE(sinh, _u10)
AOTI_DECLARE(lgamma, _u10)
VecF AOTI_F(sin, _u35)(VecF);
VecF AOTI_F(cos, _u35)(VecF);
VecF AOTI_F(pow, _u10)(VecF, VecF);
VecF AOTI_F(fmod, )(VecF, VecF);
VecF AOTI_F(hypot, _u05)(VecF, VecF);
TwoF AOTI_F(sincos, _u10)(VecF);
}

int main() {
#if defined(__AVX512F__)
  if (!__builtin_cpu_supports("avx512f")) return 0;
#elif defined(__AVX2__)
  if (!__builtin_cpu_supports("avx2")) return 0;
#endif
#define AOTI_CHECK(name, suffix, bound) \
  Check(#name, AOTI_F(name, suffix), [](long double x) { return std::name(x); }, bound)
  AOTI_CHECK(exp, _u10, 1.0);
  AOTI_CHECK(exp2, _u10, 1.0);
  AOTI_CHECK(expm1, _u10, 1.5);
  AOTI_CHECK(log, _u10, 1.0);
  AOTI_CHECK(log2, _u10, 1.5);
  AOTI_CHECK(log10, _u10, 1.75);
  AOTI_CHECK(log1p, _u10, 1.5);
  AOTI_CHECK(tanh, _u10, 1.5);
  AOTI_CHECK(erf, _u10, 1.5);
  AOTI_CHECK(sin, _u10, 0.6);
  AOTI_CHECK(sin, _u35, 0.6);
  AOTI_CHECK(cos, _u10, 0.6);
  AOTI_CHECK(cos, _u35, 0.6);
  AOTI_CHECK(tan, _u10, 1.0);
  AOTI_CHECK(atan, _u10, 1.5);
  AOTI_CHECK(sinh, _u10, 2.5);
  AOTI_CHECK(erfc, _u15, 4.0);
  Check(
      "sincos", [](VecF x) { return AOTI_F(sincos, _u10)(x).x; },
      [](long double x) { return std::sin(x); }, 0.6);
  Check(
      "fmod", [](VecF x) { return AOTI_F(fmod, )(x, VecF{} + 3.25f); },
      [](long double x) { return std::fmod(x, 3.25L); }, 0);
  Check(
      "hypot", [](VecF x) { return AOTI_F(hypot, _u05)(x, x); },
      [](long double x) { return std::hypot(x, x); }, 1.0);
  CheckPow(AOTI_F(pow, _u10));
  CheckDouble("exp d", AOTI_D(exp, _u10), std::exp);
  CheckDouble("log d", AOTI_D(log, _u10), std::log);
  CheckDouble("tanh d", AOTI_D(tanh, _u10), std::tanh);
  CheckDouble("lgamma d", AOTI_D(lgamma, _u10), std::lgamma);
  return failures == 0 ? 0 : 1;
}
