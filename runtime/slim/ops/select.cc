// Elements that a mask or counts select: masked_select, masked_scatter, repeat_interleave.

#include <algorithm>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/ops/broadcast.h"
#include "runtime/slim/ops/loops.h"

namespace aoti::slim {
namespace {

void RequireMask(const char* name, const Tensor& mask) {
  Require(mask.dtype() == ScalarType::kBool, name, ": mask is ", NameOf(mask.dtype()),
          ", must be bool");
}

// Calls body(offsets, is_set) for each element in row-major order; the mask is the first tensor.
template <std::size_t N, typename Body>
void ForEachMasked(Ints sizes, const bool* mask, const Ints (&strides)[N], const Body& body) {
  const LoopPlan<N> plan(sizes, strides, Order::kRowMajor);
  if (plan.total() == 0) return;
  plan.Walk(0, plan.total(),
            [&](const std::int64_t* offsets, std::int64_t count, const std::int64_t* steps) {
              std::int64_t at[N];
              std::copy_n(offsets, N, at);
              for (std::int64_t i = 0; i < count; ++i) {
                body(static_cast<const std::int64_t*>(at), mask[at[0]]);
                for (std::size_t t = 0; t < N; ++t) at[t] += steps[t];
              }
            });
}

std::int64_t CountSet(Ints sizes, const Tensor& mask, Ints strides) {
  std::int64_t count = 0;
  ForEachMasked(sizes, mask.data<bool>(), {strides},
                [&](const std::int64_t*, bool is_set) { count += is_set; });
  return count;
}

TensorPtr MaskedSelect(const Tensor& self, const Tensor& mask) {
  RequireMask("masked_select", mask);
  const Shape sizes = BroadcastSizes(self.sizes(), mask.sizes());
  const Shape mask_strides = BroadcastStrides(mask, sizes);
  const Shape self_strides = BroadcastStrides(self, sizes);
  const std::int64_t count = CountSet(sizes, mask, mask_strides);
  TensorPtr out = Empty(self.dtype(), {count});
  if (count == 0) return out;
  DispatchBySize(self.dtype(), [&]<typename T>() {
    const T* from = self.data<T>();
    T* to = out->data<T>();
    // Every element is written, and is kept if it is selected, which avoids mispredicted branches.
    // Elements after the last selected one must not be written.
    T* const last = to + (count - 1);
    bool done = false;
    ForEachMasked(sizes, mask.data<bool>(), {mask_strides, self_strides},
                  [&](const std::int64_t* at, bool is_set) {
                    if (done) [[unlikely]]
                      return;
                    *to = from[at[1]];
                    done = is_set && to == last;
                    to += is_set && !done;
                  });
  });
  return out;
}

TensorPtr MaskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  RequireMask("masked_scatter", mask);
  Require(self.dtype() == source.dtype(), "masked_scatter: source is ", NameOf(source.dtype()),
          ", must be ", NameOf(self.dtype()), " as self is");
  const Shape sizes = BroadcastSizes(self.sizes(), mask.sizes());
  const Shape mask_strides = BroadcastStrides(mask, sizes);
  const std::int64_t count = CountSet(sizes, mask, mask_strides);
  Require(count <= source.numel(), "masked_scatter: mask is true ", count,
          " times, source has only ", source.numel(), " elements");
  TensorPtr out = Empty(self.dtype(), sizes);
  Copy(*out, self);
  if (count == 0) return out;
  const TensorPtr values = Contiguous(source);
  DispatchBySize(self.dtype(), [&]<typename T>() {
    T* to = out->data<T>();
    const T* from = values->data<T>();
    const T* const last = from + (count - 1);
    ForEachMasked(sizes, mask.data<bool>(), {mask_strides, out->strides()},
                  [&](const std::int64_t* at, bool is_set) {
                    // Without a branch: after the last selected element, the position in the source
                    // stays in range.
                    T& element = to[at[1]];
                    element = is_set ? *from : element;
                    from += is_set && from != last;
                  });
  });
  return out;
}

// Repeats each index i repeats[i] times.
TensorPtr RepeatInterleave(const Tensor& repeats, const std::int64_t* output_size) {
  Require(repeats.rank() == 1, "repeat_interleave: repeats has ", repeats.rank(),
          " dims, must have 1");
  return DispatchIndex(repeats.dtype(), [&]<typename T>() {
    const TensorPtr counts = Contiguous(repeats);
    const T* count = counts->data<T>();
    const std::int64_t size = repeats.numel();
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      Require(count[i] >= 0, "repeat_interleave: repeats[", i, "] is ", std::int64_t{count[i]},
              ", must not be negative");
      total = CheckedSum(total, count[i]);
    }
    Require(output_size == nullptr || *output_size == total, "repeat_interleave: output_size is ",
            output_size == nullptr ? 0 : *output_size, ", must be the sum of repeats, ", total);
    TensorPtr out = Empty(repeats.dtype(), {total});
    T* to = out->data<T>();
    for (std::int64_t i = 0; i < size; ++i) to = std::fill_n(to, count[i], static_cast<T>(i));
    return out;
  });
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_masked_select(AtenTensorHandle self, AtenTensorHandle mask,
                                            AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::MaskedSelect(*self, *mask).release(); });
}

AOTITorchError aoti_torch_cpu_masked_scatter(AtenTensorHandle self, AtenTensorHandle mask,
                                             AtenTensorHandle source, AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::MaskedScatter(*self, *mask, *source).release(); });
}

AOTITorchError aoti_torch_cpu_repeat_interleave_Tensor(AtenTensorHandle repeats,
                                                       int64_t* output_size,
                                                       AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::RepeatInterleave(*repeats, output_size).release(); });
}

AOTITorchError aoti_torch_repeat_interleave_Tensor(AtenTensorHandle repeats, int64_t* output_size,
                                                   AtenTensorHandle* out) {
  return aoti_torch_cpu_repeat_interleave_Tensor(repeats, output_size, out);
}

}  // extern "C"
