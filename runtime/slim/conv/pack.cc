#include "runtime/slim/conv/pack.h"

#include <algorithm>
#include <bit>
#include <cstddef>
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

// The strides of a weight in the order group, output channel, input. inputs: in a group.
struct WeightStrides {
  WeightStrides(const ConvProblem& problem, std::int64_t inputs, const std::int64_t (&strides)[5]) {
    // A transposed convolution's weight is [input channel][output channel of the group].
    of[0] = (problem.transposed ? inputs : problem.out_channels) * strides[0];
    of[1] = strides[problem.transposed ? 1 : 0];
    of[2] = strides[problem.transposed ? 0 : 1];
  }
  std::int64_t of[3];
};

// Packs blocks. strides: in the order group, output channel, input. number(from, c): what is packed
// for input c, whose weight is at `from`.
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
                        to[o] = number(from + c * strides[2] + o * strides[1], c);
                      std::fill(to + used, to + kConvBlock, 0.0f);
                    }
                  }
                }
              });
}

}  // namespace

const char* ConvPackedKind(const ConvProblem& problem) {
  if (problem.depthwise()) return "conv_depthwise_f32";
  if (problem.numbers != ConvNumbers::kFloats) {
    return problem.transposed ? "conv_transposed_bf16" : "conv_bf16";
  }
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
  const WeightStrides strides(problem, problem.in_channels, weight.strides);
  PackBlocks(problem, weight, strides.of, packed,
             [](const float* from, std::int64_t) { return *from; });
}

void ConvPackPairs(const ConvProblem& problem, ConvArray<const std::uint16_t> weight,
                   float* packed) {
  WeightStrides strides(problem, 2 * problem.in_channels, weight.strides);
  const std::int64_t next = strides.of[2];
  strides.of[2] *= 2;
  const std::int64_t alone = problem.odd ? problem.in_channels - 1 : -1;
  PackBlocks(problem, weight, strides.of, packed, [=](const std::uint16_t* from, std::int64_t c) {
    const std::uint32_t second = c == alone ? 0 : from[next];
    return std::bit_cast<float>(*from | second << 16);
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

void ConvWidenOdd(const ConvProblem& problem, const float* pairs, float* packed) {
  const std::int64_t whole = problem.in_channels - 1;
  float row[2 * kConvBlock];
  for (std::int64_t i = Blocks(problem.out_channels) * problem.taps(); i > 0; --i) {
    ConvWidenPairs(pairs, whole, packed);
    pairs += whole * kConvBlock;
    packed += 2 * whole * kConvBlock;
    ConvWidenPairs(pairs, 1, row);
    std::copy_n(row, kConvBlock, packed);
    pairs += kConvBlock;
    packed += kConvBlock;
  }
}

PackedFilter::PackedFilter(const ConvProblem& problem, ConvArray<const float> weight,
                           const float* packed)
    : data_(packed) {
  if (packed != nullptr) return;
  own_.emplace(static_cast<std::size_t>(ConvPackedSize(problem)));
  ConvPack(problem, weight, own_->data());
  data_ = own_->data();
}

}  // namespace aoti::slim
