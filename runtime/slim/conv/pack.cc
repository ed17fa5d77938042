#include "runtime/slim/conv/pack.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "runtime/core/parallel.h"
#include "runtime/slim/kernels/conv.h"

namespace aoti::slim {
namespace {

using internal::ParallelFor;

constexpr std::int64_t kPackGrain = 1 << 16;  // the least number of elements for a thread

std::int64_t Blocks(std::int64_t channels) { return (channels + kConvBlock - 1) / kConvBlock; }

// The offset of each tap of a filter from the first one.
std::int64_t TapOffset(const ConvProblem& problem, const std::int64_t (&strides)[5],
                       std::int64_t tap) {
  std::int64_t offset = 0;
  for (int d = 2; d >= 0; --d) {
    offset += tap % problem.kernel[d] * strides[2 + d];
    tap /= problem.kernel[d];
  }
  return offset;
}

void PackDepthwise(const ConvProblem& problem, ConvArray<const float> weight, float* packed) {
  const std::int64_t channels = problem.groups * problem.out_channels;
  const std::int64_t padded = Blocks(channels) * kConvBlock;
  float* to = packed;
  for (std::int64_t tap = 0; tap < problem.taps(); ++tap) {
    for (std::int64_t j = 0; j < problem.in_channels; ++j, to += padded) {
      const float* from =
          weight.data + TapOffset(problem, weight.strides, tap) + j * weight.strides[1];
      for (std::int64_t c = 0; c < channels; ++c) to[c] = from[c * weight.strides[0]];
      std::fill(to + channels, to + padded, 0.0f);
    }
  }
}

// Packs blocks. weight: its strides in the order group, output channel, input. number(from): what
// is packed for an input, whose weight is at `from`.
template <typename T, typename Number>
void PackBlocks(const ConvProblem& problem, ConvArray<const T> weight,
                const std::int64_t (&strides)[3], float* packed, const Number& number) {
  const std::int64_t taps = problem.taps();
  const std::int64_t blocks = Blocks(problem.out_channels);
  const std::int64_t block_size = taps * problem.in_channels * kConvBlock;
  ParallelFor(0, problem.groups * blocks, kPackGrain / std::max<std::int64_t>(block_size, 1),
              [&](std::int64_t first, std::int64_t last) {
                for (std::int64_t i = first; i < last; ++i) {
                  const std::int64_t channel = i % blocks * kConvBlock;
                  const std::int64_t used = std::min(kConvBlock, problem.out_channels - channel);
                  const T* block = weight.data + i / blocks * strides[0] + channel * strides[1];
                  float* to = packed + i * block_size;
                  for (std::int64_t tap = 0; tap < taps; ++tap) {
                    const T* from = block + TapOffset(problem, weight.strides, tap);
                    for (std::int64_t c = 0; c < problem.in_channels; ++c, to += kConvBlock) {
                      for (std::int64_t o = 0; o < used; ++o)
                        to[o] = number(from + c * strides[2] + o * strides[1]);
                      std::fill(to + used, to + kConvBlock, 0.0f);
                    }
                  }
                }
              });
}

}  // namespace

const char* ConvPackedKind(const ConvProblem& problem) {
  if (problem.depthwise()) return "conv_depthwise_f32";
  if (problem.numbers != ConvNumbers::kFloats) return "conv_bf16";
  return problem.transposed ? "conv_transposed_f32" : "conv_f32";
}

std::int64_t ConvPackedSize(const ConvProblem& problem) {
  if (problem.depthwise()) {
    return problem.taps() * problem.in_channels * Blocks(problem.groups * problem.out_channels) *
           kConvBlock;
  }
  return problem.groups * Blocks(problem.out_channels) * kConvBlock * problem.taps() *
         WeightRows(problem.numbers, problem.in_channels);
}

void ConvPack(const ConvProblem& problem, ConvArray<const float> weight, float* packed) {
  if (problem.depthwise()) return PackDepthwise(problem, weight, packed);
  // A transposed convolution's weight is [input channel][output channel of the group].
  const std::int64_t group_size = problem.transposed ? problem.in_channels : problem.out_channels;
  const std::int64_t strides[3] = {group_size * weight.strides[0],
                                   weight.strides[problem.transposed ? 1 : 0],
                                   weight.strides[problem.transposed ? 0 : 1]};
  PackBlocks(problem, weight, strides, packed, [](const float* from) { return *from; });
}

void ConvPackPairs(const ConvProblem& problem, ConvArray<const std::uint16_t> weight,
                   float* packed) {
  const std::int64_t next = weight.strides[1];
  const std::int64_t strides[3] = {problem.out_channels * weight.strides[0], weight.strides[0],
                                   2 * next};
  PackBlocks(problem, weight, strides, packed, [=](const std::uint16_t* from) {
    return std::bit_cast<float>(from[0] | std::uint32_t{from[next]} << 16);
  });
}

void ConvWidenPairs(const float* pairs, std::int64_t rows, float* wide) {
  for (; rows > 0; --rows, pairs += kConvBlock, wide += 2 * kConvBlock) {
    for (std::int64_t o = 0; o < kConvBlock; ++o) {
      const auto bits = std::bit_cast<std::uint32_t>(pairs[o]);
      wide[o] = std::bit_cast<float>(bits << 16);
      wide[kConvBlock + o] = std::bit_cast<float>(bits & 0xffff0000u);
    }
  }
}

}  // namespace aoti::slim
