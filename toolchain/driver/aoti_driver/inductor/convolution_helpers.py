"""The C++ functions with which generated code calls the operators of convolution_epilogue.py and
convolution_chain.py.
"""

from __future__ import annotations

# Inserted before a wrapper that calls them. The slim runtime has the operators; on libtorch,
# PyTorch's convolution and the kernel below compute them.
WRAPPER_HELPERS = """\
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#ifdef AOTI_SLIM
extern "C" AOTITorchError aoti_slim_convolution_epilogue(
    AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle scale, AtenTensorHandle shift,
    AtenTensorHandle residual, const int64_t* geometry, int64_t dims, int64_t groups,
    int32_t transposed, int32_t activation, int32_t residual_last, float low, float high,
    int32_t narrow, AtenTensorHandle into, AtenTensorHandle* ret0);
extern "C" AOTITorchError aoti_slim_convolution_chain(
    AtenTensorHandle input, int64_t count, const AtenTensorHandle* weights,
    const AtenTensorHandle* scales, const AtenTensorHandle* shifts, AtenTensorHandle residual,
    const int64_t* geometry, int64_t groups, const int32_t* activations, int32_t residual_last,
    const float* lows, const float* highs, int32_t narrow, AtenTensorHandle into,
    AtenTensorHandle* ret0);
#else
extern "C" void cpp_convolution_epilogue(float* out, const float* scale, const float* shift,
                                         const float* residual, int64_t residual_channels,
                                         int64_t pixels, int64_t channels, int32_t activation,
                                         bool residual_last, float low, float high);
#endif

namespace aoti_convolution {
namespace {

using ::torch::aot_inductor::RAIIAtenTensorHandle;

// Null handles stand for what is missing.
struct Epilogue {
  AtenTensorHandle scale, shift, residual;
  int32_t activation;
  bool residual_last;
  float low, high;
};

// Stride, padding before, padding behind, dilation, each for every spatial dim.
template <int count>
using Numbers = int64_t[count];
using Geometry = Numbers<8>;

struct Kind {
  int64_t groups;
  bool transposed;
  bool narrow;  // whether the result is rounded to bfloat16
};

// A convolution of a chain; only the last one may have a residual.
struct Stage {
  AtenTensorHandle weight;
  Epilogue epilogue;
  bool narrow;  // whether the result is rounded to bfloat16
};

template <int count>
struct Stages {
  Stage at[count];
};

#ifdef AOTI_SLIM
template <int count>
AtenTensorHandle RunTo(AtenTensorHandle into, AtenTensorHandle x, AtenTensorHandle weight,
                       const Numbers<count>& geometry, const Kind& kind,
                       const Epilogue& epilogue) {
  AtenTensorHandle result = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_slim_convolution_epilogue(
      x, weight, epilogue.scale, epilogue.shift, epilogue.residual, geometry, count / 4,
      kind.groups, kind.transposed, epilogue.activation, epilogue.residual_last, epilogue.low,
      epilogue.high, kind.narrow, into, &result));
  return result;
}

template <int count>
AtenTensorHandle RunChainTo(AtenTensorHandle into, AtenTensorHandle x, const Geometry& geometry,
                            int64_t groups, const Stages<count>& stages) {
  AtenTensorHandle weights[count], scales[count], shifts[count];
  int32_t activations[count];
  float lows[count], highs[count];
  for (int i = 0; i < count; ++i) {
    const Epilogue& epilogue = stages.at[i].epilogue;
    weights[i] = stages.at[i].weight;
    scales[i] = epilogue.scale;
    shifts[i] = epilogue.shift;
    activations[i] = epilogue.activation;
    lows[i] = epilogue.low;
    highs[i] = epilogue.high;
  }
  const auto& [_, last, narrow] = stages.at[count - 1];
  AtenTensorHandle result = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_slim_convolution_chain(
      x, count, weights, scales, shifts, last.residual, geometry, groups, activations,
      last.residual_last, lows, highs, narrow, into, &result));
  return result;
}

// The result is a new tensor, or written to `out`, some of the channels of a larger tensor.
template <int count>
RAIIAtenTensorHandle Run(AtenTensorHandle x, AtenTensorHandle weight,
                         const Numbers<count>& geometry, const Kind& kind,
                         const Epilogue& epilogue) {
  return RAIIAtenTensorHandle(RunTo<count>(nullptr, x, weight, geometry, kind, epilogue));
}

template <int count>
void RunInto(AtenTensorHandle out, AtenTensorHandle x, AtenTensorHandle weight,
             const Numbers<count>& geometry, const Kind& kind, const Epilogue& epilogue) {
  RunTo<count>(out, x, weight, geometry, kind, epilogue);
}

template <int count>
RAIIAtenTensorHandle RunChain(AtenTensorHandle x, const Geometry& geometry, int64_t groups,
                              const Stages<count>& stages) {
  return RAIIAtenTensorHandle(RunChainTo<count>(nullptr, x, geometry, groups, stages));
}

template <int count>
void RunChainInto(AtenTensorHandle out, AtenTensorHandle x, const Geometry& geometry,
                  int64_t groups, const Stages<count>& stages) {
  RunChainTo<count>(out, x, geometry, groups, stages);
}
#else
// Batch, channels, depth, height, width. A line or an image has sizes of 1 for the missing dims.
struct Image {
  explicit Image(AtenTensorHandle tensor) {
    void* address = nullptr;
    int64_t *all_sizes = nullptr, *all_strides = nullptr;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &address));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(tensor, &rank));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(tensor, &all_sizes));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(tensor, &all_strides));
    data = static_cast<float*>(address);
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t place = d < 2 ? d : d + 5 - rank;
      sizes[place] = all_sizes[d];
      strides[place] = all_strides[d];
    }
  }

  int64_t count() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4]; }

  // Whether the pixels follow each other, and the channels in them.
  bool is_channels_last() const {
    int64_t next = 1;
    for (int d : {1, 4, 3, 2, 0}) {
      if (sizes[d] > 1 && strides[d] != next) return false;
      next *= sizes[d];
    }
    return true;
  }

  float* data;
  int64_t rank = 0;
  int64_t sizes[5] = {1, 1, 1, 1, 1}, strides[5] = {0, 0, 0, 0, 0};
};

// A copy whose channels are contiguous, with zeros around it.
RAIIAtenTensorHandle ChannelsLast(AtenTensorHandle tensor, const int64_t* before,
                                  const int64_t* after) {
  const Image from(tensor);
  const int64_t rank = from.rank;
  int64_t sizes[5], strides[5], skipped[3] = {0, 0, 0};
  for (int64_t d = 0; d < rank; ++d) sizes[d] = from.sizes[d < 2 ? d : d + 5 - rank];
  for (int64_t d = 2; d < rank; ++d) {
    sizes[d] += before[d - 2] + after[d - 2];
    skipped[d + 3 - rank] = before[d - 2];
  }
  strides[1] = 1;
  int64_t next = sizes[1];
  for (int64_t d = rank - 1; d >= 0; --d) {
    if (d == 1) continue;
    strides[d] = next;
    next *= sizes[d];
  }
  AtenTensorHandle raw = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      rank, sizes, strides, aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0, &raw));
  RAIIAtenTensorHandle copy(raw);
  const Image to(raw);
  std::memset(to.data, 0, to.count() * sizeof(float));
  const auto copy_pixel = [&](const float* source, float* target) {
    if (from.strides[1] == 1) {
      std::memcpy(target, source, from.sizes[1] * sizeof(float));
    } else {
      for (int64_t c = 0; c < from.sizes[1]; ++c) target[c] = source[c * from.strides[1]];
    }
  };
  for (int64_t n = 0; n < from.sizes[0]; ++n) {
    for (int64_t d = 0; d < from.sizes[2]; ++d) {
      for (int64_t h = 0; h < from.sizes[3]; ++h) {
        const float* source =
            from.data + n * from.strides[0] + d * from.strides[2] + h * from.strides[3];
        float* target = to.data + n * to.strides[0] + (d + skipped[0]) * to.strides[2] +
                        (h + skipped[1]) * to.strides[3] + skipped[2] * to.strides[4];
        for (int64_t w = 0; w < from.sizes[4]; ++w) {
          copy_pixel(source + w * from.strides[4], target + w * to.strides[4]);
        }
      }
    }
  }
  return copy;
}

// The same numbers in another dtype.
RAIIAtenTensorHandle Converted(AtenTensorHandle tensor, int32_t dtype) {
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(tensor, &rank));
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(tensor, &sizes));
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(tensor, &strides));
  AtenTensorHandle raw = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      rank, sizes, strides, dtype, aoti_torch_device_type_cpu(), 0, &raw));
  RAIIAtenTensorHandle copy(raw);
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(raw, tensor, 0));
  return copy;
}

template <int count>
RAIIAtenTensorHandle Run(AtenTensorHandle x, AtenTensorHandle weight,
                         const Numbers<count>& geometry, const Kind& kind,
                         const Epilogue& epilogue) {
  constexpr int dims = count / 4;
  int32_t dtype = 0;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x, &dtype));
  const bool narrow = dtype == aoti_torch_dtype_bfloat16();  // with the same zeros on both sides
  const int64_t none[dims] = {};
  const int64_t* before = geometry + dims;
  const int64_t* after = geometry + 2 * dims;
  int64_t more[dims];  // pixels of a transposed convolution that the padding behind leaves
  for (int d = 0; d < dims; ++d) more[d] = kind.transposed ? before[d] - after[d] : 0;
  const bool uneven = !kind.transposed && !std::equal(before, after, after);
  RAIIAtenTensorHandle image;
  if (!narrow && (uneven || !Image(x).is_channels_last())) {
    image = uneven ? ChannelsLast(x, before, after) : ChannelsLast(x, none, none);
    x = image.get();
  }
  const bool adds_bias = epilogue.scale == nullptr && !narrow;
  AtenTensorHandle bias = adds_bias ? epilogue.shift : nullptr;
  AtenTensorHandle raw = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(
      x, weight, bias == nullptr ? nullptr : &bias, geometry, dims, uneven ? none : before, dims,
      geometry + 3 * dims, dims, kind.transposed, more, dims, kind.groups, &raw));
  RAIIAtenTensorHandle result(raw);
  if (narrow) result = Converted(raw, aoti_torch_dtype_float32());
  if (!Image(result.get()).is_channels_last()) result = ChannelsLast(result.get(), none, none);
  RAIIAtenTensorHandle residual;
  AtenTensorHandle summand = epilogue.residual;
  RAIIAtenTensorHandle wide;
  if (summand != nullptr) {
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(summand, &dtype));
    if (dtype == aoti_torch_dtype_bfloat16()) {
      wide = Converted(summand, aoti_torch_dtype_float32());
      summand = wide.get();
    }
  }
  if (summand != nullptr && !Image(summand).is_channels_last()) {
    residual = ChannelsLast(summand, none, none);
    summand = residual.get();
  }
  const auto data = [](AtenTensorHandle tensor) {
    void* address = nullptr;
    if (tensor != nullptr) AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &address));
    return static_cast<const float*>(address);
  };
  const AtenTensorHandle shift = adds_bias ? nullptr : epilogue.shift;
  const bool more_follows =
      epilogue.scale != nullptr || shift != nullptr || summand != nullptr ||
      epilogue.activation != 0;
  const Image out(result.get());
  if (more_follows && out.count() > 0) {
    cpp_convolution_epilogue(out.data, data(epilogue.scale), data(shift), data(summand),
                             summand == nullptr ? 0 : Image(summand).sizes[1],
                             out.count() / out.sizes[1], out.sizes[1], epilogue.activation,
                             epilogue.residual_last, epilogue.low, epilogue.high);
  }
  if (kind.narrow) return Converted(result.get(), aoti_torch_dtype_bfloat16());
  return result;
}

template <int count>
void RunInto(AtenTensorHandle out, AtenTensorHandle x, AtenTensorHandle weight,
             const Numbers<count>& geometry, const Kind& kind, const Epilogue& epilogue) {
  const RAIIAtenTensorHandle result = Run<count>(x, weight, geometry, kind, epilogue);
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(out, result.get(), 0));
}

template <int count>
RAIIAtenTensorHandle RunChain(AtenTensorHandle x, const Geometry& geometry, int64_t groups,
                              const Stages<count>& stages) {
  const Geometry of_pixels = {1, 1, 0, 0, 0, 0, 1, 1};
  RAIIAtenTensorHandle result;
  for (int i = 0; i < count; ++i) {
    const bool filters = i == 1;
    result = Run<8>(x, stages.at[i].weight, filters ? geometry : of_pixels,
                    {filters ? groups : 1, false, stages.at[i].narrow}, stages.at[i].epilogue);
    x = result.get();
  }
  return result;
}

template <int count>
void RunChainInto(AtenTensorHandle out, AtenTensorHandle x, const Geometry& geometry,
                  int64_t groups, const Stages<count>& stages) {
  const RAIIAtenTensorHandle result = RunChain<count>(x, geometry, groups, stages);
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(out, result.get(), 0));
}
#endif

}  // namespace
}  // namespace aoti_convolution

"""

# A kernel as Inductor writes them: what follows the convolution, for libtorch.
KERNEL = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void cpp_convolution_epilogue(float* out, const float* scale, const float* shift,
                                         const float* residual, int64_t residual_channels,
                                         int64_t pixels, int64_t channels, int32_t activation,
                                         bool residual_last, float low, float high)
{
#if INDUCTOR_USE_VECTOR_TYPES()
    using Vec = at::vec::Vectorized<float>;
    const auto activated = [=](const Vec& x) -> Vec {
        switch (activation) {
            case 1: return at::vec::minimum(at::vec::maximum(x, Vec(low)), Vec(high));
            case 2: return x / (Vec(1.0f) + x.neg().exp());
            case 3: return x * at::vec::clamp(x + Vec(3.0f), Vec(0.0f), Vec(6.0f)) / Vec(6.0f);
            case 4: return Vec::blendv(x, x * Vec(low), x < Vec(0.0f));
            case 5: return x * Vec(0.5f) * ((x * Vec(0.70710678f)).erf() + Vec(1.0f));
            default: return x;
        }
    };
#else
    const auto activated = [=](float x) -> float {
        switch (activation) {
            case 1: return std::min(std::max(x, low), high);
            case 2: return x / (1.0f + std::exp(-x));
            case 3: return x * std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f;
            case 4: return x < 0.0f ? x * low : x;
            case 5: return x * 0.5f * (std::erf(x * 0.70710678f) + 1.0f);
            default: return x;
        }
    };
#endif
    const double nanoseconds = 0.2 * pixels * channels;
    const int most = aoti::kernel::ThreadsFor(pixels, nanoseconds);
    aoti::kernel::Parallel(most, [=](int thread, int threads) {
        const int64_t last = pixels * (thread + 1) / threads;
        for (int64_t p = pixels * thread / threads; p < last; ++p) {
#if INDUCTOR_USE_VECTOR_TYPES()
            for (int64_t c = 0; c < channels; c += Vec::size()) {
                const int64_t count = std::min<int64_t>(Vec::size(), channels - c);
                float* at = out + p * channels + c;
                Vec x = Vec::loadu(at, count);
                if (scale != nullptr) x = x * Vec::loadu(scale + c, count);
                if (shift != nullptr) x = x + Vec::loadu(shift + c, count);
                Vec summand(0.0f);
                if (c < residual_channels) {
                    const int64_t own = std::min(count, residual_channels - c);
                    summand = Vec::loadu(residual + p * residual_channels + c, own);
                    if (!residual_last) x = x + summand;
                }
                x = activated(x);
                if (residual != nullptr && residual_last) x = x + summand;
                x.store(at, count);
            }
#else
            for (int64_t c = 0; c < channels; ++c) {
                float& element = out[p * channels + c];
                const float summand =
                    c < residual_channels ? residual[p * residual_channels + c] : 0.0f;
                float x = element;
                if (scale != nullptr) x *= scale[c];
                if (shift != nullptr) x += shift[c];
                if (!residual_last) x += summand;
                x = activated(x);
                element = residual_last ? x + summand : x;
            }
#endif
        }
    });
}
"""
