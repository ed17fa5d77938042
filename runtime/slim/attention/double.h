#ifndef AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_
#define AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_

#include "runtime/slim/attention/problem.h"

namespace aoti::slim {

// scaled_dot_product_attention of float64: plain loops, for tests of models rather than for use.
void AttendDouble(const AttentionProblem& problem);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_
