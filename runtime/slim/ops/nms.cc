// torchvision::nms: keeps the boxes that overlap with no better one.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// The boxes in order of their scores, the best first. NaN counts as the best score.
template <typename T>
void SortByScore(const T* scores, std::int64_t* order, std::int64_t count) {
  std::iota(order, order + count, std::int64_t{0});
  std::sort(order, order + count, [&](std::int64_t a, std::int64_t b) {
    const bool first_nan = std::isnan(scores[a]), second_nan = std::isnan(scores[b]);
    if (first_nan != second_nan) return first_nan;
    if (!first_nan && scores[a] != scores[b]) return scores[a] > scores[b];
    return a < b;  // equal scores stay in order
  });
}

template <typename T>
struct Boxes {
  explicit Boxes(const Tensor& boxes) : data(boxes.data<T>()) {}
  T Area(std::int64_t i) const {
    const T* b = data + 4 * i;
    return (b[2] - b[0]) * (b[3] - b[1]);
  }
  T Intersection(std::int64_t i, std::int64_t j) const {
    const T *a = data + 4 * i, *b = data + 4 * j;
    const T width = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
    const T height = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
    return width * height;
  }
  const T* data;  // x1, y1, x2, y2 of each
};

// Writes the indices of the kept boxes, the best first, to `kept`; returns their number.
template <typename T>
std::int64_t Keep(const Tensor& tensor, const T* scores, double threshold, std::int64_t* kept) {
  const Boxes<T> boxes(tensor);
  const std::int64_t count = tensor.size(0);
  Scratch<std::int64_t> order(static_cast<std::size_t>(count));
  Scratch<T> areas(static_cast<std::size_t>(count));
  SortByScore(scores, order.data(), count);
  for (std::int64_t i = 0; i < count; ++i) areas[static_cast<std::size_t>(i)] = boxes.Area(i);
  std::int64_t left = count, found = 0;
  while (left > 0) {
    const std::int64_t best = order[0];
    kept[found++] = best;
    std::int64_t next = 0;
    for (std::int64_t at = 1; at < left; ++at) {
      const std::int64_t other = order[static_cast<std::size_t>(at)];
      const T shared = boxes.Intersection(best, other);
      const T overlap = shared / (areas[static_cast<std::size_t>(best)] +
                                  areas[static_cast<std::size_t>(other)] - shared);
      // Written so that boxes without an area, whose overlap is NaN, stay.
      if (!(static_cast<double>(overlap) > threshold)) {
        order[static_cast<std::size_t>(next++)] = other;
      }
    }
    left = next;
  }
  return found;
}

TensorPtr Nms(const Tensor& boxes, const Tensor& scores, double threshold) {
  Require(boxes.rank() == 2 && boxes.size(1) == 4, "nms: the boxes have ", boxes.rank(),
          " dims, must have 2, and the second one must have size 4");
  Require(scores.rank() == 1, "nms: the scores have ", scores.rank(), " dims, must have 1");
  const std::int64_t count = boxes.size(0);
  Require(scores.size(0) == count, "nms: ", count, " boxes and ", scores.size(0), " scores");
  Require(boxes.dtype() == scores.dtype(), "nms: boxes of ", NameOf(boxes.dtype()),
          " and scores of ", NameOf(scores.dtype()), ", must have the same dtype");
  const bool wide = boxes.dtype() == ScalarType::kFloat64;
  Require(wide || boxes.dtype() == ScalarType::kFloat32, "nms: boxes of ", NameOf(boxes.dtype()),
          ", must be float32 or float64");
  const TensorPtr plain_boxes = Contiguous(boxes), plain_scores = Contiguous(scores);
  Scratch<std::int64_t> kept(static_cast<std::size_t>(count));
  const std::int64_t found =
      wide ? Keep(*plain_boxes, plain_scores->data<double>(), threshold, kept.data())
           : Keep(*plain_boxes, plain_scores->data<float>(), threshold, kept.data());
  TensorPtr result = Empty(ScalarType::kInt64, {found});
  std::copy_n(kept.data(), found, result->data<std::int64_t>());
  return result;
}

void NmsOp(StableIValue* stack) {
  const TensorPtr boxes = TakeTensor(stack[0]);
  const TensorPtr scores = TakeTensor(stack[1]);
  const double threshold = TakeFloat(stack[2]);
  stack[0] = Give(Nms(*boxes, *scores, threshold));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(torchvision_nms, "torchvision::nms", "", aoti::slim::NmsOp)
