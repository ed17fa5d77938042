// Loops over the elements of several tensors of the same sizes, split over threads.

#ifndef AOTI_RUNTIME_SLIM_OPS_LOOPS_H_
#define AOTI_RUNTIME_SLIM_OPS_LOOPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

inline constexpr std::size_t kMaxRank = 64;

// With fewer elements, a second thread does not pay off.
inline constexpr std::int64_t kGrain = 32768;

enum class Order {
  kRowMajor,  // each thread visits its elements in row-major order
  kAny,       // elements are visited in the order of the first tensor's memory
};

// The dims of N tensors without dims of size 1; dims that are adjacent in all tensors are merged.
template <std::size_t N>
class LoopPlan {
 public:
  LoopPlan(Ints sizes, const Ints (&strides)[N], Order order) {
    Require(sizes.size() <= kMaxRank, "a tensor has ", sizes.size(), " dims, at most ", kMaxRank,
            " are supported");
    std::size_t dims[kMaxRank];
    std::size_t count = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      total_ *= sizes[d];
      if (sizes[d] != 1) dims[count++] = d;
    }
    if (order == Order::kAny) {
      const Ints& key = strides[0];
      for (std::size_t i = 1; i < count;
           ++i) {  // a stable sort; the dims are nearly always sorted already
        for (std::size_t j = i; j > 0 && key[dims[j - 1]] < key[dims[j]]; --j) {
          std::swap(dims[j - 1], dims[j]);
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) Append(sizes[dims[i]], strides, dims[i]);
    if (rank_ == 0) {
      rank_ = 1;
      size_[0] = 1;
      for (std::size_t t = 0; t < N; ++t) stride_[t][0] = 0;
    }
  }

  std::int64_t total() const { return total_; }
  std::int64_t inner() const { return size_[rank_ - 1]; }

  // Visits the elements first..last, in runs along the innermost dim: body(offsets, count, steps).
  template <typename Body>
  void Walk(std::int64_t first, std::int64_t last, const Body& body) const {
    std::int64_t position[kMaxRank];
    std::int64_t offsets[N] = {};
    std::int64_t steps[N];
    std::int64_t rest = first;
    for (std::size_t d = rank_; d-- > 0;) {
      position[d] = rest % size_[d];
      rest /= size_[d];
      for (std::size_t t = 0; t < N; ++t) offsets[t] += position[d] * stride_[t][d];
    }
    const std::size_t inner = rank_ - 1;
    for (std::size_t t = 0; t < N; ++t) steps[t] = stride_[t][inner];
    for (std::int64_t at = first;;) {
      const std::int64_t count = std::min(size_[inner] - position[inner], last - at);
      body(static_cast<const std::int64_t*>(offsets), count,
           static_cast<const std::int64_t*>(steps));
      at += count;
      if (at >= last) return;
      for (std::size_t t = 0; t < N; ++t) offsets[t] -= position[inner] * steps[t];
      position[inner] = 0;
      for (std::size_t d = inner; d-- > 0;) {
        for (std::size_t t = 0; t < N; ++t) offsets[t] += stride_[t][d];
        if (++position[d] < size_[d]) break;
        for (std::size_t t = 0; t < N; ++t) offsets[t] -= size_[d] * stride_[t][d];
        position[d] = 0;
      }
    }
  }

 private:
  void Append(std::int64_t size, const Ints (&strides)[N], std::size_t d) {
    bool merge = rank_ > 0;
    for (std::size_t t = 0; t < N && merge; ++t) {
      merge = stride_[t][rank_ - 1] == strides[t][d] * size;
    }
    if (!merge) size_[rank_++] = 1;
    size_[rank_ - 1] *= size;
    for (std::size_t t = 0; t < N; ++t) stride_[t][rank_ - 1] = strides[t][d];
  }

  std::size_t rank_ = 0;
  std::int64_t total_ = 1;
  std::int64_t size_[kMaxRank];
  std::int64_t stride_[N][kMaxRank];
};

// A type-erased function of a run, so that the loops around it are compiled only once.
class RunBody {
 public:
  template <typename Body>
  explicit RunBody(const Body& body)
      : body_(&body),
        call_([](const void* self, const std::int64_t* offsets, std::int64_t count,
                 const std::int64_t* steps) {
          (*static_cast<const Body*>(self))(offsets, count, steps);
        }) {}
  void operator()(const std::int64_t* offsets, std::int64_t count,
                  const std::int64_t* steps) const {
    call_(body_, offsets, count, steps);
  }

 private:
  const void* body_;
  void (*call_)(const void*, const std::int64_t*, std::int64_t, const std::int64_t*);
};

template <std::size_t N>
[[gnu::noinline]] void WalkRuns(Ints sizes, const Ints (&strides)[N], Order order,
                                std::int64_t grain, const RunBody& body) {
  const LoopPlan<N> plan(sizes, strides, order);
  internal::ParallelFor(0, plan.total(), grain, [&](std::int64_t first, std::int64_t last) {
    plan.Walk(first, last, body);
  });
}

// Calls body(const int64* offsets, int64 count, const int64* steps) for runs of `count` elements.
// In tensor t, a run begins at element offsets[t] and has the stride steps[t].
template <std::size_t N, typename Body>
void ForEachRun(Ints sizes, const Ints (&strides)[N], Order order, std::int64_t grain,
                const Body& body) {
  WalkRuns(sizes, strides, order, grain, RunBody(body));
}

// Sizes with the size of one dim replaced; a tensor of rank 0 has no size to replace.
class SizesWith {
 public:
  SizesWith(Ints sizes, std::int64_t dim, std::int64_t size) : rank_(sizes.size()) {
    Require(rank_ <= kMaxRank, "a tensor has ", rank_, " dims, at most ", kMaxRank,
            " are supported");
    std::copy(sizes.begin(), sizes.end(), values_);
    if (rank_ > 0) values_[dim] = size;
  }
  operator Ints() const { return {values_, rank_}; }  // NOLINT: as good as the sizes themselves

 private:
  std::size_t rank_;
  std::int64_t values_[kMaxRank];
};

// The number of lines of `size` elements that justifies another thread.
inline std::int64_t LineGrain(std::int64_t size) {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(size, 1));
}

template <std::size_t N>
[[gnu::noinline]] void WalkRunsAlong(Ints sizes, const Ints (&strides)[N], std::int64_t axis,
                                     const RunBody& body) {
  const auto walk = [&](Ints part, std::int64_t first) {
    const LoopPlan<N> plan(part, strides, Order::kRowMajor);
    if (plan.total() == 0) return;
    std::int64_t start[N] = {};
    for (std::size_t t = 0; t < N && axis >= 0; ++t) {
      start[t] = first * strides[t][static_cast<std::size_t>(axis)];
    }
    plan.Walk(0, plan.total(),
              [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                std::int64_t at[N];
                for (std::size_t t = 0; t < N; ++t) at[t] = start[t] + offsets[t];
                body(at, count, steps);
              });
  };
  if (axis < 0) return walk(sizes, 0);
  const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
  const std::int64_t each = NumElements(sizes) / std::max<std::int64_t>(size, 1);
  internal::ParallelFor(0, size, LineGrain(each), [&](std::int64_t first, std::int64_t last) {
    walk(SizesWith(sizes, axis, last - first), first);
  });
}

// Like ForEachRun in row-major order, but split along one dim only (-1: not at all): for bodies
// that may write to an element more than once, but never from two positions along that dim.
template <std::size_t N, typename Body>
void ForEachRunAlong(Ints sizes, const Ints (&strides)[N], std::int64_t axis, const Body& body) {
  WalkRunsAlong(sizes, strides, axis, RunBody(body));
}

// Size and stride along a dim; a tensor of rank 0 counts as a line of one element.
inline std::int64_t SizeAt(const Tensor& tensor, std::int64_t dim) {
  return tensor.rank() == 0 ? 1 : tensor.size(dim);
}
inline std::int64_t StrideAt(const Tensor& tensor, std::int64_t dim) {
  return tensor.rank() == 0 ? 0 : tensor.stride(dim);
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_LOOPS_H_
