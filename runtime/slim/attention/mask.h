// The mask of scaled_dot_product_attention, in the form that its kernels read.

#ifndef AOTI_RUNTIME_SLIM_ATTENTION_MASK_H_
#define AOTI_RUNTIME_SLIM_ATTENTION_MASK_H_

#include <cstdint>

#include "runtime/slim/attention/problem.h"
#include "runtime/slim/kernels/attention.h"

namespace aoti::slim {

// Rows of float32, and for each row the range of keys that are visible. Keys outside the range,
// such as the empty end of a cache, are neither read nor computed.
class AttentionMask {
 public:
  // The time is proportional to the number of hidden keys.
  AttentionMask(const AttentionKernels& kernels, const AttentionProblem& problem);

  struct Row {
    const float* data;  // [keys]
    std::int64_t begin, end;
  };
  Row At(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    const std::int64_t index = batch * steps_[0] + head * steps_[1] + query * steps_[2];
    return {data_ + batch * strides_[0] + head * strides_[1] + query * strides_[2],
            ranges_[2 * index], ranges_[2 * index + 1]};
  }

 private:
  TensorPtr copy_;  // set if the mask can't be read in place
  const float* data_;
  std::int64_t strides_[3];  // by batch, head, query; 0 for broadcast dims
  std::int64_t steps_[3];    // the same for ranges_
  Scratch<std::int64_t> ranges_;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ATTENTION_MASK_H_
