// Draws categories with given weights.

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/math/generator.h"
#include "runtime/slim/ops/random_fill.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

template <typename T>
void CheckWeights(const T* weights, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double weight = static_cast<double>(weights[i]);
    Require(weight >= 0 && std::isfinite(weight), "multinomial: weight ", i, " is ", weight,
            ", must be finite and not negative");
    sum += weight;
  }
  Require(sum > 0, "multinomial: the sum of the weights is 0, must be positive");
}

// Without replacement: the categories with the largest weight / (exponentially distributed number).
template <typename T>
void DrawDistinct(const T* weights, const T* numbers, std::int64_t count, std::int64_t samples,
                  std::int64_t* out) {
  using Wide = Accumulator<T>;
  Scratch<T> keys(static_cast<std::size_t>(count));
  Scratch<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = 0; i < count; ++i) {
    keys[i] = static_cast<T>(Wide(weights[i]) / Wide(numbers[i]));
    if (std::isnan(Wide(keys[i])))
      keys[i] = T(0);  // 0 / 0: a category of weight 0, which must not be drawn
  }
  std::partial_sort(order.begin(), order.begin() + samples, order.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
                    });
  std::copy_n(order.begin(), samples, out);
}

template <typename T>
void DrawAgain(const T* weights, std::int64_t count, std::int64_t samples, Generator& generator,
               std::int64_t* out) {
  using Wide = Accumulator<T>;
  Scratch<Wide> sums(static_cast<std::size_t>(count));
  Wide sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sums[i] = sum += Wide(weights[i]);
  for (Wide& value : sums) value /= sum;
  sums[count - 1] = 1;
  for (std::int64_t i = 0; i < samples; ++i) {
    const double at = generator.UniformDouble();
    out[i] = std::partition_point(sums.begin(), sums.end(),
                                  [&](Wide value) { return static_cast<double>(value) < at; }) -
             sums.begin();
  }
}

TensorPtr Draw(const Tensor& self, std::int64_t samples, bool replacement) {
  Require(self.rank() == 1 || self.rank() == 2, "multinomial: the weights have ", self.rank(),
          " dims, must have 1 or 2");
  const std::int64_t count = self.size(self.rank() - 1);
  const std::int64_t rows = self.rank() == 2 ? self.size(0) : 1;
  Require(samples > 0 && (replacement || samples <= count), "multinomial: ", samples,
          " samples can't be drawn from ", count, " categories",
          replacement ? "" : " without replacement");
  Require(count > 0, "multinomial: there are no categories");
  TensorPtr result = self.rank() == 2 ? Empty(ScalarType::kInt64, {rows, samples})
                                      : Empty(ScalarType::kInt64, {samples});
  std::int64_t* out = result->data<std::int64_t>();
  const TensorPtr weights = Contiguous(self);
  Generator& generator = Generator::Default();
  DispatchFloating(self.dtype(), [&]<typename T>() {
    const T* data = weights->data<T>();
    for (std::int64_t row = 0; row < rows; ++row) CheckWeights(data + row * count, count);
    if (replacement && samples > 1) {
      const std::lock_guard lock(generator.mutex());
      for (std::int64_t row = 0; row < rows; ++row) {
        DrawAgain(data + row * count, count, samples, generator, out + row * samples);
      }
      return;
    }
    const TensorPtr drawn = EmptyLike(self);
    FillExponential(*drawn, 1, generator);
    const TensorPtr numbers = Contiguous(*drawn);
    for (std::int64_t row = 0; row < rows; ++row) {
      DrawDistinct(data + row * count, numbers->data<T>() + row * count, count, samples,
                   out + row * samples);
    }
  });
  return result;
}

void Multinomial(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  // stack[3] is the generator, which is None in every exported program.
  stack[0] = Give(Draw(*self, TakeInt(stack[1]), TakeBool(stack[2])));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_multinomial, "aten::multinomial", "", aoti::slim::Multinomial)
