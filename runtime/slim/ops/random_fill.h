// Fills tensors with random numbers in PyTorch's order.

#ifndef AOTI_RUNTIME_SLIM_OPS_RANDOM_FILL_H_
#define AOTI_RUNTIME_SLIM_OPS_RANDOM_FILL_H_

#include <cstdint>

#include "runtime/slim/math/generator.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Calls visit(body, offset) for each element of a tensor that is not contiguous. A function of its
// own, because the sort and the loops over any number of dims take long to compile for each body.
void VisitOffsetsInMemory(const Tensor& tensor, const void* body,
                          void (*visit)(const void* body, std::int64_t offset));

// Calls body(offset) for each element, with larger strides in outer loops.
template <typename Body>
void ForEachOffsetInMemory(const Tensor& tensor, const Body& body) {
  if (tensor.is_contiguous()) {
    const std::int64_t size = tensor.numel();
    for (std::int64_t i = 0; i < size; ++i) body(i);
    return;
  }
  VisitOffsetsInMemory(tensor, &body, [](const void* erased, std::int64_t offset) {
    (*static_cast<const Body*>(erased))(offset);
  });
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
