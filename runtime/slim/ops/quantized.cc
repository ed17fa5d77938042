// Linear layers with 8-bit and 4-bit weights.

#include "runtime/slim/kernels/quantized.h"

#include <algorithm>
#include <atomic>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/cpu/kernels.h"
#include "runtime/slim/ops/quantized_floats.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

using std::int64_t;
using std::size_t;

// Rows of activations that stay in the L2 cache while the weights are read.
constexpr int64_t kRows = 96;
// With more rows than this, converting the weights to float for float products is faster.
constexpr int64_t kInt8DotsRows = 32;
// From this number of rows on, integer products of panels are faster than those of rows.
constexpr int64_t kPlanesRows = 16;

const QuantizedKernels& Kernels() {
#if defined(__x86_64__)
  if (CurrentCpuLevel() == CpuLevel::kX86V4 && CurrentCpuHasVnni()) return x86_v4::kQuantizedVnni;
#endif
  return AOTI_SLIM_CURRENT_KERNELS(kQuantized);
}

void RequireFloating(const char* op, const Tensor& x) {
  const bool taken = x.dtype() == ScalarType::kFloat32 || x.dtype() == ScalarType::kBFloat16 ||
                     x.dtype() == ScalarType::kFloat16;
  Require(taken, op, ": takes float32, bfloat16 or float16, not ", NameOf(x.dtype()));
}

int PlanesOf(const Tensor& x) { return x.dtype() == ScalarType::kFloat32 ? 3 : 2; }

// Activations in the form that Int8Dots reads: as integers if possible.
class Int8Activations {
 public:
  Int8Activations(const QuantizedKernels& kernels, const Tensor& x)
      : rows_(x),
        k_(x.size(1)),
        runs_((k_ + kInt8Run - 1) / kInt8Run),
        integers_(kernels.int8_round == nullptr ? 0 : static_cast<size_t>(x.size(0) * runs_)),
        as_integers_(kernels.int8_round != nullptr) {
    if (!as_integers_) return;
    std::atomic<bool> finite = true;
    internal::ParallelFor(0, x.size(0), GrainOf(k_), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Int8Round round = {k_, floats(i), PlanesOf(x), integers_.data() + i * runs_};
        if (!kernels.int8_round(round)) finite = false;
      }
    });
    as_integers_ = finite;
  }

  bool as_integers() const { return as_integers_; }
  const float* floats(int64_t row) const { return rows_.data() + row * k_; }
  const Int8Run* runs(int64_t row) const { return integers_.data() + row * runs_; }

 private:
  FloatRows rows_;
  int64_t k_, runs_;
  Scratch<Int8Run> integers_;
  bool as_integers_;
};

void Int8ByDots(const QuantizedKernels& kernels, const Int8Activations& x, int planes,
                const Tensor& weight, const float* scales, const Tensor& out) {
  const int64_t m = out.size(0), n = out.size(1), k = weight.size(1);
  const auto kernel = x.as_integers() ? kernels.int8_run_dots[planes - 2] : kernels.int8_dots;
  constexpr int64_t kUnit = 16;
  const int64_t chunk = m == 1 ? kStreamedColumns : 64;
  const int64_t units = (n + kUnit - 1) / kUnit;
  internal::ParallelFor(0, units, GrainOf(m * k * kUnit), [&](int64_t first, int64_t last) {
    const int64_t end = std::min(last * kUnit, n);
    DispatchFloating(out.dtype(), [&]<typename T>() {
      for (int64_t i = 0; i < m; i += kRows) {
        const int64_t rows = std::min(kRows, m - i);
        for (int64_t j = first * kUnit; j < end; j += chunk) {
          const int64_t columns = std::min(chunk, end - j);
          FloatResults<T> results(out.data<T>() + i * n + j, n, rows, columns);
          kernel({.m = rows,
                  .n = columns,
                  .k = k,
                  .a = x.floats(i),
                  .runs = x.runs(i),
                  .b = weight.data<std::int8_t>() + j * k,
                  .scales = scales + j,
                  .c = results.data(),
                  .c_row = results.row()});
          results.Finish();
        }
      }
    });
  });
}

// Blocks of columns whose panels are made at once, and with the rows stay in the L2 cache.
constexpr int64_t kPlaneBlocks = 4;

// Products of many rows with 8-bit or 4-bit weights. fill(product, column, panels): sets what
// belongs to a block of columns.
template <typename Fill>
void ByPlanes(const QuantizedKernels& kernels, const PlanesProduct& all, int raise,
              const Tensor& out, int64_t columns, const Fill& fill) {
  const int64_t m = out.size(0), n = out.size(1), k = all.x.k;
  const int64_t groups = CeilDiv(k, all.x.group);
  Scratch<std::int32_t> starts(static_cast<size_t>(m * groups * all.x.count));
  internal::ParallelFor(0, m, GrainOf(k), [&](int64_t first, int64_t last) {
    Planes rows = all.x;
    rows.data += first * rows.row;
    kernels.planes_starts(rows, last - first, raise, starts.data() + first * groups * all.x.count);
  });
  const int64_t panel = Int8PanelSize(k);
  const int64_t blocks = CeilDiv(columns, kInt4Block);
  internal::ParallelFor(0, blocks, GrainOf(m * k * kInt4Block), [&](int64_t first, int64_t last) {
    Scratch<std::uint32_t> panels(static_cast<size_t>(kPlaneBlocks * 2 * panel));
    Scratch<float> scales(static_cast<size_t>(kPlaneBlocks * groups * 2 * kInt4Block));
    for (int64_t block = first; block < last; block += kPlaneBlocks) {
      const int64_t some = std::min(kPlaneBlocks, last - block);
      PlanesProduct products[kPlaneBlocks];
      for (int64_t b = 0; b < some; ++b) {
        const int64_t column = (block + b) * kInt4Block;
        products[b] = all;
        products[b].columns = std::min<int64_t>(kInt4Block, columns - column);
        products[b].b_panel = panel;
        fill(products[b], column, panels.data() + b * 2 * panel,
             scales.data() + b * groups * 2 * kInt4Block);
        products[b].b = panels.data() + b * 2 * panel;
      }
      DispatchFloating(out.dtype(), [&]<typename T>() {
        for (int64_t i = 0; i < m; i += kRows) {
          const int64_t rows = std::min(kRows, m - i);
          for (int64_t b = 0; b < some; ++b) {
            PlanesProduct product = products[b];
            FloatResults<T> results(out.data<T>() + i * n + (block + b) * kInt4Block, n, rows,
                                    product.columns);
            product.m = rows;
            product.x.data += i * product.x.row;
            product.steps = product.StepAt(i, 0);
            if (product.sums != nullptr) product.sums += i * groups;
            product.starts = starts.data() + i * groups * product.x.count;
            product.c = results.data();
            product.c_row = results.row();
            kernels.planes_product[product.x.count - 2](product);
            results.Finish();
          }
        }
      });
    }
  });
}

void Int8ByPlanes(const QuantizedKernels& kernels, const Int8Activations& x, int planes,
                  const Tensor& weight, const float* scales, const Tensor& out) {
  const int64_t k = weight.size(1), runs = CeilDiv(k, kInt8Run);
  constexpr std::int64_t kBytes = sizeof(Int8Run);
  PlanesProduct all = {};
  all.x = {.k = k,
           .group = kInt8Run,
           .count = planes,
           .data = x.runs(0)->planes[0],
           .row = runs * kBytes,
           .run = kBytes,
           .plane = kInt8Run};
  all.steps = &x.runs(0)->step;
  all.steps_row = runs * kBytes;
  all.steps_group = kBytes;
  const auto* numbers = weight.data<std::int8_t>();
  ByPlanes(kernels, all, 128, out, out.size(1),
           [&](PlanesProduct& product, int64_t column, std::uint32_t* panels, float*) {
             for (int64_t j = 0; j < product.columns; j += kPanel) {
               kernels.int8_fours(numbers + (column + j) * k, k,
                                  std::min<int64_t>(kPanel, product.columns - j), k, true,
                                  panels + j / kPanel * product.b_panel);
             }
             product.scales = scales + column;
           });
}

TensorPtr Int8Linear(const Tensor& x, const Tensor& weight, const Tensor& scales) {
  const char* op = "_weight_int8pack_mm";
  RequireFloating(op, x);
  Require(x.rank() == 2 && weight.rank() == 2 && scales.rank() == 1, op,
          ": takes matrices and a vector of scales, not tensors of rank ", x.rank(), ", ",
          weight.rank(), " and ", scales.rank());
  Require(weight.dtype() == ScalarType::kInt8, op, ": the weight is ", NameOf(weight.dtype()),
          ", must be int8");
  Require(scales.dtype() == x.dtype(), op, ": the scales are ", NameOf(scales.dtype()),
          ", must be ", NameOf(x.dtype()));
  Require(weight.is_contiguous(), op, ": the weight must be contiguous");
  const int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  Require(weight.size(1) == k && scales.size(0) == n, op, ": sizes [", m, ", ", k, "], [", n, ", ",
          weight.size(1), "] and [", scales.size(0), "] do not match");
  TensorPtr result = Empty(x.dtype(), {m, n});
  if (m == 0 || n == 0) return result;
  const QuantizedKernels& kernels = Kernels();
  const FloatRows factors(scales, 1, n, 0, scales.stride(0));
  const Int8Activations activations(kernels, x);
  if (activations.as_integers() && m >= kPlanesRows && k > 0) {
    Int8ByPlanes(kernels, activations, PlanesOf(x), weight, factors.data(), *result);
    return result;
  }
  if (activations.as_integers() || m <= kInt8DotsRows) {
    Int8ByDots(kernels, activations, PlanesOf(x), weight, factors.data(), *result);
    return result;
  }
  const std::int8_t* numbers = weight.data<std::int8_t>();
  ByFloats(k, activations.floats(0), factors.data(), *result, 0,
           [&](int64_t j, int64_t rows, float* panels) {
             for (int64_t r = 0; r < rows; r += kPanel, panels += kPanel * k) {
               const int64_t some = std::min<int64_t>(kPanel, rows - r);
               kernels.int8_transpose(numbers + (j + r) * k, k, some, k, panels, kPanel);
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

// Activations in the form that Int4Dots reads.
class Int4Activations {
 public:
  Int4Activations(const QuantizedKernels& kernels, const float* x, const Int4Problem& p, int planes)
      : k_(p.k),
        groups_(p.k / p.group),
        planes_(planes),
        bytes_(static_cast<size_t>(p.m * planes * p.k)),
        steps_(static_cast<size_t>(p.m * groups_)),
        sums_(static_cast<size_t>(p.m * groups_)) {
    std::atomic<bool> finite = true;
    internal::ParallelFor(0, p.m, GrainOf(p.k), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        Int4Round round = {.k = k_,
                           .group = p.group,
                           .x = x + i * k_,
                           .planes = planes_,
                           .to = {},
                           .steps = steps_.data() + i * groups_,
                           .sums = sums_.data() + i * groups_};
        for (int plane = 0; plane < planes_; ++plane) {
          round.to[plane] = bytes_.data() + (i * planes_ + plane) * k_;
        }
        if (!kernels.int4_round(round)) finite = false;
      }
    });
    finite_ = finite;
  }

  // False if x has an infinity or NaN, which integers can't represent.
  bool finite() const { return finite_; }

  void Set(PlanesProduct& product, int64_t group) const {
    product.x = {.k = k_,
                 .group = group,
                 .count = planes_,
                 .data = bytes_.data(),
                 .row = planes_ * k_,
                 .run = group,
                 .plane = k_};
    product.steps = steps_.data();
    product.steps_row = groups_ * static_cast<int64_t>(sizeof(float));
    product.steps_group = sizeof(float);
    product.sums = sums_.data();
  }

  void Set(Int4Dots& dots, int64_t row) const {
    for (int p = 0; p < planes_; ++p) dots.planes[p] = bytes_.data() + (row * planes_ + p) * k_;
    dots.steps = steps_.data() + row * groups_;
    dots.sums = sums_.data() + row * groups_;
  }

 private:
  int64_t k_, groups_;
  int planes_;
  bool finite_ = true;
  Scratch<std::int8_t> bytes_;
  Scratch<float> steps_;
  Scratch<float> sums_;
};

// Computes all complete blocks of weights.
void Int4ByDots(const QuantizedKernels& kernels, const Int4Problem& p, const Int4Activations& x,
                const Tensor& out) {
  const int64_t grain = GrainOf(p.m * p.k * kInt4Block);
  internal::ParallelFor(0, p.n / kInt4Block, grain, [&](int64_t first, int64_t last) {
    Int4Dots dots = {};
    dots.k = p.k;
    dots.group = p.group;
    dots.scales_row = 2 * p.n;
    DispatchFloating(out.dtype(), [&]<typename T>() {
      const auto kernel = kernels.int4_dots[kGemmTypeOf<T>];
      for (int64_t block = first; block < last; ++block) {
        dots.weights = p.weights + block * p.k * (kInt4Block / 2);
        dots.scales = p.scales->data<T>() + block * kInt4Block * 2;
        for (int64_t i = 0; i < p.m; ++i) {
          T* to = out.data<T>() + i * p.n + block * kInt4Block;
          FloatResults<T> results(to, p.n, 1, kInt4Block);
          x.Set(dots, i);
          dots.out = results.data();
          kernel(dots);
          results.Finish();
        }
      }
    });
  });
}

// scales[group][2][kInt4Block] of one block, in the form that Int4Widen reads.
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

// Computes all complete blocks of weights.
void Int4ByPlanes(const QuantizedKernels& kernels, const Int4Problem& p, const Int4Activations& x,
                  const Tensor& out) {
  PlanesProduct all = {};
  x.Set(all, p.group);
  all.zeros = true;
  ByPlanes(kernels, all, 8, out, p.n / kInt4Block * kInt4Block,
           [&](PlanesProduct& product, int64_t column, std::uint32_t* panels, float* scales) {
             kernels.int4_fours(p.weights + column * p.k / 2, p.k, panels, product.b_panel);
             DispatchFloating(out.dtype(),
                              [&]<typename T>() { BlockScales<T>(p, column, kInt4Block, scales); });
             product.scales = scales;
           });
}

// Computes all of out, or its last 16 columns.
void Int4ByFloats(const QuantizedKernels& kernels, const Int4Problem& p, const float* x,
                  int64_t first_column, const Tensor& out) {
  const auto widen = [&](int64_t j, int64_t rows, float* panels) {
    Scratch<float> scales(static_cast<size_t>(p.k / p.group * 2 * kInt4Block));
    DispatchFloating(out.dtype(), [&]<typename T>() { BlockScales<T>(p, j, rows, scales.data()); });
    kernels.int4_widen({.k = p.k,
                        .group = p.group,
                        .weights = p.weights + j * p.k / 2,
                        .scales = scales.data(),
                        .rows = static_cast<int>(rows),
                        .to = panels});
  };
  ByFloats(p.k, x, nullptr, out, first_column, widen);
}

TensorPtr Int4Linear(const Tensor& x, const Tensor& weight, int64_t group, const Tensor& scales) {
  const char* op = "_weight_int4pack_mm_for_cpu";
  RequireFloating(op, x);
  Require(x.rank() == 2 && weight.rank() == 2 && scales.rank() == 3, op,
          ": takes two matrices and scales of rank 3, not tensors of rank ", x.rank(), ", ",
          weight.rank(), " and ", scales.rank());
  Require(weight.dtype() == ScalarType::kUInt8, op, ": the weight is ", NameOf(weight.dtype()),
          ", must be uint8");
  Require(scales.dtype() == x.dtype(), op, ": scales and zeros are ", NameOf(scales.dtype()),
          ", must be ", NameOf(x.dtype()));
  Require(group == 32 || group == 64 || group == 128 || group == 256, op, ": groups of ", group,
          ", must be 32, 64, 128 or 256");
  const int64_t m = x.size(0), k = x.size(1), n = weight.size(0);
  Require(weight.size(1) * 2 == k && k % group == 0 && n % 16 == 0, op, ": sizes [", m, ", ", k,
          "] and [", n, ", ", weight.size(1),
          "] (two values per byte) do not match, or can't be split into groups of ", group);
  Require(scales.size(0) == k / group && scales.size(1) == n && scales.size(2) == 2, op,
          ": scales and zeros are [", scales.size(0), ", ", scales.size(1), ", ", scales.size(2),
          "], must be [", k / group, ", ", n, ", 2]");
  Require(weight.is_contiguous() && scales.is_contiguous(), op,
          ": weight and scales must be contiguous");
  TensorPtr result = Empty(x.dtype(), {m, n});
  if (m == 0 || n == 0) return result;
  const QuantizedKernels& kernels = Kernels();
  const Int4Problem problem = {m, n, k, group, weight.data<std::uint8_t>(), &scales};
  const FloatRows rows(x);
  int64_t done = 0;
  const bool planes = m >= kPlanesRows && k > 0 && kernels.int4_fours != nullptr;
  if (planes || (m <= kernels.int4_dots_rows && kernels.int4_dots[0] != nullptr)) {
    const Int4Activations activations(kernels, rows.data(), problem, PlanesOf(x));
    if (activations.finite()) {
      (planes ? Int4ByPlanes : Int4ByDots)(kernels, problem, activations, *result);
      done = n / kInt4Block * kInt4Block;
    }
  }
  if (done < n) Int4ByFloats(kernels, problem, rows.data(), done, *result);
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
