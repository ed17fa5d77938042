// Scales rows of a table down to a maximum norm; the indices say which rows.

#include <algorithm>
#include <cmath>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

template <typename T>
double Norm(const T* row, std::int64_t stride, std::int64_t size, double order) {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const double value = std::abs(static_cast<double>(row[i * stride]));
    if (std::isinf(order)) {
      sum = std::isnan(value) ? value : std::max(sum, value);
    } else if (order == 2) {
      sum += value * value;
    } else if (order == 1) {
      sum += value;
    } else {
      sum += order == 0 ? static_cast<double>(value != 0) : std::pow(value, order);
    }
  }
  if (order == 2) return std::sqrt(sum);
  return std::isinf(order) || order == 1 || order == 0 ? sum : std::pow(sum, 1 / order);
}

TensorPtr Renorm(const Tensor& self, const Tensor& indices, double max_norm, double order) {
  Require(self.rank() == 2, "embedding_renorm: the weight has ", self.rank(), " dims, must have 2");
  TensorPtr result = EmptyLike(self);
  Copy(*result, self);
  const TensorPtr own = Converted(indices, ScalarType::kInt64);
  DispatchIndex(indices.dtype(), []<typename>() {});
  const std::int64_t rows = self.size(0), size = self.size(1);
  Scratch<bool> done(static_cast<std::size_t>(rows));
  std::fill(done.begin(), done.end(), false);
  DispatchFloating(self.dtype(), [&]<typename T>() {
    const std::int64_t stride = result->stride(1);
    for (std::int64_t i = 0; i < own->numel(); ++i) {
      const std::int64_t index = own->data<std::int64_t>()[i];
      Require(index >= 0 && index < rows, "embedding_renorm: indices[", i, "] is ", index,
              ", must be in 0..", rows - 1);
      if (done[index]) continue;
      done[index] = true;
      T* row = result->data<T>() + index * result->stride(0);
      const T norm = static_cast<T>(Norm(row, stride, size, order));
      if (!(static_cast<double>(norm) > max_norm)) continue;
      const double scale = max_norm / (static_cast<double>(norm) + 1e-7);
      for (std::int64_t d = 0; d < size; ++d) {
        row[d * stride] = static_cast<T>(static_cast<Accumulator<T>>(row[d * stride]) *
                                         static_cast<Accumulator<T>>(scale));
      }
    }
  });
  return result;
}

void EmbeddingRenorm(StableIValue* stack) {
  const TensorPtr self = TakeTensor(stack[0]);
  const TensorPtr indices = TakeTensor(stack[1]);
  stack[0] = Give(Renorm(*self, *indices, TakeFloat(stack[2]), TakeFloat(stack[3])));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten_embedding_renorm, "aten::embedding_renorm", "",
                        aoti::slim::EmbeddingRenorm)
