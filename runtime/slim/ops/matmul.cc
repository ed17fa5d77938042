// mm, addmm, bmm and related operators.

#include <cmath>
#include <cstring>

#include "runtime/core/parallel.h"
#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/gemm/gemm_int8.h"
#include "runtime/slim/gemm/plain.h"
#include "runtime/slim/kernels/gemm.h"
#include "runtime/slim/ops/packed_matrix.h"
#include "runtime/slim/tensor/error.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

using std::int64_t;
using Matrix = MatrixIn;

Matrix MatrixOf(const Tensor& t) { return {&t, 0, t.size(0), t.size(1), t.stride(0), t.stride(1)}; }

Matrix MatrixOf(const Tensor& t, int64_t batch) {
  return {&t, batch * t.stride(0), t.size(1), t.size(2), t.stride(1), t.stride(2)};
}

// `t`, which has up to 2 dims, broadcast to [rows, columns].
Matrix Broadcast(const char* op, const Tensor& t, int64_t rows, int64_t columns) {
  Matrix matrix = {&t, 0, rows, columns, 0, 0};
  const int64_t rank = t.rank();
  const bool fits = rank <= 2 &&
                    (rank < 1 || t.size(rank - 1) == columns || t.size(rank - 1) == 1) &&
                    (rank < 2 || t.size(0) == rows || t.size(0) == 1);
  Require(fits, op, ": the first argument's sizes don't broadcast to [", rows, ", ", columns, "]");
  if (rank >= 1 && t.size(rank - 1) == columns) matrix.column = t.stride(rank - 1);
  if (rank >= 2 && t.size(0) == rows) matrix.row = t.stride(0);
  return matrix;
}

template <typename T>
T* Data(const Matrix& matrix) {
  return matrix.tensor->data<T>() + matrix.offset;
}

void RunFloat(GemmType type, const Matrix& c, const Matrix* bias, const Matrix& a, const Matrix& b,
              double beta, double alpha, GemmActivation activation = GemmActivation::kNone) {
  const auto at = [](const Matrix& matrix, int64_t size) -> void* {
    return static_cast<char*>(matrix.tensor->data()) + matrix.offset * size;
  };
  const int64_t size = type == GemmType::kFloat ? 4 : 2;
  const void* packed = PackedMatrix(b, type);
  Gemm(GemmAny{.type = type,
               .m = c.rows,
               .n = c.columns,
               .k = a.columns,
               .a = at(a, size),
               .a_row = a.row,
               .a_col = a.column,
               .b = packed != nullptr ? nullptr : at(b, size),
               .b_row = b.row,
               .b_col = b.column,
               .packed_b = packed,
               .c = at(c, size),
               .c_row = c.row,
               .c_col = c.column,
               .alpha = static_cast<float>(alpha),
               .beta = static_cast<float>(beta),
               .bias = bias == nullptr ? nullptr : at(*bias, size),
               .bias_row = bias == nullptr ? 0 : bias->row,
               .bias_col = bias == nullptr ? 0 : bias->column,
               .activation = activation});
}

template <typename In, typename Out, typename Right = In>
void RunPlain(const Matrix& c, const Matrix* bias, const Matrix& a, const Matrix& b, Out beta,
              Out alpha) {
  if (beta == Out(0)) bias = nullptr;
  RunPlainMatmul(PlainMatmul<In, Out, Right>{.m = c.rows,
                                             .n = c.columns,
                                             .k = alpha == Out(0) ? 0 : a.columns,
                                             .a = Data<In>(a),
                                             .a_row = a.row,
                                             .a_col = a.column,
                                             .b = Data<Right>(b),
                                             .b_row = b.row,
                                             .b_col = b.column,
                                             .c = Data<Out>(c),
                                             .c_row = c.row,
                                             .c_col = c.column,
                                             .alpha = alpha,
                                             .beta = beta,
                                             .bias = bias == nullptr ? nullptr : Data<Out>(*bias),
                                             .bias_row = bias == nullptr ? 0 : bias->row,
                                             .bias_col = bias == nullptr ? 0 : bias->column});
}

template <typename T>
void RunInteger(const Matrix& c, const Matrix* bias, const Matrix& a, const Matrix& b, double beta,
                double alpha) {
  RunPlain<T, T>(c, bias, a, b, static_cast<T>(static_cast<int64_t>(beta)),
                 static_cast<T>(static_cast<int64_t>(alpha)));
}

// c = activation(beta * bias + alpha * a @ b); sizes and dtypes were checked. The activation is for
// dtypes up to float32.
void Run(const char* op, const Matrix& c, const Matrix* bias, const Matrix& a, const Matrix& b,
         double beta, double alpha, GemmActivation activation = GemmActivation::kNone) {
  const ScalarType dtype = c.tensor->dtype();
  switch (dtype) {
    case ScalarType::kFloat32:
      return RunFloat(GemmType::kFloat, c, bias, a, b, beta, alpha, activation);
    case ScalarType::kBFloat16:
      return RunFloat(GemmType::kBFloat16, c, bias, a, b, beta, alpha, activation);
    case ScalarType::kFloat16:
      return RunFloat(GemmType::kFloat16, c, bias, a, b, beta, alpha, activation);
    case ScalarType::kFloat64:
      return RunPlain<double, double>(c, bias, a, b, beta, alpha);
    case ScalarType::kComplex64:
      return RunPlain<std::complex<float>, std::complex<float>>(
          c, bias, a, b, static_cast<float>(beta), static_cast<float>(alpha));
    case ScalarType::kComplex128:
      return RunPlain<std::complex<double>, std::complex<double>>(c, bias, a, b, beta, alpha);
    case ScalarType::kUInt8:
      return RunInteger<std::uint8_t>(c, bias, a, b, beta, alpha);
    case ScalarType::kInt8:
      return RunInteger<std::int8_t>(c, bias, a, b, beta, alpha);
    case ScalarType::kInt16:
      return RunInteger<std::int16_t>(c, bias, a, b, beta, alpha);
    case ScalarType::kInt32:
      return RunInteger<std::int32_t>(c, bias, a, b, beta, alpha);
    case ScalarType::kInt64:
      return RunInteger<std::int64_t>(c, bias, a, b, beta, alpha);
    default:
      throw OpError(StrCat(op, ": not supported for tensors of ", NameOf(dtype)));
  }
}

void RequireSame(const char* op, const Tensor& a, const Tensor& b) {
  Require(a.dtype() == b.dtype(), op, ": dtypes differ: ", NameOf(a.dtype()), " and ",
          NameOf(b.dtype()));
}

void RequireRank(const char* op, const Tensor& t, int64_t rank) {
  Require(t.rank() == rank, op, ": a tensor of rank ", t.rank(), " was given, ", rank,
          " is needed");
}

void RequireProduct(const char* op, const Matrix& a, const Matrix& b) {
  Require(a.columns == b.rows, op, ": matrices of sizes [", a.rows, ", ", a.columns, "] and [",
          b.rows, ", ", b.columns, "] cannot be multiplied");
}

void RequireOut(const char* op, const Matrix& out, const Matrix& a, const Matrix& b) {
  Require(out.rows == a.rows && out.columns == b.columns, op, ": out's sizes are [", out.rows, ", ",
          out.columns, "], must be [", a.rows, ", ", b.columns, "]");
}

// bias may be null.
void AddMm(const char* op, const Tensor& out, const Tensor* bias, const Tensor& a, const Tensor& b,
           double beta, double alpha, GemmActivation activation = GemmActivation::kNone) {
  for (const Tensor* t : {&out, &a, &b}) RequireRank(op, *t, 2);
  RequireSame(op, a, b);
  RequireSame(op, a, out);
  const Matrix c = MatrixOf(out), left = MatrixOf(a), right = MatrixOf(b);
  RequireProduct(op, left, right);
  RequireOut(op, c, left, right);
  if (bias == nullptr) return Run(op, c, nullptr, left, right, 0, alpha, activation);
  RequireSame(op, a, *bias);
  const Matrix added = Broadcast(op, *bias, c.rows, c.columns);
  Run(op, c, &added, left, right, beta, alpha, activation);
}

// A tensor of at most 3 dims, broadcast to [batch, rows, columns].
TensorPtr Broadcast3(const char* op, const Tensor& t, const Tensor& like) {
  int64_t strides[3] = {};
  Require(t.rank() <= 3, op, ": the first argument has rank ", t.rank(), ", at most 3 is needed");
  for (int64_t d = 0; d < t.rank(); ++d) {
    const int64_t to = 3 - t.rank() + d;
    const bool same = t.size(d) == like.size(to);
    Require(same || t.size(d) == 1, op, ": the first argument's size ", t.size(d),
            " doesn't broadcast to ", like.size(to));
    if (same) strides[to] = t.stride(d);
  }
  return View(t, like.sizes(), Ints(strides, 3), t.offset());
}

void BAddBmm(const char* op, const Tensor& out, const Tensor* bias, const Tensor& a,
             const Tensor& b, double beta, double alpha) {
  for (const Tensor* t : {&out, &a, &b}) RequireRank(op, *t, 3);
  RequireSame(op, a, b);
  RequireSame(op, a, out);
  const int64_t batch = out.size(0);
  Require(a.size(0) == batch && b.size(0) == batch, op, ": batches of ", a.size(0), " and ",
          b.size(0), " for an out of ", batch);
  TensorPtr added;
  if (bias != nullptr) {
    RequireSame(op, a, *bias);
    added = Broadcast3(op, *bias, out);
  }
  if (batch == 0) return;
  RequireProduct(op, MatrixOf(a, 0), MatrixOf(b, 0));
  RequireOut(op, MatrixOf(out, 0), MatrixOf(a, 0), MatrixOf(b, 0));
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      Matrix bias_i = {};
      if (added != nullptr) bias_i = MatrixOf(*added, i);
      Run(op, MatrixOf(out, i), added == nullptr ? nullptr : &bias_i, MatrixOf(a, i),
          MatrixOf(b, i), beta, alpha);
    }
  };
  // With fewer products than threads, the threads work together on each product.
  if (batch < internal::MaxThreads()) return run(0, batch);
  const int64_t products = out.size(1) * out.size(2) * a.size(2);
  internal::ParallelFor(0, batch, std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, products)),
                        run);
}

TensorPtr AddMv(const Tensor& self, const Tensor& mat, const Tensor& vec, double beta,
                double alpha) {
  const char* op = "addmv";
  RequireRank(op, mat, 2);
  RequireRank(op, vec, 1);
  RequireSame(op, mat, vec);
  RequireSame(op, mat, self);
  TensorPtr result = Empty(mat.dtype(), {mat.size(0)});
  const Matrix a = MatrixOf(mat);
  const Matrix b = {&vec, 0, vec.size(0), 1, vec.stride(0), 1};
  RequireProduct(op, a, b);
  const Matrix c = {result.get(), 0, a.rows, 1, 1, 1};
  Matrix bias = Broadcast(op, self, 1, a.rows);
  bias.row = bias.column;
  bias.column = 0;
  Run(op, c, &bias, a, b, beta, alpha);
  return result;
}

TensorPtr AddBmm(const Tensor& self, const Tensor& a, const Tensor& b, double beta, double alpha) {
  const char* op = "addbmm";
  RequireRank(op, a, 3);
  RequireRank(op, b, 3);
  RequireSame(op, a, b);
  RequireSame(op, a, self);
  Require(a.size(0) == b.size(0), op, ": batches of ", a.size(0), " and ", b.size(0));
  Require(a.size(2) == b.size(1), op, ": matrices of sizes [", a.size(1), ", ", a.size(2),
          "] and [", b.size(1), ", ", b.size(2), "] cannot be multiplied");
  TensorPtr result = Empty(a.dtype(), {a.size(1), b.size(2)});
  const Matrix c = MatrixOf(*result);
  const Matrix bias = Broadcast(op, self, c.rows, c.columns);
  if (a.size(0) == 0) {
    const Matrix no_columns = {&a, 0, c.rows, 0, 0, 0}, no_rows = {&b, 0, 0, c.columns, 0, 0};
    Run(op, c, &bias, no_columns, no_rows, beta, alpha);
  }
  for (int64_t i = 0; i < a.size(0); ++i) {
    Run(op, c, i == 0 ? &bias : &c, MatrixOf(a, i), MatrixOf(b, i), i == 0 ? beta : 1, alpha);
  }
  return result;
}

template <typename T>
void Activate(const Tensor& t, bool gelu) {
  T* data = t.data<T>();
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t size = t.numel();
  for (int64_t i = 0; i < size; ++i) {
    const Real x = static_cast<Real>(data[i]);
    if (gelu) {
      data[i] = static_cast<T>(x * Real(0.5) * (1 + std::erf(x * Real(0.70710678118654752440))));
    } else if (x < 0) {
      data[i] = static_cast<T>(0);  // NaN stays NaN
    }
  }
}

TensorPtr AddMmActivation(const Tensor& self, const Tensor& a, const Tensor& b, double beta,
                          double alpha, bool gelu) {
  const char* op = "_addmm_activation";
  RequireRank(op, a, 2);
  RequireRank(op, b, 2);
  TensorPtr result = Empty(a.dtype(), {a.size(0), b.size(1)});
  if (a.dtype() == ScalarType::kFloat32 || a.dtype() == ScalarType::kBFloat16 ||
      a.dtype() == ScalarType::kFloat16) {
    AddMm(op, *result, &self, a, b, beta, alpha,
          gelu ? GemmActivation::kGelu : GemmActivation::kRelu);
    return result;
  }
  AddMm(op, *result, &self, a, b, beta, alpha);
  DispatchFloating(a.dtype(), [&]<typename T>() { Activate<T>(*result, gelu); });
  return result;
}

void IntMm(const Tensor& out, const Tensor& a, const Tensor& b) {
  const char* op = "_int_mm";
  for (const Tensor* t : {&out, &a, &b}) RequireRank(op, *t, 2);
  const bool is_unsigned = a.dtype() == ScalarType::kUInt8;
  Require((is_unsigned || a.dtype() == ScalarType::kInt8) && b.dtype() == ScalarType::kInt8 &&
              out.dtype() == ScalarType::kInt32,
          op, ": takes int8 or uint8, and int8, and gives int32, not ", NameOf(a.dtype()), ", ",
          NameOf(b.dtype()), " and ", NameOf(out.dtype()));
  const Matrix c = MatrixOf(out), left = MatrixOf(a), right = MatrixOf(b);
  RequireProduct(op, left, right);
  RequireOut(op, c, left, right);
  const bool by_rows = left.column == 1 && right.row == 1 && right.column == right.rows &&
                       c.column == 1 && (left.row >= left.columns || left.rows == 1);
  if (!is_unsigned && by_rows) {
    Gemm(GemmInt8{.m = c.rows,
                  .n = c.columns,
                  .k = left.columns,
                  .a = Data<std::int8_t>(left),
                  .a_row = left.row,
                  .b = Data<std::int8_t>(right),
                  .c = Data<std::int32_t>(c),
                  .c_row = c.row});
  } else if (is_unsigned) {
    RunPlain<std::uint8_t, std::int32_t, std::int8_t>(c, nullptr, left, right, 0, 1);
  } else {
    RunPlain<std::int8_t, std::int32_t>(c, nullptr, left, right, 0, 1);
  }
}

}  // namespace
}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_cpu_mm_out(AtenTensorHandle out, AtenTensorHandle self,
                                     AtenTensorHandle mat2) {
  return Guarded([&] { aoti::slim::AddMm("mm", *out, nullptr, *self, *mat2, 0, 1); });
}

AOTITorchError aoti_torch_cpu_addmm_out(AtenTensorHandle out, AtenTensorHandle self,
                                        AtenTensorHandle mat1, AtenTensorHandle mat2, double beta,
                                        double alpha) {
  return Guarded([&] { aoti::slim::AddMm("addmm", *out, self, *mat1, *mat2, beta, alpha); });
}

AOTITorchError aoti_torch_cpu_bmm_out(AtenTensorHandle out, AtenTensorHandle self,
                                      AtenTensorHandle mat2) {
  return Guarded([&] { aoti::slim::BAddBmm("bmm", *out, nullptr, *self, *mat2, 0, 1); });
}

AOTITorchError aoti_torch_cpu_baddbmm_out(AtenTensorHandle out, AtenTensorHandle self,
                                          AtenTensorHandle batch1, AtenTensorHandle batch2,
                                          double beta, double alpha) {
  return Guarded(
      [&] { aoti::slim::BAddBmm("baddbmm", *out, self, *batch1, *batch2, beta, alpha); });
}

AOTITorchError aoti_torch_cpu_addmv(AtenTensorHandle self, AtenTensorHandle mat,
                                    AtenTensorHandle vec, double beta, double alpha,
                                    AtenTensorHandle* ret0) {
  return Guarded([&] { *ret0 = aoti::slim::AddMv(*self, *mat, *vec, beta, alpha).release(); });
}

AOTITorchError aoti_torch_cpu_addbmm(AtenTensorHandle self, AtenTensorHandle batch1,
                                     AtenTensorHandle batch2, double beta, double alpha,
                                     AtenTensorHandle* ret0) {
  return Guarded(
      [&] { *ret0 = aoti::slim::AddBmm(*self, *batch1, *batch2, beta, alpha).release(); });
}

AOTITorchError aoti_torch_cpu__addmm_activation(AtenTensorHandle self, AtenTensorHandle mat1,
                                                AtenTensorHandle mat2, double beta, double alpha,
                                                int32_t use_gelu, AtenTensorHandle* ret0) {
  return Guarded([&] {
    *ret0 = aoti::slim::AddMmActivation(*self, *mat1, *mat2, beta, alpha, use_gelu != 0).release();
  });
}

AOTITorchError aoti_torch_cpu__int_mm_out(AtenTensorHandle out, AtenTensorHandle self,
                                          AtenTensorHandle mat2) {
  return Guarded([&] { aoti::slim::IntMm(*out, *self, *mat2); });
}

AOTITorchError aoti_torch__mm_plus_mm_out(AtenTensorHandle out, AtenTensorHandle a,
                                          AtenTensorHandle b, AtenTensorHandle c,
                                          AtenTensorHandle d) {
  return Guarded([&] {
    aoti::slim::AddMm("_mm_plus_mm", *out, nullptr, *a, *b, 0, 1);
    aoti::slim::AddMm("_mm_plus_mm", *out, out, *c, *d, 1, 1);
  });
}

}  // extern "C"
