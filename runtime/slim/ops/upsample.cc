// Resampling of images with antialiasing, as torchvision's Resize does it. (Inductor writes kernels
// for all other modes of torch.nn.functional.interpolate.)

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/memory_format.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

struct Filter {
  double reach;  // the function is nonzero in -reach..reach
  double (*weight)(double x);
};

double Triangle(double x) { return std::max(1 - std::fabs(x), 0.0); }

// The cubic convolution kernel (Keys) with a = -0.5.
double Cubic(double x) {
  x = std::fabs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return -0.5 * (((x - 5) * x + 8) * x - 4);
  return 0;
}

constexpr Filter kBilinear = {1, Triangle};
constexpr Filter kBicubic = {2, Cubic};

// For each position of the output along one dim: the positions of the input that it reads, and
// their weights.
class Weights {
 public:
  Weights(const Filter& filter, std::int64_t in, std::int64_t out, bool align_corners,
          std::optional<double> given)
      : scale_(Scale(in, out, align_corners, given)),
        reach_(filter.reach * std::max(scale_, 1.0)),
        most_(std::min(static_cast<std::int64_t>(std::min(std::ceil(reach_), 1e9)) * 2 + 1, in)),
        first_(static_cast<std::size_t>(out)),
        count_(static_cast<std::size_t>(out)),
        weights_(static_cast<std::size_t>(out * most_)) {
    for (std::int64_t o = 0; o < out; ++o) Fill(filter, in, o);
  }

  // Rounds the weights as PyTorch does for bytes, so that results are equal to the last bit: the
  // greatest weight fits into 15 bits, and all have the same number of binary places.
  void RoundTo15Bits() {
    double most = 0;
    for (std::size_t o = 0; o < first_.size(); ++o) {
      const double* weights = weights_.data() + static_cast<std::int64_t>(o) * most_;
      for (std::int64_t i = 0; i < count_[o]; ++i) most = std::max(most, weights[i]);
    }
    double unit = 1;
    for (int bits = 0; bits < 22 && std::floor(0.5 + most * unit * 2) < 32768; ++bits) unit *= 2;
    for (std::size_t o = 0; o < first_.size(); ++o) {
      double* weights = weights_.data() + static_cast<std::int64_t>(o) * most_;
      for (std::int64_t i = 0; i < count_[o]; ++i) {
        weights[i] = std::round(weights[i] * unit) / unit;
      }
    }
  }

  std::int64_t first(std::int64_t o) const { return first_[static_cast<std::size_t>(o)]; }
  std::int64_t count(std::int64_t o) const { return count_[static_cast<std::size_t>(o)]; }
  const double* weights(std::int64_t o) const { return weights_.data() + o * most_; }

 private:
  static double Scale(std::int64_t in, std::int64_t out, bool align_corners,
                      std::optional<double> given) {
    if (align_corners) {
      return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    }
    if (given && *given > 0) {
      Require(1 / *given < 0x1p40, "upsample: a scale is ", *given, ", too small");
      return 1 / *given;
    }
    return static_cast<double>(in) / static_cast<double>(out);
  }

  void Fill(const Filter& filter, std::int64_t in, std::int64_t o) {
    const double center = scale_ * (static_cast<double>(o) + 0.5);
    // A given scale may lead far outside the image.
    const double limit = static_cast<double>(in);
    const auto first = static_cast<std::int64_t>(std::clamp(center - reach_ + 0.5, 0.0, limit));
    const auto last = static_cast<std::int64_t>(std::clamp(center + reach_ + 0.5, 0.0, limit));
    const std::int64_t count = std::clamp<std::int64_t>(last - first, 0, most_);
    const double narrow = scale_ >= 1 ? 1 / scale_ : 1;
    double* weights = weights_.data() + o * most_;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      weights[i] = filter.weight((static_cast<double>(i + first) - center + 0.5) * narrow);
      sum += weights[i];
    }
    for (std::int64_t i = 0; i < count && sum != 0; ++i) weights[i] /= sum;
    first_[static_cast<std::size_t>(o)] = first;
    count_[static_cast<std::size_t>(o)] = count;
  }

  double scale_;
  double reach_;
  std::int64_t most_;
  Scratch<std::int64_t> first_;
  Scratch<std::int64_t> count_;
  Scratch<double> weights_;
};

template <typename T>
T Rounded(double value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<T>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  } else {
    return static_cast<T>(value);
  }
}

// Resamples the rows and then the columns of each channel's image.
template <typename T>
void Resample(const Tensor& self, const Tensor& result, const Weights& height,
              const Weights& width) {
  const std::int64_t channels = self.size(1);
  const std::int64_t rows = self.size(2);
  const std::int64_t out_rows = result.size(2);
  const std::int64_t out_columns = result.size(3);
  internal::ParallelFor(0, self.size(0) * channels, 1, [&](std::int64_t first, std::int64_t last) {
    Scratch<double> narrow(static_cast<std::size_t>(rows * out_columns));
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t n = plane / channels;
      const std::int64_t c = plane % channels;
      const T* from = self.data<T>() + n * self.stride(0) + c * self.stride(1);
      T* to = result.data<T>() + n * result.stride(0) + c * result.stride(1);
      for (std::int64_t y = 0; y < rows; ++y) {
        for (std::int64_t x = 0; x < out_columns; ++x) {
          const T* seen = from + y * self.stride(2) + width.first(x) * self.stride(3);
          double sum = 0;
          for (std::int64_t i = 0; i < width.count(x); ++i) {
            sum += width.weights(x)[i] * static_cast<double>(seen[i * self.stride(3)]);
          }
          narrow[static_cast<std::size_t>(y * out_columns + x)] = Rounded<T>(sum);
        }
      }
      for (std::int64_t y = 0; y < out_rows; ++y) {
        for (std::int64_t x = 0; x < out_columns; ++x) {
          const double* seen = narrow.data() + height.first(y) * out_columns + x;
          double sum = 0;
          for (std::int64_t i = 0; i < height.count(y); ++i) {
            sum += height.weights(y)[i] * seen[i * out_columns];
          }
          to[y * result.stride(2) + x * result.stride(3)] = Rounded<T>(sum);
        }
      }
    }
  });
}

TensorPtr Upsample(const char* name, const Filter& filter, const Tensor& self, Ints output_size,
                   bool align_corners, std::optional<double> scale_height,
                   std::optional<double> scale_width) {
  Require(self.rank() == 4, name, ": the input has ", self.rank(), " dims, must have 4");
  Require(output_size.size() == 2, name, ": output_size has ", output_size.size(),
          " numbers, must have 2");
  for (std::size_t d = 0; d < 2; ++d) {
    Require(output_size[d] > 0, name, ": output_size is ", output_size[d], ", must be positive");
    Require(self.size(static_cast<std::int64_t>(d) + 2) > 0, name, ": the image is empty");
  }
  Require(self.size(1) > 0, name, ": the image has no channels");
  const ScalarType dtype = self.dtype();
  Require(
      dtype == ScalarType::kFloat32 || dtype == ScalarType::kFloat64 || dtype == ScalarType::kUInt8,
      name, ": dtype ", NameOf(dtype), " is not supported, float32, float64 and uint8 are");
  const std::int64_t height = output_size[0];
  const std::int64_t width = output_size[1];
  const std::int64_t channels = self.size(1);
  const std::int64_t sizes[] = {self.size(0), channels, height, width};
  const std::int64_t row = CheckedProduct(channels, width);
  const std::int64_t last[] = {CheckedProduct(row, height), 1, row, channels};
  TensorPtr result =
      LooksChannelsLast(self) ? EmptyStrided(dtype, sizes, last) : Empty(dtype, Ints(sizes));
  Weights rows(filter, self.size(2), height, align_corners, scale_height);
  Weights columns(filter, self.size(3), width, align_corners, scale_width);
  if (dtype == ScalarType::kUInt8) {
    rows.RoundTo15Bits();
    columns.RoundTo15Bits();
    Resample<std::uint8_t>(self, *result, rows, columns);
  } else if (dtype == ScalarType::kFloat32) {
    Resample<float>(self, *result, rows, columns);
  } else {
    Resample<double>(self, *result, rows, columns);
  }
  return result;
}

void Upsample(const char* name, const Filter& filter, StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TakenList output_size(stack[1]);
  const bool align_corners = TakeBool(stack[2]);
  const std::optional<double> height = TakeOptionalFloat(stack[3]);
  const std::optional<double> width = TakeOptionalFloat(stack[4]);
  stack[0] = Give(Upsample(name, filter, *self, output_size.ints(), align_corners, height, width));
}

void UpsampleBilinear2dAa(StableIValue* stack) {
  Upsample("_upsample_bilinear2d_aa", kBilinear, stack);
}

void UpsampleBicubic2dAa(StableIValue* stack) {
  Upsample("_upsample_bicubic2d_aa", kBicubic, stack);
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__upsample_bilinear2d_aa, "aten::_upsample_bilinear2d_aa", "",
                        aoti::slim::UpsampleBilinear2dAa)
AOTI_SLIM_DISPATCHER_OP(aten__upsample_bicubic2d_aa, "aten::_upsample_bicubic2d_aa", "",
                        aoti::slim::UpsampleBicubic2dAa)
