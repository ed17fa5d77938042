#include "runtime/slim/kernels/rnn.h"

#include <stdint.h>

#include "runtime/slim/kernels/exp.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

inline VecF Magnitude(VecF x) { return (VecF)((VecI)x & 0x7fffffff); }
inline VecF WithSign(VecF magnitude, VecF sign) {
  return (VecF)((VecI)magnitude | ((VecI)sign & ~0x7fffffff));
}

inline VecF Sigmoid(VecF x) {
  const VecF e = Exp(-Magnitude(x));
  return Ratio(x < VecF{} ? e : Splat(1), e + 1.0f);
}

inline VecF Tanh(VecF x) {
  const VecF magnitude = Magnitude(x);
  // Near 0 the difference of exponentials loses precision; a polynomial does not.
  const VecF square = x * x;
  VecF p = Splat(-5.70498872745e-3f);
  p = Fma(p, square, Splat(2.06390887954e-2f));
  p = Fma(p, square, Splat(-5.37397155531e-2f));
  p = Fma(p, square, Splat(1.33314422036e-1f));
  p = Fma(p, square, Splat(-3.33332819422e-1f));
  p = Fma(p * square, x, x);
  const VecF e = Exp(-2.0f * magnitude);
  const VecF far = WithSign(Ratio(1.0f - e, e + 1.0f), x);
  return magnitude < Splat(0.625f) ? p : far;
}

inline void Step(VecF input, VecF forget, VecF update, VecF output, VecF* cell, VecF* hidden) {
  *cell = Fma(Sigmoid(forget), *cell, Sigmoid(input) * Tanh(update));
  *hidden = Sigmoid(output) * Tanh(*cell);
}

void Lstm(const float* gates, int64_t size, float* cell, float* hidden) {
  int64_t i = 0;
  VecF c, h;
  for (; i + kLanes <= size; i += kLanes) {
    c = Load(cell + i);
    Step(Load(gates + i), Load(gates + size + i), Load(gates + 2 * size + i),
         Load(gates + 3 * size + i), &c, &h);
    Store(cell + i, c);
    Store(hidden + i, h);
  }
  if (i == size) return;
  const int rest = static_cast<int>(size - i);
  c = LoadPart(cell + i, rest);
  Step(LoadPart(gates + i, rest), LoadPart(gates + size + i, rest),
       LoadPart(gates + 2 * size + i, rest), LoadPart(gates + 3 * size + i, rest), &c, &h);
  StorePart(cell + i, c, rest);
  StorePart(hidden + i, h, rest);
}

inline VecF GruGates(VecF input_reset, VecF hidden_reset, VecF input_update, VecF hidden_update,
                     VecF input_new, VecF hidden_new, VecF before) {
  const VecF fresh = Tanh(Fma(Sigmoid(input_reset + hidden_reset), hidden_new, input_new));
  return Fma(before - fresh, Sigmoid(input_update + hidden_update), fresh);
}

void Gru(const float* input, const float* hidden, int64_t size, const float* before, float* after) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(after + i, GruGates(Load(input + i), Load(hidden + i), Load(input + size + i),
                              Load(hidden + size + i), Load(input + 2 * size + i),
                              Load(hidden + 2 * size + i), Load(before + i)));
  }
  if (i == size) return;
  const int rest = static_cast<int>(size - i);
  StorePart(after + i,
            GruGates(LoadPart(input + i, rest), LoadPart(hidden + i, rest),
                     LoadPart(input + size + i, rest), LoadPart(hidden + size + i, rest),
                     LoadPart(input + 2 * size + i, rest), LoadPart(hidden + 2 * size + i, rest),
                     LoadPart(before + i, rest)),
            rest);
}

// NaN stays, as a comparison with it is false.
inline VecF Relu(VecF x) { return x < VecF{} ? VecF{} : x; }

void Plain(const float* gates, int64_t size, bool relu, float* hidden) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const VecF x = Load(gates + i);
    Store(hidden + i, relu ? Relu(x) : Tanh(x));
  }
  if (i == size) return;
  const int rest = static_cast<int>(size - i);
  const VecF x = LoadPart(gates + i, rest);
  StorePart(hidden + i, relu ? Relu(x) : Tanh(x), rest);
}

}  // namespace

extern const RnnKernels kRnn = {Lstm, Gru, Plain};

}  // namespace AOTI_ISA
}  // namespace aoti::slim
