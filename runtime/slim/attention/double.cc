#include "runtime/slim/attention/double.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/parallel.h"

namespace aoti::slim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBlock = 64;

double MaskAt(const Tensor& mask, std::int64_t offset) {
  return mask.dtype() == ScalarType::kFloat32 ? mask.data<float>()[offset]
                                              : mask.data<double>()[offset];
}

// Computes one row: one query of one head. weights: kBlock values, sums: value_depth values.
void AttendRow(const AttentionProblem& problem, std::int64_t row, double* weights, double* sums) {
  const std::int64_t query_at = row % problem.queries;
  const std::int64_t heads = problem.key_heads * problem.group;
  const std::int64_t head = row / problem.queries % heads;
  const std::int64_t batch = row / problem.queries / heads;
  const auto at = [&](const Tensor& tensor, std::int64_t own_head, std::int64_t position) {
    return tensor.data<double>() + batch * tensor.stride(0) + own_head * tensor.stride(1) +
           position * tensor.stride(2);
  };
  const std::int64_t key_head = head / problem.group;
  const double* query = at(*problem.query, head, query_at);
  const std::int64_t keys = problem.causal ? std::min(problem.keys, query_at + 1) : problem.keys;
  double maximum = -kInfinity;
  double sum = 0;
  std::fill_n(sums, problem.value_depth, 0.0);
  for (std::int64_t first = 0; first < keys; first += kBlock) {
    const std::int64_t count = std::min(kBlock, keys - first);
    double most = maximum;
    for (std::int64_t i = 0; i < count; ++i) {
      const double* key = at(*problem.key, key_head, first + i);
      double product = 0;
      for (std::int64_t d = 0; d < problem.depth; ++d) {
        product += query[d * problem.query->stride(3)] * key[d * problem.key->stride(3)];
      }
      weights[i] = product * problem.scale;
      if (problem.mask != nullptr) {
        const auto& strides = problem.mask_strides;
        weights[i] += MaskAt(*problem.mask, batch * strides[0] + head * strides[1] +
                                                query_at * strides[2] + (first + i) * strides[3]);
      }
      most = std::max(most, weights[i]);
    }
    // Before the row's first visible key: exp(-inf - 0) is 0, but exp(-inf - -inf) would be NaN.
    const double shift = most == -kInfinity ? 0 : most;
    const double factor = std::exp(maximum - shift);
    maximum = most;
    sum *= factor;
    for (std::int64_t d = 0; d < problem.value_depth; ++d) sums[d] *= factor;
    for (std::int64_t i = 0; i < count; ++i) {
      const double weight = std::exp(weights[i] - shift);
      const double* value = at(*problem.value, key_head, first + i);
      sum += weight;
      for (std::int64_t d = 0; d < problem.value_depth; ++d) {
        sums[d] += weight * value[d * problem.value->stride(3)];
      }
    }
  }
  if (maximum == -kInfinity) maximum = 0;
  if (sum == 0) sum = 1;
  double* output = at(*problem.output, head, query_at);
  for (std::int64_t d = 0; d < problem.value_depth; ++d) {
    output[d * problem.output->stride(3)] = sums[d] / sum;
  }
  *at(*problem.logsumexp, head, query_at) = maximum + std::log(sum);
}

}  // namespace

void AttendDouble(const AttentionProblem& problem) {
  const std::int64_t rows = problem.batch * problem.key_heads * problem.group * problem.queries;
  const std::int64_t work = problem.keys * (problem.depth + problem.value_depth);
  internal::ParallelFor(0, rows, 100000 / std::max<std::int64_t>(work, 1) + 1,
                        [&](std::int64_t first, std::int64_t last) {
                          Scratch<double> weights(kBlock);
                          Scratch<double> sums(problem.value_depth);
                          for (std::int64_t row = first; row < last; ++row) {
                            AttendRow(problem, row, weights.data(), sums.data());
                          }
                        });
}

}  // namespace aoti::slim
