// Linear layers with 8-bit and 4-bit weights.

#include "runtime/slim/kernels/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi.h"
#include "runtime/slim/cpu.h"
#include "runtime/slim/dispatcher.h"
#include "runtime/slim/error.h"
#include "runtime/slim/gemm.h"
#include "runtime/slim/tensor.h"

namespace aoti::slim {
namespace {

using std::int64_t;
using std::size_t;

// Columns of weights for one thread, at least.
constexpr int64_t kGrainBytes = 1 << 16;
// For more rows of x than this it pays to turn the weights into floats first.
constexpr int64_t kInt4DotsRows = 8;
constexpr int64_t kWidenedFloats = 1 << 17;

const QuantizedKernels& Kernels() {
#if defined(__x86_64__)
  switch (CurrentCpuLevel()) {
    case CpuLevel::kX86V4:
      return x86_v4::kQuantized;
    case CpuLevel::kX86V3:
      return x86_v3::kQuantized;
    default:
      return baseline::kQuantized;
  }
#else
  return neon::kQuantized;
#endif
}

void RequireFloating(const char* op, const Tensor& x) {
  const bool taken =
      x.dtype() == DType::kFloat32 || x.dtype() == DType::kBFloat16 || x.dtype() == DType::kFloat16;
  Require(taken, op, ": takes float32, bfloat16 or float16, not ", NameOf(x.dtype()));
}

// x[m, k] as contiguous float.
class FloatRows {
 public:
  explicit FloatRows(const Tensor& x)
      : borrowed_(x.dtype() == DType::kFloat32 && x.is_contiguous()),
        copy_(borrowed_ ? 0 : static_cast<size_t>(x.numel())),
        data_(borrowed_ ? x.data<float>() : copy_.data()) {
    if (borrowed_) return;
    const int64_t rows = x.size(0), columns = x.size(1);
    DispatchFloating(x.dtype(), [&]<typename T>() {
      for (int64_t i = 0; i < rows; ++i) {
        const T* from = x.data<T>() + i * x.stride(0);
        float* to = copy_.data() + i * columns;
        for (int64_t k = 0; k < columns; ++k) to[k] = static_cast<float>(from[k * x.stride(1)]);
      }
    });
  }
  const float* data() const { return data_; }

 private:
  bool borrowed_;
  Scratch<float> copy_;
  const float* data_;
};

TensorPtr Int8Linear(const Tensor& x, const Tensor& weight, const Tensor& scales) {
  const char* op = "_weight_int8pack_mm";
  RequireFloating(op, x);
  Require(x.rank() == 2 && weight.rank() == 2 && scales.rank() == 1, op,
          ": takes matrices and a vector of scales, not tensors of rank ", x.rank(), ", ",
          weight.rank(), " and ", scales.rank());
  Require(weight.dtype() == DType::kInt8, op, ": the weight is ", NameOf(weight.dtype()),
          ", must be int8");
  Require(scales.dtype() == x.dtype(), op, ": the scales are ", NameOf(scales.dtype()),
          ", must be ", NameOf(x.dtype()));
  Require(weight.is_contiguous(), op, ": the weight must be contiguous");
  const int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  Require(weight.size(1) == k && scales.size(0) == n, op, ": sizes [", m, ", ", k, "], [", n, ", ",
          weight.size(1), "] and [", scales.size(0), "] don't fit");
  TensorPtr result = Empty(x.dtype(), {m, n});
  if (m == 0 || n == 0) return result;
  const FloatRows rows(x);
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, m * k));
  internal::ParallelFor(0, n, grain, [&](int64_t first, int64_t last) {
    constexpr int64_t kChunk = 64;
    Scratch<float> sums(static_cast<size_t>(m * kChunk));
    for (int64_t j0 = first; j0 < last; j0 += kChunk) {
      const int64_t columns = std::min(kChunk, last - j0);
      Kernels().int8_dots({.m = m,
                           .n = columns,
                           .k = k,
                           .a = rows.data(),
                           .a_row = k,
                           .b = weight.data<std::int8_t>() + j0 * k,
                           .b_row = k,
                           .c = sums.data(),
                           .c_row = columns});
      DispatchFloating(x.dtype(), [&]<typename T>() {
        const T* scale = scales.data<T>();
        for (int64_t i = 0; i < m; ++i) {
          T* out = result->data<T>() + i * n;
          for (int64_t j = 0; j < columns; ++j) {
            const float factor = static_cast<float>(scale[(j0 + j) * scales.stride(0)]);
            out[j0 + j] = static_cast<T>(sums[static_cast<size_t>(i * columns + j)] * factor);
          }
        }
      });
    }
  });
  return result;
}

// ------------------------------------------------------------------------------------------------

struct Int4Problem {
  int64_t m, n, k, group;
  const std::uint8_t* weights;
  const Tensor* scales;  // [k / group, n, 2], contiguous
};

// Activations as integers of 2 or 3 bytes, in the order of Int4Dots. The error is at most 2^-16 or
// 2^-24 of the largest of a run: as that of x itself, or less.
class Int4Activations {
 public:
  Int4Activations(const float* x, const Int4Problem& p, int planes)
      : k_(p.k),
        groups_(p.k / p.group),
        planes_(planes),
        bytes_(static_cast<size_t>(p.m * planes * p.k)),
        steps_(static_cast<size_t>(p.m * p.k / kInt4Run)),
        sums_(static_cast<size_t>(p.m * groups_)) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t g = 0; g < groups_; ++g) {
        float sum = 0;
        for (int64_t k = g * p.group; k < (g + 1) * p.group; ++k) sum += x[i * k_ + k];
        sums_[static_cast<size_t>(i * groups_ + g)] = sum;
      }
      for (int64_t k = 0; k < k_; k += kInt4Run) Round(i, k, x + i * k_ + k);
    }
  }

  // Not so where x has an infinity or NaN.
  bool valid() const { return valid_; }

  void Set(Int4Dots& dots, int64_t row) const {
    for (int p = 0; p < planes_; ++p) dots.planes[p] = bytes_.data() + (row * planes_ + p) * k_;
    dots.steps = steps_.data() + row * (k_ / kInt4Run);
    dots.sums = sums_.data() + row * groups_;
  }

 private:
  void Round(int64_t row, int64_t k0, const float* x) {
    float largest = 0;
    for (int k = 0; k < kInt4Run; ++k) {
      const float size = std::fabs(x[k]);
      largest = size > largest ? size : largest;
      if (!(size <= std::numeric_limits<float>::max())) valid_ = false;
    }
    if (!valid_) return;
    // The highest byte is at most 127, the others -128..127.
    const float most = planes_ == 2 ? 127.0f * 256 : 127.0f * 65536;
    const float step = std::max(largest / most, std::numeric_limits<float>::min());
    const float inverse = 1 / step;
    steps_[static_cast<size_t>((row * k_ + k0) / kInt4Run)] = step;
    for (int k = 0; k < kInt4Run; ++k) {
      std::int32_t rest = static_cast<std::int32_t>(std::lrint(x[k] * inverse));
      const int in_four = k % 4;
      const int place = k - in_four + (in_four == 1 ? 2 : in_four == 2 ? 1 : in_four);
      for (int p = 0; p < planes_; ++p) {
        const auto low = static_cast<std::int8_t>(rest);
        bytes_[static_cast<size_t>((row * planes_ + p) * k_ + k0 + place)] = low;
        rest = (rest - low) / 256;
      }
    }
  }

  int64_t k_, groups_;
  int planes_;
  bool valid_ = true;
  Scratch<std::int8_t> bytes_;
  Scratch<float> steps_;
  Scratch<float> sums_;
};

int TypeIndex(DType dtype) {
  return dtype == DType::kFloat32 ? 0 : dtype == DType::kBFloat16 ? 1 : 2;
}

void Int4ByDots(const Int4Problem& p, const Int4Activations& x, const Tensor& out) {
  const DType dtype = out.dtype();
  const auto kernel = Kernels().int4_dots[TypeIndex(dtype)];
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (p.m * p.k * kInt4Block / 2));
  internal::ParallelFor(0, p.n / kInt4Block, grain, [&](int64_t first, int64_t last) {
    float sums[kInt4Block];
    Int4Dots dots = {};
    dots.k = p.k;
    dots.group = p.group;
    dots.scales_row = 2 * p.n;
    dots.out = sums;
    for (int64_t block = first; block < last; ++block) {
      dots.weights = p.weights + block * p.k * (kInt4Block / 2);
      DispatchFloating(dtype, [&]<typename T>() {
        dots.scales = p.scales->data<T>() + block * kInt4Block * 2;
        for (int64_t i = 0; i < p.m; ++i) {
          x.Set(dots, i);
          kernel(dots);
          T* to = out.data<T>() + i * p.n + block * kInt4Block;
          for (int j = 0; j < kInt4Block; ++j) to[j] = static_cast<T>(sums[j]);
        }
      });
    }
  });
}

// scales[group][2][kInt4Block] of one block, as Int4Widen takes them.
template <typename T>
void BlockScales(const Int4Problem& p, int64_t j0, int64_t rows, float* scales) {
  const T* from = p.scales->data<T>();
  for (int64_t g = 0; g < p.k / p.group; ++g, scales += 2 * kInt4Block) {
    for (int64_t j = 0; j < rows; ++j) {
      const T* pair = from + (g * p.n + j0 + j) * 2;
      scales[j] = static_cast<float>(pair[0]);
      scales[kInt4Block + j] = static_cast<float>(pair[1]);
    }
  }
}

// The blocks of weights first..last, as floats.
void Int4ByFloats(const Int4Problem& p, const float* x, int64_t first, int64_t last,
                  const Tensor& out) {
  // As many at a time as stay in the L2 cache.
  const int64_t blocks = std::clamp<int64_t>(kWidenedFloats / (p.k * kInt4Block), 1, last - first);
  const int64_t columns = blocks * kInt4Block;
  Scratch<float> scales(static_cast<size_t>(p.k / p.group * 2 * kInt4Block));
  Scratch<float> panels(static_cast<size_t>(columns * p.k));
  Scratch<float> sums(static_cast<size_t>(p.m * columns));
  DispatchFloating(out.dtype(), [&]<typename T>() {
    for (int64_t begin = first * kInt4Block; begin < last * kInt4Block; begin += columns) {
      const int64_t end = std::min({begin + columns, last * kInt4Block, p.n});
      for (int64_t j = begin; j < end; j += kInt4Block) {
        const int64_t rows = std::min<int64_t>(kInt4Block, p.n - j);
        BlockScales<T>(p, j, rows, scales.data());
        Kernels().int4_widen({.k = p.k,
                              .group = p.group,
                              .weights = p.weights + j * p.k / 2,
                              .scales = scales.data(),
                              .rows = static_cast<int>(rows),
                              .to = panels.data() + (j - begin) * p.k});
      }
      Gemm(GemmF32{.m = p.m,
                   .n = end - begin,
                   .k = p.k,
                   .a = x,
                   .a_row = p.k,
                   .a_col = 1,
                   .b = nullptr,
                   .b_row = 0,
                   .b_col = 0,
                   .packed_b = panels.data(),
                   .c = sums.data(),
                   .c_row = columns});
      for (int64_t i = 0; i < p.m; ++i) {
        T* to = out.data<T>() + i * p.n + begin;
        const float* sum = sums.data() + i * columns;
        for (int64_t j = 0; j < end - begin; ++j) to[j] = static_cast<T>(sum[j]);
      }
    }
  });
}

TensorPtr Int4Linear(const Tensor& x, const Tensor& weight, int64_t group, const Tensor& scales) {
  const char* op = "_weight_int4pack_mm_for_cpu";
  RequireFloating(op, x);
  Require(x.rank() == 2 && weight.rank() == 2 && scales.rank() == 3, op,
          ": takes two matrices and scales of rank 3, not tensors of rank ", x.rank(), ", ",
          weight.rank(), " and ", scales.rank());
  Require(weight.dtype() == DType::kUInt8, op, ": the weight is ", NameOf(weight.dtype()),
          ", must be uint8");
  Require(scales.dtype() == x.dtype(), op, ": scales and zeros are ", NameOf(scales.dtype()),
          ", must be ", NameOf(x.dtype()));
  Require(group == 32 || group == 64 || group == 128 || group == 256, op, ": groups of ", group,
          ", must be 32, 64, 128 or 256");
  const int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  Require(weight.size(1) * 2 == k && k % group == 0 && n % 16 == 0, op, ": sizes [", m, ", ", k,
          "] and [", n, ", ", weight.size(1), "] (of two each) don't fit, or not to groups of ",
          group);
  Require(scales.size(0) == k / group && scales.size(1) == n && scales.size(2) == 2, op,
          ": scales and zeros are [", scales.size(0), ", ", scales.size(1), ", ", scales.size(2),
          "], must be [", k / group, ", ", n, ", 2]");
  Require(weight.is_contiguous() && scales.is_contiguous(), op,
          ": weight and scales must be contiguous");
  TensorPtr result = Empty(x.dtype(), {m, n});
  if (m == 0 || n == 0) return result;
  const Int4Problem problem = {m, n, k, group, weight.data<std::uint8_t>(), &scales};
  const FloatRows rows(x);
  const int planes = x.dtype() == DType::kFloat32 ? 3 : 2;
  const int64_t blocks = (n + kInt4Block - 1) / kInt4Block;
  int64_t done = 0;
  if (m <= kInt4DotsRows && Kernels().int4_dots[0] != nullptr) {
    const Int4Activations activations(rows.data(), problem, planes);
    if (activations.valid()) {
      Int4ByDots(problem, activations, *result);
      done = n / kInt4Block;
    }
  }
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, m * k));
  internal::ParallelFor(done, blocks, grain, [&](int64_t first, int64_t last) {
    Int4ByFloats(problem, rows.data(), first, last, *result);
  });
  return result;
}

void Int4LinearOp(StableIValue* stack) {
  const TensorPtr x = TakeTensor(stack[0]);
  const TensorPtr weight = TakeTensor(stack[1]);
  const int64_t group = TakeInt(stack[2]);
  const TensorPtr scales = TakeTensor(stack[3]);
  stack[0] = Give(Int4Linear(*x, *weight, group, *scales));
}

}  // namespace

AOTI_SLIM_DISPATCHER_OP(aten__weight_int4pack_mm_for_cpu, "aten::_weight_int4pack_mm_for_cpu", "",
                        Int4LinearOp)

}  // namespace aoti::slim

extern "C" AOTITorchError aoti_torch_cpu__weight_int8pack_mm(AtenTensorHandle self,
                                                             AtenTensorHandle mat2,
                                                             AtenTensorHandle scales,
                                                             AtenTensorHandle* ret0) {
  return aoti::slim::Guarded(
      [&] { *ret0 = aoti::slim::Int8Linear(*self, *mat2, *scales).release(); });
}
