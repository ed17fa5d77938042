// The checked arguments of scaled_dot_product_attention.

#ifndef AOTI_RUNTIME_SLIM_ATTENTION_PROBLEM_H_
#define AOTI_RUNTIME_SLIM_ATTENTION_PROBLEM_H_

#include <cstdint>

#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

// Also allocates the results. Throws OpError for arguments that do not match.
struct AttentionProblem {
  AttentionProblem(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor* mask,
                   double dropout, bool causal, const double* scale);

  const Tensor* query;                // [batch, key_heads * group, queries, depth]
  const Tensor* key;                  // [batch, key_heads, keys, depth]
  const Tensor* value;                // [batch, key_heads, keys, value_depth]
  const Tensor* mask;                 // null: none
  std::int64_t mask_strides[4] = {};  // by batch, head, query, key; 0 for broadcast dims
  std::int64_t batch, queries, keys, key_heads, group, depth, value_depth;
  double scale;
  bool causal;
  TensorPtr output;
  TensorPtr logsumexp;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ATTENTION_PROBLEM_H_
