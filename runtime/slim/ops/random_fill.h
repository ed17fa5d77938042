// Fills tensors with random numbers in PyTorch's order.

#ifndef AOTI_RUNTIME_SLIM_OPS_RANDOM_FILL_H_
#define AOTI_RUNTIME_SLIM_OPS_RANDOM_FILL_H_

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "runtime/slim/math/generator.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Calls body(offset) for each element, with larger strides in outer loops.
template <typename Body>
void ForEachOffsetInMemory(const Tensor& tensor, const Body& body) {
  const auto rank = static_cast<std::size_t>(tensor.rank());
  if (tensor.is_contiguous()) {
    const std::int64_t size = tensor.numel();
    for (std::int64_t i = 0; i < size; ++i) body(i);
    return;
  }
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
                [&](const std::int64_t* offsets) { body(offsets[0]); });
}

// The same with a reference to the element: body(T&).
template <typename T, typename Body>
void ForEachInMemory(const Tensor& tensor, const Body& body) {
  T* data = tensor.data<T>();
  ForEachOffsetInMemory(tensor, [&](std::int64_t offset) { body(data[offset]); });
}

// Fill tensors of any layout. Throw OpError for arguments that are out of range.
void FillIntegers(const Tensor& self, std::int64_t low, std::int64_t high,  // low..high - 1
                  Generator& generator);
void FillUniform(const Tensor& self, double from, double to, Generator& generator);
void FillNormal(const Tensor& self, double mean, double std, Generator& generator);
void FillExponential(const Tensor& self, double rate, Generator& generator);
void FillBernoulli(const Tensor& self, double p, Generator& generator);
void FillBernoulli(const Tensor& self, const Tensor& p, Generator& generator);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_RANDOM_FILL_H_
