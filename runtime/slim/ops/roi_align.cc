// torchvision::roi_align: averages of bilinear samples in a grid over each box of an image.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

struct Problem {
  double scale;
  std::int64_t out_height, out_width;
  std::int64_t samples;  // along each dim of a cell; 0 or less: one for each pixel
  bool aligned;
};

// Where a sample lies along one dim: between the pixels `low` and `high`.
template <typename T>
struct Sample {
  std::int64_t low, high;
  T to_low, to_high;  // their shares
  bool inside;        // of the image; other samples are zero
};

// A box along one dim: where it begins, and the size of one of its cells.
template <typename T>
struct Extent {
  Extent(const Problem& p, T begin, T end, std::int64_t cells) {
    const T scale = static_cast<T>(p.scale), half = p.aligned ? static_cast<T>(0.5) : T(0);
    start = static_cast<T>(begin * scale - half);
    T length = static_cast<T>(static_cast<T>(end * scale - half) - start);
    if (!p.aligned) length = std::max(length, T(1));
    cell = static_cast<T>(length / static_cast<T>(cells));
    samples = p.samples > 0 ? p.samples : 0;
    if (samples == 0 && cell > T(0)) {
      const double pixels = std::ceil(static_cast<double>(cell));
      samples = static_cast<std::int64_t>(std::min(pixels, double{kMostSamples} + 1));
    }
    Require(samples <= kMostSamples, "roi_align: a box has more than ", kMostSamples,
            " samples along a dim of a cell");
  }

  static constexpr std::int64_t kMostSamples = 1 << 20;

  T start, cell;
  std::int64_t samples;  // of a cell
};

// The samples of a box along one dim, cell after cell.
template <typename T>
class Line {
 public:
  Line(const Extent<T>& extent, std::int64_t cells, std::int64_t pixels)
      : per_cell_(extent.samples), samples_(static_cast<std::size_t>(cells * extent.samples)) {
    const T count = static_cast<T>(per_cell_);
    for (std::int64_t i = 0; i < cells; ++i) {
      // The order of these operations, and their rounding to T, are torchvision's.
      const T begin =
          static_cast<T>(extent.start + static_cast<T>(static_cast<T>(i) * extent.cell));
      for (std::int64_t s = 0; s < per_cell_; ++s) {
        const T middle = static_cast<T>(static_cast<float>(s) + .5F);
        const T step = static_cast<T>(static_cast<T>(middle * extent.cell) / count);
        samples_[static_cast<std::size_t>(i * per_cell_ + s)] =
            SampleAt(static_cast<T>(begin + step), pixels);
      }
    }
  }

  std::int64_t per_cell() const { return per_cell_; }
  const Sample<T>* of(std::int64_t cell) const { return samples_.data() + cell * per_cell_; }

 private:
  static Sample<T> SampleAt(T at, std::int64_t pixels) {
    if (!(at >= T(-1) && at <= static_cast<T>(pixels))) return {0, 0, T(0), T(0), false};
    at = std::max(at, T(0));
    const auto low = static_cast<std::int64_t>(at);
    if (low >= pixels - 1) return {pixels - 1, pixels - 1, T(1), T(0), true};
    const T high_share = static_cast<T>(at - static_cast<T>(low));
    return {low, low + 1, static_cast<T>(T(1) - high_share), high_share, true};
  }

  std::int64_t per_cell_;
  Scratch<Sample<T>> samples_;
};

template <typename T>
T Average(const T* image, std::int64_t width, const Line<T>& rows, std::int64_t row,
          const Line<T>& columns, std::int64_t column) {
  T sum = T(0);
  for (std::int64_t i = 0; i < rows.per_cell(); ++i) {
    const Sample<T>& y = rows.of(row)[i];
    if (!y.inside) continue;
    const T *low = image + y.low * width, *high = image + y.high * width;
    for (std::int64_t j = 0; j < columns.per_cell(); ++j) {
      const Sample<T>& x = columns.of(column)[j];
      if (!x.inside) continue;
      sum += static_cast<T>(y.to_low * x.to_low) * low[x.low] +
             static_cast<T>(y.to_low * x.to_high) * low[x.high] +
             static_cast<T>(y.to_high * x.to_low) * high[x.low] +
             static_cast<T>(y.to_high * x.to_high) * high[x.high];
    }
  }
  const std::int64_t count = rows.per_cell() * columns.per_cell();
  return static_cast<T>(sum / static_cast<T>(std::max<std::int64_t>(count, 1)));
}

template <typename T>
void Run(const Problem& p, const Tensor& input, const Tensor& boxes, const Tensor& out) {
  const std::int64_t channels = input.size(1), height = input.size(2), width = input.size(3);
  const std::int64_t cells = p.out_height * p.out_width;
  const std::int64_t grain = 1024 / std::max<std::int64_t>(1, channels * cells) + 1;
  internal::ParallelFor(0, boxes.size(0), grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const T* box = boxes.data<T>() + 5 * b;
      const double image = static_cast<double>(box[0]);
      Require(image >= 0 && image < static_cast<double>(input.size(0)), "roi_align: box ", b,
              " is of image ", image, ", must be in 0..", input.size(0) - 1);
      const Line<T> rows(Extent<T>(p, box[2], box[4], p.out_height), p.out_height, height);
      const Line<T> columns(Extent<T>(p, box[1], box[3], p.out_width), p.out_width, width);
      const T* plane =
          input.data<T>() + static_cast<std::int64_t>(image) * channels * height * width;
      T* to = out.data<T>() + b * channels * cells;
      for (std::int64_t c = 0; c < channels; ++c, plane += height * width) {
        for (std::int64_t row = 0; row < p.out_height; ++row) {
          for (std::int64_t column = 0; column < p.out_width; ++column) {
            *to++ = Average(plane, width, rows, row, columns, column);
          }
        }
      }
    }
  });
}

TensorPtr RoiAlign(const Problem& p, const Tensor& input, const Tensor& boxes) {
  Require(input.rank() == 4, "roi_align: the input has ", input.rank(), " dims, must have 4");
  Require(boxes.rank() == 2 && boxes.size(1) == 5, "roi_align: the boxes have ", boxes.rank(),
          " dims, must have 2, and the second one must have size 5 (image, x1, y1, x2, y2)");
  Require(input.dtype() == boxes.dtype(), "roi_align: an input of ", NameOf(input.dtype()),
          " and boxes of ", NameOf(boxes.dtype()), ", must have the same dtype");
  Require(p.out_height >= 0 && p.out_width >= 0, "roi_align: the size of the result is [",
          p.out_height, ", ", p.out_width, "], must not be negative");
  TensorPtr out = Empty(input.dtype(), {boxes.size(0), input.size(1), p.out_height, p.out_width});
  if (out->numel() == 0) return out;
  Require(input.size(2) > 0 && input.size(3) > 0, "roi_align: the images are empty");
  const TensorPtr images = Contiguous(input), plain_boxes = Contiguous(boxes);
  DispatchFloating(input.dtype(), [&]<typename T>() {
    Require(input.dtype() != ScalarType::kBFloat16, "roi_align: not supported for bfloat16");
    Run<T>(p, *images, *plain_boxes, *out);
  });
  return out;
}

void RoiAlignOp(StableIValue* stack) {
  const TensorPtr input = TakeTensor(stack[0]);
  const TensorPtr boxes = TakeTensor(stack[1]);
  const Problem problem = {.scale = TakeFloat(stack[2]),
                           .out_height = TakeInt(stack[3]),
                           .out_width = TakeInt(stack[4]),
                           .samples = TakeInt(stack[5]),
                           .aligned = TakeBool(stack[6])};
  stack[0] = Give(RoiAlign(problem, *input, *boxes));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(torchvision_roi_align, "torchvision::roi_align", "", aoti::slim::RoiAlignOp)
