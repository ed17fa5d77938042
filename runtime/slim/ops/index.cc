// index (gather by several index tensors) and index_put.

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/indexing.h"
#include "runtime/slim/ops/loops.h"
#include "runtime/slim/ops/nonzero.h"

namespace aoti::slim {
namespace {

// Index tensors, one per dim of `self`; null selects the whole dim.
class Indices {
 public:
  // given[i] is null for a missing index.
  Indices(const Tensor& self, const Tensor* const* given, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) Append(self, given[i]);
    rank_ = self.rank();
    Require(used_ <= rank_, "index: indices for ", used_, " dims, self has ", rank_);
  }

  const Tensor* operator[](std::int64_t dim) const {
    return dim < used_ ? tensors_[dim].get() : nullptr;
  }

 private:
  void Append(const Tensor& self, const Tensor* index) {
    if (index == nullptr) return Append(TensorPtr());
    switch (index->dtype()) {
      case ScalarType::kInt64:
        return Append(TensorPtr(new Tensor(*index)));
      case ScalarType::kInt32:
        return Append(Converted(*index, ScalarType::kInt64));
      case ScalarType::kBool:
      case ScalarType::kUInt8:
        break;
      default:
        throw OpError(StrCat("index: an index is ", NameOf(index->dtype()),
                             ", must be int64, int32 or bool"));
    }
    // A mask selects the positions where it is true.
    for (std::int64_t d = 0; d < index->rank(); ++d) {
      const std::int64_t dim = used_ + d;
      Require(dim < self.rank() && index->size(d) == self.size(dim), "index: a mask is of size ",
              index->size(d), " in dim ", d, ", must be ", dim < self.rank() ? self.size(dim) : 0,
              " as self is in dim ", dim);
    }
    const TensorPtr places = NonZero(*index);
    for (std::int64_t d = 0; d < index->rank(); ++d) {
      const std::int64_t size = places->size(0), one = 1;
      Append(View(*places, {&size, 1}, {&one, 1}, d * places->stride(1)));
    }
  }
  void Append(TensorPtr index) {
    Require(used_ < static_cast<std::int64_t>(kMaxRank), "index: too many indices");
    tensors_[used_++] = std::move(index);
  }

  std::int64_t rank_ = 0;
  std::int64_t used_ = 0;
  TensorPtr tensors_[kMaxRank];
};

// The correspondence between positions in the result, in self and in the indices.
class IndexPlan {
 public:
  IndexPlan(const Tensor& self, const Indices& indices) {
    std::int64_t first = -1, last = -1;
    bool adjacent = true;
    for (std::int64_t d = 0; d < self.rank(); ++d) {
      if (indices[d] == nullptr) continue;
      index_sizes_ = BroadcastSizes(index_sizes_, indices[d]->sizes());
      if (first < 0) first = d;
      adjacent = last < 0 || (adjacent && d == last + 1);
      last = d;
    }
    Require(first >= 0, "index: there is no index");
    // The indexed dims stay at their place if they are adjacent, otherwise they come first.
    const std::int64_t front = adjacent ? first : 0;
    index_at_ = static_cast<std::size_t>(front);
    for (std::int64_t d = 0; d < front; ++d) AppendWhole(self, d);
    AppendIndexed();
    for (std::int64_t d = front; d < self.rank(); ++d) {
      if (indices[d] == nullptr) AppendWhole(self, d);
    }
    MakeOffsets(self, indices);
  }

  Ints sizes() const { return sizes_; }
  Ints self_strides() const { return self_strides_; }      // 0 for the indexed dims
  Ints offset_strides() const { return offset_strides_; }  // 0 for the others
  // The offset in self that the index tensors contribute.
  const std::int64_t* offsets() const { return offsets_->data<std::int64_t>(); }

  TensorPtr EmptyResult(ScalarType dtype) const {
    return EmptyStrided(dtype, sizes_, ResultStrides(sizes_, operands_, operand_count_));
  }

  // The largest dim that is not indexed: different positions along it are different elements.
  std::int64_t SharedAxis() const {
    std::int64_t axis = -1;
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      const bool indexed = d >= index_at_ && d < index_at_ + index_sizes_.size();
      if (!indexed && (axis < 0 || sizes_[d] > sizes_[static_cast<std::size_t>(axis)])) {
        axis = static_cast<std::int64_t>(d);
      }
    }
    return axis;
  }

 private:
  void AppendWhole(const Tensor& self, std::int64_t dim) {
    sizes_.Append(self.size(dim));
    self_strides_.Append(self.stride(dim));
  }

  void AppendIndexed() {
    sizes_.Append(index_sizes_);
    for (std::size_t d = 0; d < index_sizes_.size(); ++d) self_strides_.Append(0);
  }

  // `strides` of the index dims, with zeros for the dims around them.
  Shape Around(Ints strides) const {
    Shape result;
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      const bool inside = d >= index_at_ && d - index_at_ < strides.size();
      result.Append(inside ? strides[d - index_at_] : 0);
    }
    return result;
  }

  void MakeOffsets(const Tensor& self, const Indices& indices) {
    offsets_ = Empty(ScalarType::kInt64, index_sizes_);
    offset_strides_ = Around(offsets_->strides());
    operands_[operand_count_++] = self_strides_;
    auto* offsets = offsets_->data<std::int64_t>();
    bool add = false;
    for (std::int64_t dim = 0; dim < self.rank(); ++dim) {
      if (indices[dim] == nullptr) continue;
      const Tensor& index = *indices[dim];
      const Shape strides = BroadcastStrides(index, index_sizes_);
      if (operand_count_ < kMostOperands) operands_[operand_count_++] = Around(strides);
      const auto* values = index.data<std::int64_t>();
      const std::int64_t size = self.size(dim), stride = self.stride(dim);
      ForEachRun(index_sizes_, {offsets_->strides(), strides}, Order::kRowMajor, kGrain,
                 [&](const std::int64_t* at, std::int64_t count, const std::int64_t* steps) {
                   std::int64_t* out = offsets + at[0];
                   const std::int64_t* in = values + at[1];
                   const std::int64_t out_step = steps[0], in_step = steps[1];
                   const std::int64_t limit = size, factor = stride, keep = add ? -1 : 0;
                   for (std::int64_t i = 0; i < count; ++i, out += out_step, in += in_step) {
                     *out = (*out & keep) + WrapIndex(*in, dim, limit) * factor;
                   }
                 });
      add = true;
    }
  }

  static constexpr std::size_t kMostOperands = 8;  // only the first ones affect the strides

  Shape index_sizes_, sizes_, self_strides_, offset_strides_;
  std::size_t index_at_ = 0;
  Shape operands_[kMostOperands];
  std::size_t operand_count_ = 0;
  TensorPtr offsets_;
};

TensorPtr Index(const Tensor& self, const Indices& indices) {
  const IndexPlan plan(self, indices);
  TensorPtr out = plan.EmptyResult(self.dtype());
  const std::int64_t* places = plan.offsets();
  DispatchBySize(self.dtype(), [&]<typename T>() {
    T* to = out->data<T>();
    const T* from = self.data<T>();
    ForEachRun(
        plan.sizes(), {out->strides(), plan.self_strides(), plan.offset_strides()}, Order::kAny,
        kGrain, [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
          T* result = to + offsets[0];
          const T* source = from + offsets[1];
          const std::int64_t* place = places + offsets[2];
          if (steps[2] == 0 && steps[0] == 1 && steps[1] == 1) {
            std::memcpy(result, source + *place, static_cast<std::size_t>(count) * sizeof(T));
            return;
          }
          const std::int64_t to_step = steps[0], step = steps[1], place_step = steps[2];
          for (std::int64_t i = 0; i < count; ++i) {
            *result = source[*place];
            result += to_step;
            source += step;
            place += place_step;
          }
        });
  });
  return out;
}

// Calls body(position in self, position in values) for each element of `values`, in row-major
// order.
template <typename Body>
void ForEachPut(const IndexPlan& plan, Ints value_strides, const Body& body) {
  const std::int64_t* places = plan.offsets();
  ForEachRunAlong(plan.sizes(), {plan.self_strides(), plan.offset_strides(), value_strides},
                  plan.SharedAxis(),
                  [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
                    const Body put = body;  // a copy, which the compiler can keep in registers
                    const std::int64_t* place = places + offsets[1];
                    const std::int64_t step = steps[0], place_step = steps[1], from_step = steps[2];
                    std::int64_t at = offsets[0], from = offsets[2];
                    if (place_step == 0 && step == 1 && from_step == 1) {  // a row to one element
                      at += *place;
                      for (std::int64_t i = 0; i < count; ++i) put(at + i, from + i);
                      return;
                    }
                    for (std::int64_t i = 0; i < count; ++i) {
                      put(at + *place, from);
                      at += step;
                      place += place_step;
                      from += from_step;
                    }
                  });
}

// Writes into `self` in place.
void Put(const Tensor& self, const Indices& indices, const Tensor& values, bool accumulate) {
  Require(values.dtype() == self.dtype(), "index_put: values are ", NameOf(values.dtype()),
          ", must be ", NameOf(self.dtype()), " as self is");
  const IndexPlan plan(self, indices);
  const Shape value_strides = BroadcastStrides(values, plan.sizes());
  if (!accumulate) {
    DispatchBySize(self.dtype(), [&]<typename T>() {
      T* to = self.data<T>();
      const T* from = values.data<T>();
      ForEachPut(plan, value_strides,
                 [to, from](std::int64_t at, std::int64_t value_at) { to[at] = from[value_at]; });
    });
    return;
  }
  DispatchAll(self.dtype(), [&]<typename T>() {
    T* to = self.data<T>();
    const T* from = values.data<T>();
    ForEachPut(plan, value_strides, [to, from](std::int64_t at, std::int64_t value_at) {
      if constexpr (std::is_same_v<T, bool>) {
        to[at] = to[at] || from[value_at];
      } else {
        to[at] = Plus(to[at], from[value_at]);
      }
    });
  });
}

// The handles in a list of optional tensors.
class Optionals {
 public:
  Optionals(const AtenTensorHandle** tensors, std::int64_t count)
      : tensors_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i] = tensors[i] == nullptr ? nullptr : *tensors[i];
    }
  }
  const Tensor* const* data() const { return tensors_.data(); }

 private:
  Scratch<const Tensor*> tensors_;
};

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_index_Tensor(AtenTensorHandle self, const AtenTensorHandle** indices,
                                           int64_t indices_len_, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const aoti::slim::Optionals given(indices, indices_len_);
    *ret0 = aoti::slim::Index(*self, {*self, given.data(), indices_len_}).release();
  });
}

AOTITorchError aoti_torch_cpu_index_put(AtenTensorHandle self, const AtenTensorHandle** indices,
                                        int64_t indices_len_, AtenTensorHandle values,
                                        int32_t accumulate, AtenTensorHandle* ret0) {
  return Guarded([&] {
    const aoti::slim::Optionals given(indices, indices_len_);
    aoti::slim::TensorPtr out = aoti::slim::EmptyLike(*self);
    aoti::slim::Copy(*out, *self);
    aoti::slim::Put(*out, {*self, given.data(), indices_len_}, *values, accumulate != 0);
    *ret0 = out.release();
  });
}

AOTITorchError aoti_torch_index_put_out(AtenTensorHandle out, AtenTensorHandle self,
                                        const AtenTensorHandle* indices, const uint32_t num_indices,
                                        const AtenTensorHandle values, bool accumulate) {
  return Guarded([&] {
    if (out->data() != self->data()) aoti::slim::Copy(*out, *self);
    aoti::slim::Put(*out, {*out, indices, num_indices}, *values, accumulate);
  });
}

}  // extern "C"
