// One direction of a recurrent layer, on plain memory.

#ifndef AOTI_RUNTIME_SLIM_OPS_RNN_STEPS_H_
#define AOTI_RUNTIME_SLIM_OPS_RNN_STEPS_H_

#include <cstdint>

namespace aoti::slim {

enum class RnnCell { kTanh, kRelu, kLstm, kGru };

constexpr std::int64_t GatesOf(RnnCell cell) {
  return cell == RnnCell::kLstm ? 4 : cell == RnnCell::kGru ? 3 : 1;
}

// T is float or double. Matrices are contiguous. `width` is the size of the hidden state: that of
// the cell state (`size`), or of its projection.
template <typename T>
struct RnnSteps {
  RnnCell cell;
  bool reverse;  // from the last step to the first
  std::int64_t steps, batch, features, size, width;
  const T* input;  // [steps, batch, features]
  // Weights, and their copies in the layout of kernels/gemm.h, or null. If there is a copy, the
  // weight itself may be null.
  const T* input_weight;  // [gates * size, features]
  const float* packed_input = nullptr;
  const T* hidden_weight;  // [gates * size, width]
  const float* packed_hidden = nullptr;
  const T* input_bias;  // [gates * size]; null if there are no biases
  const T* hidden_bias;
  const T* projection = nullptr;  // [width, size], if these differ
  const float* packed_projection = nullptr;
  T* hidden;                // [batch, width]: the first state, replaced by the last one
  T* cell_state;            // [batch, size], as `hidden`; LSTM only
  T* output;                // [steps, batch, width]
  std::int64_t output_row;  // elements from one row of `width` to the next
};

// Uses up to MaxThreads() threads.
template <typename T>
void RunRnn(const RnnSteps<T>& layer);

extern template void RunRnn(const RnnSteps<float>&);
extern template void RunRnn(const RnnSteps<double>&);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_OPS_RNN_STEPS_H_
