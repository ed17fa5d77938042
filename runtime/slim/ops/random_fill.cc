#include "runtime/slim/ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/random.h"

namespace aoti::slim {
namespace {

constexpr std::int64_t kGroup = 16;

const RandomKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kRandom); }

// The Box-Muller transform: numbers i and i + 8 of a group become a pair.
void MakeNormal(double* group, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - group[i]));
    const double angle = 2 * std::numbers::pi * group[i + 8];
    group[i] = std::fma(radius * std::cos(angle), std, mean);
    group[i + 8] = std::fma(radius * std::sin(angle), std, mean);
  }
}

void MakeNormal(float* group, double mean, double std) {
  Kernels().normal(group, kGroup, static_cast<float>(mean), static_cast<float>(std));
}

// Fills all complete groups; for the rest, the last 16 elements are drawn again.
template <typename T>
void FillGroups(T* data, std::int64_t size, double mean, double std, Generator& generator) {
  using Wide = Accumulator<T>;
  const auto uniform = [&]() -> Wide {
    if constexpr (std::is_same_v<Wide, double>) {
      return generator.UniformDouble();
    } else {
      return generator.UniformFloat();
    }
  };
  Wide group[kGroup];
  const auto make = [&](T* to) {
    MakeNormal(group, mean, std);
    for (std::int64_t i = 0; i < kGroup; ++i) to[i] = static_cast<T>(group[i]);
  };
  const std::int64_t whole = size / kGroup * kGroup;
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t i = 0; i < whole; ++i) data[i] = uniform();
    Kernels().normal(data, whole, static_cast<float>(mean), static_cast<float>(std));
  } else {
    for (std::int64_t first = 0; first < whole; first += kGroup) {
      for (Wide& value : group) value = uniform();
      make(data + first);
    }
  }
  if (size == whole) return;
  if constexpr (std::is_same_v<T, Wide>) {
    // PyTorch draws all numbers, including those of the last group, before it transforms any.
    for (std::int64_t i = whole; i < size; ++i) uniform();
  }
  for (Wide& value : group) value = uniform();
  make(data + size - kGroup);
}

// A complex tensor as a view with one more dim for real and imaginary parts; other tensors as they
// are.
TensorPtr AsReal(const Tensor& tensor) {
  if (!IsComplex(tensor.dtype())) return TensorPtr(new Tensor(tensor));
  const auto rank = static_cast<std::size_t>(tensor.rank());
  Scratch<std::int64_t> sizes(rank + 1), strides(rank + 1);
  for (std::size_t i = 0; i < rank; ++i) {
    sizes[i] = tensor.sizes()[i];
    strides[i] = 2 * tensor.strides()[i];
  }
  sizes[rank] = 2;
  strides[rank] = 1;
  tensor.storage().Retain();
  return TensorPtr(new Tensor(
      &tensor.storage(),
      tensor.dtype() == ScalarType::kComplex64 ? ScalarType::kFloat32 : ScalarType::kFloat64,
      Ints(sizes.data(), rank + 1), Ints(strides.data(), rank + 1), 2 * tensor.offset()));
}

void NormalNumbers(const Tensor& tensor, double mean, double std, Generator& generator) {
  DispatchFloating(tensor.dtype(), [&]<typename T>() {
    const std::lock_guard lock(generator.mutex());
    if (tensor.is_contiguous() && tensor.numel() >= kGroup) {
      FillGroups(tensor.data<T>(), tensor.numel(), mean, std, generator);
      return;
    }
    ForEachInMemory<T>(
        tensor, [&](T& value) { value = static_cast<T>(std::fma(generator.Normal(), std, mean)); });
  });
}

// Moves low and high to the nearest numbers in the range that T can represent.
template <typename T>
void NarrowToExact(std::int64_t* low, std::int64_t* high) {
  constexpr int kDigits = std::is_same_v<T, Half>       ? 11
                          : std::is_same_v<T, BFloat16> ? 8
                                                        : std::numeric_limits<T>::digits;
  const auto rounded = [](std::int64_t value) {
    return static_cast<std::int64_t>(static_cast<double>(static_cast<T>(value)));
  };
  const auto spacing = [](std::int64_t value) {
    const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
    return std::int64_t{1} << (63 - __builtin_clzll(magnitude | 1) - kDigits + 1);
  };
  if (*low < std::numeric_limits<std::int64_t>::max() && rounded(*low + 1) < *low) {
    *low = rounded(*low + 1) + spacing(*low + 1);
  }
  if (rounded(*high - 1) >= *high) *high = rounded(*high - 1) - spacing(*high - 1);
}

template <typename T, typename Value>
T FromBool(Value value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<T>(value ? 1.0f : 0.0f);
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

void VisitOffsetsInMemory(const Tensor& tensor, const void* body,
                          void (*visit)(const void* body, std::int64_t offset)) {
  const auto rank = static_cast<std::size_t>(tensor.rank());
  Scratch<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::int64_t left = tensor.strides()[a], right = tensor.strides()[b];
    return left != right ? left > right : a < b;
  });
  Scratch<std::int64_t> sizes(rank), strides(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    sizes[i] = tensor.sizes()[order[i]];
    strides[i] = tensor.strides()[order[i]];
  }
  ForEachOffset(Ints(sizes.data(), rank), {Ints(strides.data(), rank)},
                [&](const std::int64_t* offsets) { visit(body, offsets[0]); });
}

void FillIntegers(const Tensor& self, std::int64_t low, std::int64_t high, Generator& generator) {
  Require(low < high, "randint: low is ", low, ", must be less than high, which is ", high);
  DispatchReal(self.dtype(), [&]<typename T>() {
    using Limits = std::numeric_limits<
        std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>>;
    if constexpr (std::is_integral_v<T>) {
      Require(low >= static_cast<std::int64_t>(Limits::lowest()) &&
                  high - 1 <= static_cast<std::int64_t>(Limits::max()),
              "randint: ", low, "..", high - 1, " doesn't fit into ", NameOf(self.dtype()));
    } else {
      const double most = std::is_same_v<T, Half> ? 65504.0 : static_cast<double>(Limits::max());
      Require(static_cast<double>(low) >= -most && static_cast<double>(high - 1) <= most,
              "randint: ", low, "..", high - 1, " doesn't fit into ", NameOf(self.dtype()));
      const std::int64_t first = low, last = high - 1;
      NarrowToExact<T>(&low, &high);
      Require(low < high, "randint: ", NameOf(self.dtype()), " is too coarse for ", first, "..",
              last);
    }
    const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::lock_guard lock(generator.mutex());
    ForEachInMemory<T>(self, [&](T& value) {
      const std::uint64_t bits =
          range >= std::uint64_t{1} << 28 ? generator.Random64() : generator.Random();
      value =
          static_cast<T>(static_cast<std::int64_t>(bits % range + static_cast<std::uint64_t>(low)));
    });
  });
}

void FillUniform(const Tensor& self, double from, double to, Generator& generator) {
  Require(from <= to, "uniform: from is ", from, ", must be at most to, which is ", to);
  const TensorPtr real = AsReal(self);
  DispatchFloating(real->dtype(), [&]<typename T>() {
    using Wide = Accumulator<T>;
    const double most = std::is_same_v<T, double> ? std::numeric_limits<double>::max()
                                                  : std::numeric_limits<float>::max();
    Require(to - from <= most, "uniform: ", from, "..", to, " is too wide for ",
            NameOf(real->dtype()));
    const Wide first = static_cast<Wide>(from);
    const Wide width = static_cast<Wide>(to) - first;
    const T end = static_cast<T>(static_cast<Wide>(to));
    const std::lock_guard lock(generator.mutex());
    ForEachInMemory<T>(*real, [&](T& value) {
      Wide x;
      if constexpr (std::is_same_v<T, double>) {
        x = generator.UniformDouble();
      } else {
        x = generator.UniformFloat();
      }
      value = static_cast<T>(std::fma(x, width, first));
      if (value == end) value = static_cast<T>(first);
    });
  });
}

void FillNormal(const Tensor& self, double mean, double std, Generator& generator) {
  Require(std >= 0, "normal: std is ", std, ", must not be negative");
  // The real and the imaginary part share the variance.
  if (IsComplex(self.dtype())) std /= std::numbers::sqrt2;
  NormalNumbers(*AsReal(self), mean, std, generator);
}

void FillExponential(const Tensor& self, double rate, Generator& generator) {
  Require(rate > 0, "exponential: the rate is ", rate, ", must be positive");
  DispatchFloating(self.dtype(), [&]<typename T>() {
    const std::lock_guard lock(generator.mutex());
    ForEachInMemory<T>(self, [&](T& value) {
      value = static_cast<T>(-1.0 / rate * std::log1p(-generator.UniformDouble()));
    });
  });
}

void FillBernoulli(const Tensor& self, double p, Generator& generator) {
  Require(p >= 0 && p <= 1, "bernoulli: p is ", p, ", must be in 0..1");
  DispatchReal(self.dtype(), [&]<typename T>() {
    const std::lock_guard lock(generator.mutex());
    ForEachInMemory<T>(self, [&](T& value) { value = FromBool<T>(generator.UniformDouble() < p); });
  });
}

void FillBernoulli(const Tensor& self, const Tensor& p, Generator& generator) {
  Require(IsFloating(p.dtype()), "bernoulli: p is ", NameOf(p.dtype()),
          ", must be a floating-point dtype");
  // A copy in self's layout, so that one loop visits both in the same order.
  const TensorPtr own = EmptyStrided(p.dtype(), self.sizes(), self.strides());
  Copy(*own, p);
  DispatchFloating(p.dtype(), [&]<typename P>() {
    const auto check = [](double value) {
      Require(value >= 0 && value <= 1, "bernoulli: an element of p is ", value,
              ", must be in 0..1");
    };
    ForEachInMemory<P>(*own, [&](P& value) { check(static_cast<double>(value)); });
    DispatchReal(self.dtype(), [&]<typename T>() {
      const std::lock_guard lock(generator.mutex());
      const P* chances = own->data<P>();
      T* values = self.data<T>();
      ForEachOffsetInMemory(self, [&](std::int64_t offset) {
        bool hit;
        if constexpr (std::is_same_v<P, double>) {
          hit = generator.UniformDouble() < chances[offset];
        } else {
          hit = generator.UniformFloat() < static_cast<float>(chances[offset]);
        }
        values[offset] = FromBool<T>(hit);
      });
    });
  });
}

}  // namespace aoti::slim
