// embedding_bag: sums, means or maxima of rows of a table, bag after bag.

#include "runtime/slim/kernels/embedding.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

enum Mode : std::int64_t { kSum = 0, kMean = 1, kMax = 2 };

const EmbeddingKernels& Kernels() { return AOTI_SLIM_CURRENT_KERNELS(kEmbedding); }

struct Arguments {
  const Tensor* weight;
  const Tensor* indices;
  const Tensor* offsets;
  const Tensor* scale;  // per_sample_weights; may be null
  std::int64_t mode;
  std::int64_t padding;  // negative if there is none
  bool include_last_offset;
  bool forward_only;
};

void CheckShapes(const Arguments& a) {
  Require(a.weight->rank() == 2, "embedding_bag: weight has ", a.weight->rank(),
          " dims, must have 2");
  Require(IsFloating(a.weight->dtype()), "embedding_bag: weight is ", NameOf(a.weight->dtype()),
          ", must be a floating-point dtype");
  Require(a.indices->rank() == 1, "embedding_bag: indices have ", a.indices->rank(),
          " dims, must have 1");
  Require(a.offsets->rank() == 1, "embedding_bag: offsets have ", a.offsets->rank(),
          " dims, must have 1");
  Require(a.mode >= kSum && a.mode <= kMax, "embedding_bag: mode is ", a.mode,
          ", must be 0 (sum), 1 (mean) or 2 (max)");
  Require(!a.include_last_offset || a.offsets->size(0) > 0,
          "embedding_bag: there are no offsets, include_last_offset needs one at least");
  if (a.scale == nullptr) return;
  Require(a.mode == kSum, "embedding_bag: per_sample_weights are for mode 0 (sum), not mode ",
          a.mode);
  Require(a.scale->rank() == 1 && a.scale->size(0) == a.indices->size(0),
          "embedding_bag: there are ", a.scale->numel(), " per_sample_weights for ",
          a.indices->size(0), " indices");
  Require(a.scale->dtype() == a.weight->dtype(), "embedding_bag: per_sample_weights are ",
          NameOf(a.scale->dtype()), ", must be ", NameOf(a.weight->dtype()), " like the weight");
}

// A bag is indices[offset(bag)] .. indices[offset(bag + 1) - 1].
template <typename Index>
struct Bags {
  const Index* indices;
  const Index* offsets;
  std::int64_t index_count;
  std::int64_t count;
  bool include_last_offset;

  std::int64_t First(std::int64_t bag) const { return offsets[bag]; }
  // The last bag has all remaining indices...
  std::int64_t Last(std::int64_t bag) const {
    return bag + 1 < count ? offsets[bag + 1] : index_count;
  }
  // ...unless PyTorch would use its fast path for sums, which ends the bag at a last offset.
  std::int64_t LastSummed(std::int64_t bag, bool fast) const {
    return fast && include_last_offset ? offsets[bag + 1] : Last(bag);
  }
};

template <typename Index>
void CheckValues(const Arguments& a, const Bags<Index>& bags) {
  const std::int64_t offset_count = a.offsets->size(0);
  for (std::int64_t i = 0; i < offset_count; ++i) {
    const std::int64_t least = i == 0 ? 0 : bags.offsets[i - 1];
    const std::int64_t most = i == 0 ? 0 : bags.index_count;
    Require(bags.offsets[i] >= least && bags.offsets[i] <= most, "embedding_bag: offsets[", i,
            "] is ", bags.offsets[i], ", must be in ", least, "..", most);
  }
  const std::int64_t rows = a.weight->size(0);
  const std::int64_t used = bags.count == 0 ? 0 : bags.index_count;
  for (std::int64_t i = 0; i < used; ++i) {
    Require(bags.indices[i] >= 0 && bags.indices[i] < rows, "embedding_bag: indices[", i, "] is ",
            bags.indices[i], ", must be in 0..", rows - 1);
  }
}

template <typename T>
constexpr RowType kRowType = std::is_same_v<T, Half>       ? RowType::kHalf
                             : std::is_same_v<T, BFloat16> ? RowType::kBFloat16
                                                           : RowType::kFloat;

// Sums the rows of each bag, in the accumulator type of T.
template <typename T, typename Index>
class Summing {
 public:
  using Sum = Accumulator<T>;

  Summing(const Arguments& a, const Bags<Index>& bags, bool fast)
      : a_(a),
        bags_(bags),
        fast_(fast),
        kernels_(Kernels()),
        rows_(static_cast<std::size_t>(bags.index_count)),
        scales_(a.scale == nullptr ? 0 : static_cast<std::size_t>(bags.index_count)),
        sums_(static_cast<std::size_t>(a.weight->size(1))) {}

  // Writes the sum of bag `bag`, divided by `count` if `count` is greater than 1.
  void Run(std::int64_t bag, std::int64_t count, T* out) {
    std::int64_t rows = 0;
    const std::int64_t last = bags_.LastSummed(bag, fast_);
    for (std::int64_t i = bags_.First(bag); i < last; ++i) {
      if (bags_.indices[i] == a_.padding) continue;
      rows_[rows] = a_.weight->data<T>() + bags_.indices[i] * a_.weight->stride(0);
      if (a_.scale != nullptr) scales_[rows] = Sum(a_.scale->data<T>()[i * a_.scale->stride(0)]);
      ++rows;
    }
    SumRows(rows);
    const std::int64_t size = a_.weight->size(1);
    for (std::int64_t d = 0; d < size; ++d) {
      out[d] = static_cast<T>(sums_[d]);
      if (count > 1) out[d] = static_cast<T>(Sum(out[d]) / Sum(static_cast<T>(Sum(count))));
    }
  }

 private:
  void SumRows(std::int64_t rows) {
    const std::int64_t size = a_.weight->size(1);
    const std::int64_t stride = a_.weight->stride(1);
    const Sum* scales = a_.scale == nullptr ? nullptr : scales_.data();
    if constexpr (std::is_same_v<Sum, float>) {
      if (stride == 1) {
        kernels_.sum_rows(rows_.data(), scales, rows, kRowType<T>, sums_.data(), size);
        return;
      }
    }
    std::fill(sums_.begin(), sums_.end(), Sum{0});
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* row = static_cast<const T*>(rows_[i]);
      const Sum scale = scales == nullptr ? Sum{1} : scales[i];
      for (std::int64_t d = 0; d < size; ++d) sums_[d] += Sum(row[d * stride]) * scale;
    }
  }

  const Arguments& a_;
  const Bags<Index>& bags_;
  bool fast_;
  const EmbeddingKernels& kernels_;
  Scratch<const void*> rows_;
  Scratch<Sum> scales_;
  Scratch<Sum> sums_;
};

// The maxima of bag `bag`, and the index that each comes from. An empty bag gives 0 and 0.
template <typename T, typename Index>
void Maximum(const Arguments& a, const Bags<Index>& bags, std::int64_t bag, T* out, Index* from) {
  const std::int64_t size = a.weight->size(1);
  bool empty = true;
  std::fill_n(out, size, T(0));
  std::fill_n(from, size, Index{0});
  for (std::int64_t i = bags.First(bag); i < bags.Last(bag); ++i) {
    if (bags.indices[i] == a.padding) continue;
    const T* row = a.weight->data<T>() + bags.indices[i] * a.weight->stride(0);
    for (std::int64_t d = 0; d < size; ++d) {
      const T value = row[d * a.weight->stride(1)];
      if (empty || value > out[d]) {
        out[d] = value;
        from[d] = bags.indices[i];
      }
    }
    empty = false;
  }
}

struct Results {
  TensorPtr output, offset2bag, bag_size, max_indices;
};

template <typename T, typename Index>
void Fill(const Arguments& a, const Bags<Index>& bags, bool fast, const Results& results) {
  const std::int64_t size = a.weight->size(1);
  Index* counts = results.bag_size->data<Index>();
  const std::int64_t work = bags.index_count * size / std::max<std::int64_t>(bags.count, 1);
  const std::int64_t grain = 32768 / std::max<std::int64_t>(work, 1) + 1;
  internal::ParallelFor(0, bags.count, grain, [&](std::int64_t begin, std::int64_t end) {
    Summing<T, Index> summing(a, bags, fast);
    for (std::int64_t bag = begin; bag < end; ++bag) {
      T* out = results.output->data<T>() + bag * size;
      if (a.mode != kSum) {
        const Index* first = bags.indices + bags.First(bag);
        const Index* last = bags.indices + bags.Last(bag);
        counts[bag] = static_cast<Index>(last - first - std::count(first, last, a.padding));
      }
      if (a.mode == kMax) {
        Maximum<T>(a, bags, bag, out, results.max_indices->data<Index>() + bag * size);
      } else {
        summing.Run(bag, a.mode == kMean ? counts[bag] : 0, out);
      }
      if (results.offset2bag->numel() > 0) {
        std::fill(results.offset2bag->data<Index>() + bags.First(bag),
                  results.offset2bag->data<Index>() + bags.Last(bag), static_cast<Index>(bag));
      }
    }
  });
}

// Whether PyTorch would choose its faster kernel, whose results differ.
bool IsFast(const Arguments& a) {
  return a.weight->dtype() != ScalarType::kFloat64 && a.weight->stride(1) == 1 && a.padding < 0 &&
         (a.scale == nullptr || a.scale->stride(0) == 1);
}

Results EmbeddingBag(Arguments a) {
  CheckShapes(a);
  const bool wide =
      a.indices->dtype() == ScalarType::kInt64 || a.offsets->dtype() == ScalarType::kInt64;
  DispatchIndex(a.indices->dtype(), []<typename>() {});
  DispatchIndex(a.offsets->dtype(), []<typename>() {});
  const ScalarType index_type = wide ? ScalarType::kInt64 : ScalarType::kInt32;
  const TensorPtr indices = Converted(*a.indices, index_type);
  const TensorPtr offsets = Converted(*a.offsets, index_type);

  const bool fast = IsFast(a);
  const std::int64_t all_offsets = offsets->size(0);
  const std::int64_t count = all_offsets - (a.include_last_offset ? 1 : 0);
  const std::int64_t sizes = a.forward_only && a.mode == kSum ? all_offsets : count;
  Results results;
  results.output = Empty(a.weight->dtype(), {count, a.weight->size(1)});
  results.offset2bag = Empty(index_type, {a.mode == kSum && fast ? 0 : indices->size(0)});
  results.bag_size = Empty(index_type, {sizes});
  std::memset(results.bag_size->data(), 0, static_cast<std::size_t>(sizes) * SizeOf(index_type));
  if (results.offset2bag->numel() > 0) {
    std::memset(results.offset2bag->data(), 0,
                static_cast<std::size_t>(indices->size(0)) * SizeOf(index_type));
  }
  if (a.mode == kMax) results.max_indices = Empty(index_type, {count, a.weight->size(1)});
  DispatchIndex(index_type, [&]<typename Index>() {
    const Bags<Index> bags = {indices->data<Index>(), offsets->data<Index>(), indices->size(0),
                              count, a.include_last_offset};
    CheckValues(a, bags);
    DispatchFloating(a.weight->dtype(),
                     [&]<typename T>() { Fill<T, Index>(a, bags, fast, results); });
  });
  if (a.mode != kMax) {
    results.max_indices = Empty(index_type, {sizes});
    Copy(*results.max_indices, *results.bag_size);
  }
  return results;
}

}  // namespace
}  // namespace aoti::slim

using namespace aoti::slim;

extern "C" {

AOTITorchError aoti_torch_cpu__embedding_bag(AtenTensorHandle weight, AtenTensorHandle indices,
                                             AtenTensorHandle offsets, int32_t, int64_t mode,
                                             int32_t, AtenTensorHandle* per_sample_weights,
                                             int32_t include_last_offset, int64_t padding_idx,
                                             AtenTensorHandle* ret0, AtenTensorHandle* ret1,
                                             AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return Guarded([&] {
    Results results = EmbeddingBag({weight, indices, offsets,
                                    per_sample_weights == nullptr ? nullptr : *per_sample_weights,
                                    mode, padding_idx, include_last_offset != 0, false});
    *ret0 = results.output.release();
    *ret1 = results.offset2bag.release();
    *ret2 = results.bag_size.release();
    *ret3 = results.max_indices.release();
  });
}

AOTITorchError aoti_torch_cpu__embedding_bag_forward_only(
    AtenTensorHandle weight, AtenTensorHandle indices, AtenTensorHandle offsets, int32_t,
    int64_t mode, int32_t, AtenTensorHandle* per_sample_weights, int32_t include_last_offset,
    int64_t padding_idx, AtenTensorHandle* ret0, AtenTensorHandle* ret1, AtenTensorHandle* ret2,
    AtenTensorHandle* ret3) {
  return Guarded([&] {
    Results results = EmbeddingBag({weight, indices, offsets,
                                    per_sample_weights == nullptr ? nullptr : *per_sample_weights,
                                    mode, padding_idx, include_last_offset != 0, true});
    *ret0 = results.output.release();
    *ret1 = results.offset2bag.release();
    *ret2 = results.bag_size.release();
    *ret3 = results.max_indices.release();
  });
}

}  // extern "C"
