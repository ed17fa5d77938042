#ifndef AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_
#define AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_

#include "runtime/slim/attention/problem.h"

namespace aoti::slim {

// scaled_dot_product_attention for float64, with plain loops: it is meant for tests of models.
void AttendDouble(const AttentionProblem& problem);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ATTENTION_DOUBLE_H_
