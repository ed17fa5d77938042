// Convolutions of bfloat16 and float16.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/ops/conv.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Whether the weight may be packed as pairs: see kind_of() in packing/convolution.py.
bool SuitsPairs(const ConvProblem& problem, const Tensor& weight) {
  if (weight.dtype() != ScalarType::kBFloat16 || problem.depthwise()) return false;
  const bool even = problem.in_channels % 2 == 0 && problem.in_channels > 0;
  return even || (problem.groups == 1 && problem.in_channels > 1);
}

ConvProblem InPairs(const ConvProblem& problem) {
  ConvProblem in_pairs = problem;
  in_pairs.numbers = ConvNumbers::kPairs;
  in_pairs.in_channels = CeilDiv(problem.in_channels, 2);
  in_pairs.odd = problem.in_channels % 2 != 0;
  return in_pairs;
}

bool MultipliesPairs() {
  return AOTI_SLIM_CURRENT_KERNELS(kConv).pairs &&
         (CurrentCpuMultipliesPairs() || CurrentCpuHasAmxBFloat16());
}

TensorPtr Widened(const Tensor& tensor) {
  TensorPtr wide = EmptyLike(tensor, ScalarType::kFloat32);
  Copy(*wide, tensor);
  return wide;
}

void RunWidened(const ConvProblem& problem, const Tensor& input, const Tensor* weight,
                const float* packed, const ConvEpilogue& epilogue, const ConvResults& out) {
  ConvArray<const float> plain = {};
  const TensorPtr wide_weight = weight == nullptr ? nullptr : Widened(*weight);
  if (weight != nullptr) plain = ConvArrayOf<float, const float>(*wide_weight);
  ConvWidened(problem, ConvArrayOf<std::uint16_t, const std::uint16_t>(input),
              input.dtype() == ScalarType::kFloat16, plain, packed, epilogue, out);
}

}  // namespace

bool TakePairs(const Tensor& weight, ConvStage& stage) {
  if (!SuitsPairs(stage.problem, weight) || !MultipliesPairs()) return false;
  stage.problem = InPairs(stage.problem);
  stage.packed = PackedConvWeight(weight, stage.problem);
  return !stage.problem.odd && stage.packed != nullptr;
}

void ConvHalf(const ConvProblem& problem, const Tensor& input, const Tensor& weight,
              const ConvEpilogue& epilogue, const ConvResults& out) {
  if (!SuitsPairs(problem, weight)) {
    const float* packed = PackedConvWeight(weight, problem);
    return RunWidened(problem, input, packed == nullptr ? &weight : nullptr, packed, epilogue, out);
  }
  const ConvProblem in_pairs = InPairs(problem);
  const float* packed = PackedConvWeight(weight, in_pairs);
  std::optional<Scratch<float>> own;
  if (packed == nullptr) {
    own.emplace(static_cast<std::size_t>(ConvPackedSize(in_pairs)));
    ConvPackPairs(in_pairs, ConvArrayOf<std::uint16_t, const std::uint16_t>(weight), own->data());
    packed = own->data();
  }
  if (MultipliesPairs()) {
    const auto in = ConvArrayOf<std::uint16_t, const std::uint16_t>(input);
    return ConvPairs(in_pairs, in, packed, epilogue, out);
  }
  if (in_pairs.odd) {
    Scratch<float> wide(static_cast<std::size_t>(ConvPackedSize(problem)));
    ConvWidenOdd(in_pairs, packed, wide.data());
    return RunWidened(problem, input, nullptr, wide.data(), epilogue, out);
  }
  ConvProblem narrow = problem;
  narrow.numbers = ConvNumbers::kNarrowWeights;
  RunWidened(narrow, input, nullptr, packed, epilogue, out);
}

}  // namespace aoti::slim
