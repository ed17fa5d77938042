// The rows of a DepthwiseJob.

#ifndef AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_
#define AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_

#include "runtime/slim/kernels/conv.h"
#include "runtime/slim/kernels/conv_epilogue.h"
#include "runtime/slim/kernels/rounding.h"
#include "runtime/slim/kernels/simd.h"

namespace aoti::slim {
namespace AOTI_ISA {
namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kDepthwisePixels = 8;
constexpr int kWidestDepthwise = 11;  // whose pixels fit into the registers
#else
constexpr int kDepthwisePixels = 4;
constexpr int kWidestDepthwise = 7;
#endif

// One row of output pixels, and the rows of the image that it reads.
struct DepthwiseRow {
  const DepthwiseJob& job;
  float* out;
  const float* residual;  // if there is one
  const float* in;        // for the first row of the filter that is in the image, at its column 0
  const float* weights;   // of that row of the filter
  int64_t rows[2];        // number of the filter's rows in the image, by depth and height
  int64_t in_steps[2];    // distance between these rows in the image
  int64_t weight_steps[2];
  int64_t column_weights;  // distance between two channels of a filter column
  int64_t pixel_step;      // distance between the inputs of two adjacent results
};

// Makes the compiler keep a value in a register instead of loading it for each use.
inline void KeepInRegister(VecF& value) {
#if defined(__x86_64__)
  asm("" : "+v"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#endif
}

// The positions first..last of a filter, which starts at `at`, that are in 0..size.
inline void FindInside(int64_t size, int64_t at, int64_t dilation, int64_t kernel, int64_t& first,
                       int64_t& last) {
  first = at < 0 ? (-at + dilation - 1) / dilation : 0;
  last = at < size ? (size - at + dilation - 1) / dilation : 0;
  if (last > kernel) last = kernel;
}

// For each lane, the channel of its group's first lane.
struct GroupLanes {
  explicit GroupLanes(int64_t group) {
    for (int i = 0; i < kLanes; ++i) first[i] = static_cast<int32_t>(i / group * group);
  }
  VecI first = {};
};

// Computes a vector of channels for kPixels pixels from `x` on, for the filter's columns
// first..last: all columns, or those that are in the image. kWidth is the filter's width and kStep
// the row's step if they are known, otherwise 0. kWhole: all lanes are used, not only `lanes` of
// them. kBorder: pixels on the left or right of the image are read as zeros; kWidth must be known.
template <int kPixels, int kWidth, int kStep, bool kGrouped, bool kWhole, bool kBorder = false>
[[gnu::always_inline]] inline void DepthwisePixels(const DepthwiseRow& row, int64_t x,
                                                   int64_t channel, int lanes, int64_t first,
                                                   int64_t last) {
  const DepthwiseJob& job = row.job;
  const ConvEpilogue& epilogue = job.epilogue;
  VecF shift = {};
  if (epilogue.shift != nullptr) {
    shift = kWhole ? Load(epilogue.shift + channel) : LoadPart(epilogue.shift + channel, lanes);
  }
  VecF sums[kPixels];
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) sums[i] = epilogue.scale == nullptr ? shift : VecF{};
  const int64_t stride = job.in_strides[3];
  const int64_t group = kGrouped ? job.group : 1;
  const GroupLanes group_lanes(group);
  const float* depth_in = row.in + x * row.pixel_step + channel;
  const float* depth_weights = row.weights + channel;
  for (int64_t kd = row.rows[0]; kd > 0; --kd) {
    const float* in = depth_in;
    const float* weights = depth_weights;
    depth_in += row.in_steps[0];
    depth_weights += row.weight_steps[0];
    for (int64_t kh = row.rows[1]; kh > 0; --kh) {
      if constexpr (kWidth > 0) {
        // Adjacent results share most of their input pixels.
        constexpr int kSeen = (kPixels - 1) * kStep + kWidth;
        VecF seen[kSeen];
#pragma GCC unroll 32
        for (int i = 0; i < kSeen; ++i) {
          const int64_t column = x * kStep + i - job.padding[2];
          const bool outside =
              kBorder && static_cast<uint64_t>(column) >= static_cast<uint64_t>(job.in_sizes[2]);
          seen[i] = outside ? VecF{} : Load(in + i * stride);
          KeepInRegister(seen[i]);
        }
#pragma GCC unroll 16
        for (int kw = 0; kw < kWidth; ++kw) {
          const VecF w = Load(weights + kw * row.column_weights);
#pragma GCC unroll 8
          for (int i = 0; i < kPixels; ++i) sums[i] = Fma(seen[i * kStep + kw], w, sums[i]);
        }
      }
      for (int64_t kw = first; kWidth == 0 && kw < last; ++kw) {
        const float* from = in + kw * job.dilation[2] * stride;
        if constexpr (!kGrouped) {
          const VecF w = Load(weights + kw * row.column_weights);
#pragma GCC unroll 8
          for (int i = 0; i < kPixels; ++i) {
            const float* pixel = from + i * row.pixel_step;
            const VecF a = kWhole ? Load(pixel) : LoadPart(pixel, lanes);
            sums[i] = Fma(a, w, sums[i]);
          }
        } else if (group > kLanes) {
          // All lanes belong to one group.
          const float* begin_of_group = from - channel % group;
          for (int64_t j = 0; j < group; ++j) {
            const VecF w = Load(weights + (kw * group + j) * row.column_weights);
#pragma GCC unroll 8
            for (int i = 0; i < kPixels; ++i) {
              sums[i] = Fma(Splat(begin_of_group[i * row.pixel_step + j]), w, sums[i]);
            }
          }
        } else {
          VecF pixels[kPixels];
#pragma GCC unroll 8
          for (int i = 0; i < kPixels; ++i) {
            const float* pixel = from + i * row.pixel_step;
            pixels[i] = kWhole ? Load(pixel) : LoadPart(pixel, lanes);
          }
          for (int64_t j = 0; j < group; ++j) {
            const VecF w = Load(weights + (kw * group + j) * row.column_weights);
            const VecI lane = group_lanes.first + static_cast<int32_t>(j);
#pragma GCC unroll 8
            for (int i = 0; i < kPixels; ++i) {
              sums[i] = Fma(LanesAt(pixels[i], lane), w, sums[i]);
            }
          }
        }
      }
      in += row.in_steps[1];
      weights += row.weight_steps[1];
    }
  }
  if (epilogue.scale != nullptr) {
    const float* scale = epilogue.scale + channel;
    const VecF factor = kWhole ? Load(scale) : LoadPart(scale, lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sums[i] = Fma(sums[i], factor, shift);
  }
  if (ClampsFirst(epilogue)) {
    const VecF low = Splat(epilogue.low);
    const VecF high = Splat(epilogue.high);
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sums[i] = Clamped(sums[i], low, high);
  }
  float* out = row.out + x * job.out_strides[3] + channel;
#pragma GCC unroll 8
  for (int i = 0; i < kPixels; ++i) {
    if constexpr (kWhole) {
      Store(out + i * job.out_strides[3], sums[i]);
    } else {
      StorePart(out + i * job.out_strides[3], sums[i], lanes);
    }
  }
  if (HasRest(epilogue)) {
    float* pixels[kPixels];
    const float* residuals[kPixels];
    for (int i = 0; i < kPixels; ++i) {
      pixels[i] = out + i * job.out_strides[3];
      if (row.residual != nullptr) {
        residuals[i] = row.residual + (x + i) * epilogue.residual_strides[3] + channel;
      }
    }
    FinishPixels(epilogue, {pixels, residuals, kPixels, 0, kWhole ? kLanes : lanes});
  }
}

// The channels that are computed in whole vectors: all of them, or none.
inline int64_t WholeVectors(const DepthwiseJob& job) {
  return job.channels >= kLanes ? job.channels : 0;
}

// Where the vector for the channels from `channel` on begins. The last vector overlaps with the
// previous one.
inline int64_t VectorAt(const DepthwiseJob& job, int64_t channel) {
  return channel + kLanes <= job.channels ? channel : job.channels - kLanes;
}

// Computes one pixel, some of whose taps may be outside the image on the left or right.
template <bool kGrouped>
[[gnu::noinline]] void DepthwiseBorder(const DepthwiseRow& row, int64_t x) {
  const DepthwiseJob& job = row.job;
  int64_t first = 0;
  int64_t last = 0;
  FindInside(job.in_sizes[2], x * job.steps[2] - job.padding[2], job.dilation[2], job.kernel[2],
             first, last);
  const int64_t whole = WholeVectors(job);
  for (int64_t channel = 0; channel < whole; channel += kLanes) {
    DepthwisePixels<1, 0, 0, kGrouped, true>(row, x, VectorAt(job, channel), kLanes, first, last);
  }
  if (whole == 0) {
    const auto lanes = static_cast<int>(job.channels);
    DepthwisePixels<1, 0, 0, kGrouped, false>(row, x, 0, lanes, first, last);
  }
}

// Few enough channels that a row of them stays in the L1 cache for the next rows.
constexpr int64_t kDepthwiseChannels = 4 * kLanes;

// Computes the pixels first..last, whose taps are all in the image; there are at least kPixels.
template <int kPixels, bool kGrouped>
[[gnu::noinline]] void DepthwiseInside(const DepthwiseRow& row, int64_t first, int64_t last) {
  const DepthwiseJob& job = row.job;
  const int64_t whole = WholeVectors(job);
  for (int64_t chunk = 0; chunk < whole; chunk += kDepthwiseChannels) {
    const int64_t end = chunk + kDepthwiseChannels < whole ? chunk + kDepthwiseChannels : whole;
    for (int64_t x = first; x < last; x += kPixels) {
      // The last tile overlaps with the previous one.
      if (x > last - kPixels) x = last - kPixels;
      for (int64_t channel = chunk; channel < end; channel += kLanes) {
        DepthwisePixels<kPixels, 0, 0, kGrouped, true>(row, x, VectorAt(job, channel), kLanes, 0,
                                                       job.kernel[2]);
      }
    }
  }
  if (whole != 0) return;
  const auto lanes = static_cast<int>(job.channels);
  for (int64_t x = first; x < last; ++x) {
    DepthwisePixels<1, 0, 0, kGrouped, false>(row, x, 0, lanes, 0, job.kernel[2]);
  }
}

// Computes the channels first..last, at least a vector, of a tile at the border.
template <int kPixels, int kWidth, int kStep>
[[gnu::noinline]] void DepthwiseBorderTile(const DepthwiseRow& row, int64_t x, int64_t first,
                                           int64_t last) {
  for (int64_t channel = first; channel < last; channel += kLanes) {
    DepthwisePixels<kPixels, kWidth, kStep, false, true, true>(row, x, VectorAt(row.job, channel),
                                                               kLanes, 0, kWidth);
  }
}

// Computes all pixels of a row, of which there are at least kPixels. The taps of the pixels
// left..right are all in the image.
template <int kPixels, int kWidth, int kStep>
[[gnu::noinline]] void DepthwiseTiles(const DepthwiseRow& row, int64_t left, int64_t right) {
  const DepthwiseJob& job = row.job;
  const int64_t size = job.grid[3];
  const int64_t whole = WholeVectors(job);
  for (int64_t chunk = 0; chunk < whole; chunk += kDepthwiseChannels) {
    const int64_t end = chunk + kDepthwiseChannels < whole ? chunk + kDepthwiseChannels : whole;
    for (int64_t x = 0; x < size; x += kPixels) {
      // The last tile overlaps with the previous one.
      if (x > size - kPixels) x = size - kPixels;
      if (x < left || x + kPixels > right) {
        DepthwiseBorderTile<kPixels, kWidth, kStep>(row, x, chunk, end);
        continue;
      }
      for (int64_t channel = chunk; channel < end; channel += kLanes) {
        DepthwisePixels<kPixels, kWidth, kStep, false, true>(row, x, VectorAt(job, channel), kLanes,
                                                             0, kWidth);
      }
    }
  }
  if (whole != 0) return;
  const auto lanes = static_cast<int>(job.channels);
  for (int64_t x = 0; x < size; ++x) {
    int64_t first = 0;
    int64_t last = 0;
    FindInside(job.in_sizes[2], x * kStep - job.padding[2], 1, kWidth, first, last);
    DepthwisePixels<1, 0, 0, false, false>(row, x, 0, lanes, first, last);
  }
}

template <int kWidth, int kStep, bool kGrouped>
void DepthwiseRowOf(const DepthwiseRow& row) {
  const DepthwiseJob& job = row.job;
  const int64_t size = job.grid[3];
  // The taps of output pixels left..right are all in the image.
  const int64_t step = job.steps[2];
  const int64_t reach = (job.kernel[2] - 1) * job.dilation[2] - job.padding[2];
  int64_t left = (job.padding[2] + step - 1) / step;
  int64_t right = job.in_sizes[2] - reach > 0 ? (job.in_sizes[2] - reach - 1) / step + 1 : 0;
  if (right > size) right = size;
  if (left > right) left = right;
  constexpr int kMost = kDepthwisePixels;
  if constexpr (kWidth > 0) {
    if (size >= kMost) return DepthwiseTiles<kMost, kWidth, kStep>(row, left, right);
    if (size >= 4) return DepthwiseTiles<4, kWidth, kStep>(row, left, right);
  }
  int64_t x = 0;
  for (; x < left; ++x) DepthwiseBorder<kGrouped>(row, x);
  if constexpr (kWidth == 0) {
    if (right - left >= kMost) {
      DepthwiseInside<kMost, kGrouped>(row, left, right);
      x = right;
    } else if (right - left >= 4) {
      DepthwiseInside<4, kGrouped>(row, left, right);
      x = right;
    }
  }
  for (; x < size; ++x) DepthwiseBorder<kGrouped>(row, x);
}

using DepthwiseRowFunction = void (*)(const DepthwiseRow&);

DepthwiseRowFunction FindDepthwise(const DepthwiseJob& job) {
  if (job.group > 1) return DepthwiseRowOf<0, 0, true>;
  if (job.dilation[2] != 1 || job.steps[2] > 2) return DepthwiseRowOf<0, 0, false>;
  const bool wide = job.steps[2] == 2;
  switch (job.kernel[2]) {
    case 3:
      return wide ? DepthwiseRowOf<3, 2, false> : DepthwiseRowOf<3, 1, false>;
    case 5:
      return wide ? DepthwiseRowOf<5, 2, false> : DepthwiseRowOf<5, 1, false>;
    case 7:
      return wide ? DepthwiseRowOf<0, 0, false> : DepthwiseRowOf<7, 1, false>;
    default:
      break;
  }
  if constexpr (kWidestDepthwise == 11) {
    if (job.kernel[2] == 9 && !wide) return DepthwiseRowOf<9, 1, false>;
    if (job.kernel[2] == 11 && !wide) return DepthwiseRowOf<11, 1, false>;
  }
  return DepthwiseRowOf<0, 0, false>;
}

void RunDepthwise(const DepthwiseJob& job, int64_t first, int64_t last) {
  const DepthwiseRowFunction run = FindDepthwise(job);
  const int64_t column_weights = RoundUp(job.channels, kConvBlock);
  const int64_t row_weights = job.kernel[2] * job.group * column_weights;
  for (int64_t i = first; i < last; ++i) {
    const int64_t h = i % job.grid[2];
    const int64_t d = i / job.grid[2] % job.grid[1];
    const int64_t n = i / job.grid[2] / job.grid[1];
    const int64_t at[2] = {d * job.steps[0] - job.padding[0], h * job.steps[1] - job.padding[1]};
    int64_t inside[2];
    DepthwiseRow row = {
        job,
        job.out + n * job.out_strides[0] + d * job.out_strides[1] + h * job.out_strides[2],
        job.epilogue.residual,
        job.in + n * job.in_strides[0] - job.padding[2] * job.in_strides[3],
        job.weights,
        {},
        {job.dilation[0] * job.in_strides[1], job.dilation[1] * job.in_strides[2]},
        {job.kernel[1] * row_weights, row_weights},
        column_weights,
        job.steps[2] * job.in_strides[3]};
    if (row.residual != nullptr) {
      const int64_t (&strides)[4] = job.epilogue.residual_strides;
      row.residual += n * strides[0] + d * strides[1] + h * strides[2];
    }
    for (int j = 0; j < 2; ++j) {
      int64_t last = 0;
      FindInside(job.in_sizes[j], at[j], job.dilation[j], job.kernel[j], inside[j], last);
      row.rows[j] = last > inside[j] ? last - inside[j] : 0;
      row.in += (at[j] + inside[j] * job.dilation[j]) * job.in_strides[j + 1];
      row.weights += inside[j] * row.weight_steps[j];
    }
    run(row);
  }
}

}  // namespace
}  // namespace AOTI_ISA
}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_KERNELS_CONV_DEPTHWISE_H_
