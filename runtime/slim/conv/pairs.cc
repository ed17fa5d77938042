// Convolutions of pairs of channels: the image as the kernels read it.

#include <bit>
#include <cstdint>

#include "runtime/slim/conv/conv.h"
#include "runtime/slim/conv/image.h"
#include "runtime/slim/kernels/conv.h"

namespace aoti::slim {
namespace {

// Whether pairs of channels lie in memory as numbers of 32 bits do.
bool HasPairs(const ConvProblem& problem, const ConvArray<const std::uint16_t>& image) {
  if (problem.odd || image.strides[1] != 1) return false;
  const std::int64_t sizes[] = {problem.batch, 1, problem.in[0], problem.in[1], problem.in[2]};
  for (int d = 0; d < 5; ++d) {
    if (sizes[d] > 1 && image.strides[d] % 2 != 0) return false;
  }
  return std::bit_cast<std::uintptr_t>(image.data) % alignof(std::uint32_t) == 0;
}

}  // namespace

bool AsPairs(const ConvProblem& problem, const ConvArray<const std::uint16_t>& in,
             ConvArray<const float>& pairs) {
  if (!HasPairs(problem, in)) return false;
  // The kernels only move these numbers, as those of 32 bits.
  pairs.data = static_cast<const float*>(static_cast<const void*>(in.data));
  for (int d = 0; d < 5; ++d) pairs.strides[d] = in.strides[d] / 2;
  pairs.strides[1] = 1;
  return true;
}

void ConvPairs(const ConvProblem& problem, ConvArray<const std::uint16_t> in, const float* packed,
               const ConvEpilogue& epilogue, const ConvResults& out) {
  ConvArray<const float> pairs = {};
  if (AsPairs(problem, in, pairs)) {
    return ConvFloat(problem, pairs, {}, packed, epilogue, out);
  }
  // With the padding, a row of the filter can be one long tap.
  const bool pad = problem.groups == 1 && !problem.transposed && problem.kernel[2] > 1;
  const ImageCopy copied(problem, in, pad);
  ConvProblem of_copy = problem;
  copied.Adjust(of_copy);
  const Image image = copied.image();
  pairs = {image.data, {image.strides[0], 1, image.strides[1], image.strides[2], image.strides[3]}};
  ConvFloat(of_copy, pairs, {}, packed, epilogue, out);
}

}  // namespace aoti::slim
