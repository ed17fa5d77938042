// aten::grid_sampler_3d: the values of a volume at given points. (Inductor writes a kernel for the
// 2d version.)

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

enum Interpolation { kBilinear, kNearest };
enum Padding { kZeros, kBorder, kReflection };

// Reflects `at` at the bounds until it is in low..high. Both bounds are given doubled.
template <typename Number>
Number Reflect(Number at, std::int64_t twice_low, std::int64_t twice_high) {
  if (twice_low == twice_high) return 0;
  const Number low = static_cast<Number>(twice_low) / 2;
  const Number span = static_cast<Number>(twice_high - twice_low) / 2;
  const Number distance = std::fabs(at - low);
  const Number rest = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), Number(2)) == 0;
  return even ? rest + low : span - rest + low;
}

// Converts a coordinate in -1..1 to a position in the volume.
template <typename Number>
Number Position(Number at, std::int64_t size, Padding padding, bool align_corners) {
  const auto sized = static_cast<Number>(size);
  at = align_corners ? (at + 1) / 2 * (sized - 1) : ((at + 1) * sized - 1) / 2;
  if (padding == kReflection) {
    at = align_corners ? Reflect<Number>(at, 0, 2 * (size - 1))
                       : Reflect<Number>(at, -1, 2 * size - 1);
  }
  // In this order, a NaN results in the last position.
  if (padding != kZeros) at = std::min(sized - 1, std::max(at, Number(0)));
  // Beyond this distance, a point reads nothing of the volume.
  constexpr Number kFar = 1 << 30;
  return at > -kFar && at < kFar ? at : Number(-100);
}

struct Sampler {
  const Tensor& input;
  const Tensor& grid;
  const Tensor& output;
  Interpolation interpolation;
  Padding padding;
  bool align_corners;

  // Computes the value of all channels at one point.
  template <typename T>
  void Sample(const T* from, const T* point, T* to) const {
    using Number = Accumulator<T>;
    std::int64_t low[3];
    Number part[3];  // the weight of the upper neighbour
    for (int d = 0; d < 3; ++d) {
      // A point is given as x, y, z: width, height, depth.
      const auto given = static_cast<Number>(point[(2 - d) * grid.stride(4)]);
      const Number at = Position(given, input.size(d + 2), padding, align_corners);
      const Number base = interpolation == kNearest ? std::nearbyint(at) : std::floor(at);
      low[d] = static_cast<std::int64_t>(base);
      part[d] = interpolation == kNearest ? Number(0) : at - base;
    }
    std::int64_t offsets[8];
    Number weights[8];
    int count = 0;
    for (int corner = 0; corner < (interpolation == kNearest ? 1 : 8); ++corner) {
      std::int64_t offset = 0;
      Number weight = 1;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int upper = corner >> (2 - d) & 1;
        const std::int64_t at = low[d] + upper;
        inside = inside && at >= 0 && at < input.size(d + 2);
        offset += at * input.stride(d + 2);
        weight *= upper != 0 ? part[d] : 1 - part[d];
      }
      if (!inside) continue;
      offsets[count] = offset;
      weights[count++] = weight;
    }
    for (std::int64_t c = 0; c < input.size(1); ++c) {
      Number sum = 0;
      for (int i = 0; i < count; ++i) {
        sum += static_cast<Number>(from[offsets[i] + c * input.stride(1)]) * weights[i];
      }
      to[c * output.stride(1)] = static_cast<T>(sum);
    }
  }

  template <typename T>
  void Run() const {
    const std::int64_t rows = output.size(0) * output.size(2) * output.size(3);
    internal::ParallelFor(0, rows, 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const std::int64_t h = row % output.size(3);
        const std::int64_t d = row / output.size(3) % output.size(2);
        const std::int64_t n = row / output.size(3) / output.size(2);
        const T* point =
            grid.data<T>() + n * grid.stride(0) + d * grid.stride(1) + h * grid.stride(2);
        T* to =
            output.data<T>() + n * output.stride(0) + d * output.stride(2) + h * output.stride(3);
        for (std::int64_t w = 0; w < output.size(4); ++w) {
          Sample(input.data<T>() + n * input.stride(0), point + w * grid.stride(3),
                 to + w * output.stride(4));
        }
      }
    });
  }
};

TensorPtr GridSampler3d(const Tensor& input, const Tensor& grid, std::int64_t interpolation,
                        std::int64_t padding, bool align_corners) {
  Require(input.rank() == 5 && grid.rank() == 5, "grid_sampler_3d: input and grid have ",
          input.rank(), " and ", grid.rank(), " dims, must have 5");
  Require(input.dtype() == grid.dtype(), "grid_sampler_3d: input is ", NameOf(input.dtype()),
          ", grid is ", NameOf(grid.dtype()), "; must be the same");
  Require(input.size(0) == grid.size(0), "grid_sampler_3d: input has a batch of ", input.size(0),
          ", grid one of ", grid.size(0));
  Require(grid.size(4) == 3, "grid_sampler_3d: points of the grid have ", grid.size(4),
          " numbers, must have 3");
  Require(interpolation == kBilinear || interpolation == kNearest,
          "grid_sampler_3d: interpolation mode ", interpolation, " is unknown, must be 0 or 1");
  Require(padding >= kZeros && padding <= kReflection, "grid_sampler_3d: padding mode ", padding,
          " is unknown, must be 0, 1 or 2");
  for (int d = 2; d < 5; ++d) Require(input.size(d) > 0, "grid_sampler_3d: the volume is empty");
  TensorPtr output = Empty(
      input.dtype(), {input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)});
  const Sampler sampler = {input,
                           grid,
                           *output,
                           static_cast<Interpolation>(interpolation),
                           static_cast<Padding>(padding),
                           align_corners};
  DispatchFloating(input.dtype(), [&]<typename T>() { sampler.Run<T>(); });
  return output;
}

}  // namespace
}  // namespace aoti::slim

extern "C" AOTITorchError aoti_torch_cpu_grid_sampler_3d(
    AtenTensorHandle input, AtenTensorHandle grid, int64_t interpolation_mode, int64_t padding_mode,
    int32_t align_corners, AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    *ret0 = GridSampler3d(*input, *grid, interpolation_mode, padding_mode, align_corners != 0)
                .release();
  });
}
