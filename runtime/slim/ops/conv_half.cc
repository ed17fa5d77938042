// Convolutions of bfloat16 and float16.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/pack.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/ops/conv.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

// Whether the weight may be packed as pairs: see kind_of() in packing/convolution.py.
bool SuitsPairs(const ConvProblem& problem, const Tensor& weight) {
  return weight.dtype() == ScalarType::kBFloat16 && !problem.transposed && !problem.depthwise() &&
         problem.in_channels % 2 == 0 && problem.in_channels > 0;
}

// Where there is AMX, AVX512_BF16 was slower than float32 (docs/runtime.md).
bool CpuMultipliesPairs() {
  return AOTI_SLIM_CURRENT_KERNELS(kConv).pairs && CurrentCpuHasBFloat16() &&
         !CurrentCpuHasAmxBFloat16();
}

// Whether pairs of channels lie in memory as numbers of 32 bits do.
bool HasPairs(const Tensor& tensor) {
  if (tensor.stride(1) != 1) return false;
  for (std::int64_t d = 0; d < tensor.rank(); ++d) {
    if (d != 1 && tensor.size(d) > 1 && tensor.stride(d) % 2 != 0) return false;
  }
  return std::bit_cast<std::uintptr_t>(tensor.data()) % alignof(std::uint32_t) == 0;
}

// The tensor as an image of pairs.
ConvArray<const float> AsPairs(const Tensor& tensor) {
  auto array = ConvArrayOf<float, const float>(tensor);
  for (std::int64_t& stride : array.strides) stride /= 2;
  array.strides[1] = 1;
  return array;
}

void RunPairs(const ConvProblem& problem, const Tensor& input, const float* packed,
              const ConvEpilogue& epilogue, ConvArray<float> out) {
  TensorPtr copy;
  if (!HasPairs(input)) {
    copy = EmptyImage(input.sizes(), input.dtype(), true);
    Copy(*copy, input);
  }
  ConvFloat(problem, AsPairs(copy == nullptr ? input : *copy), {}, packed, epilogue, out);
}

TensorPtr Widened(const Tensor& tensor) {
  TensorPtr wide = EmptyLike(tensor, ScalarType::kFloat32);
  Copy(*wide, tensor);
  return wide;
}

void RunWidened(const ConvProblem& problem, const Tensor& input, const Tensor* weight,
                const float* packed, const ConvEpilogue& epilogue, ConvArray<float> out) {
  const TensorPtr wide = Widened(input);
  ConvArray<const float> plain = {};
  const TensorPtr wide_weight = weight == nullptr ? nullptr : Widened(*weight);
  if (weight != nullptr) plain = ConvArrayOf<float, const float>(*wide_weight);
  ConvFloat(problem, ConvArrayOf<float, const float>(*wide), plain, packed, epilogue, out);
}

}  // namespace

void ConvHalf(const ConvProblem& problem, const Tensor& input, const Tensor& weight,
              const ConvEpilogue& epilogue, ConvArray<float> out) {
  if (!SuitsPairs(problem, weight)) {
    const float* packed = PackedConvWeight(weight, problem);
    return RunWidened(problem, input, packed == nullptr ? &weight : nullptr, packed, epilogue, out);
  }
  ConvProblem in_pairs = problem;
  in_pairs.numbers = ConvNumbers::kPairs;
  in_pairs.in_channels /= 2;
  const float* packed = PackedConvWeight(weight, in_pairs);
  std::optional<Scratch<float>> own;
  if (packed == nullptr) {
    own.emplace(static_cast<std::size_t>(ConvPackedSize(in_pairs)));
    ConvPackPairs(in_pairs, ConvArrayOf<std::uint16_t, const std::uint16_t>(weight), own->data());
    packed = own->data();
  }
  if (CpuMultipliesPairs()) return RunPairs(in_pairs, input, packed, epilogue, out);
  ConvProblem narrow = problem;
  narrow.numbers = ConvNumbers::kNarrowWeights;
  RunWidened(narrow, input, nullptr, packed, epilogue, out);
}

}  // namespace aoti::slim
