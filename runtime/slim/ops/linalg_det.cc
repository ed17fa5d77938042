// Determinants.

#include <cmath>

#include "runtime/slim/abi/dispatcher.h"
#include "runtime/slim/ops/linalg.h"
#include "runtime/slim/ops/linalg_lu.h"

namespace aoti::slim {
namespace {

TensorPtr Transposed(const Tensor& a) {
  Shape sizes(a.sizes()), strides(a.strides());
  const auto rank = static_cast<std::size_t>(a.rank());
  std::swap(sizes[rank - 2], sizes[rank - 1]);
  std::swap(strides[rank - 2], strides[rank - 1]);
  return View(a, sizes, strides, a.offset());
}

// For determinants of matrices with contiguous rows, PyTorch factorises the transpose.
LuFactors FactorizeEither(const char* name, const Tensor& a) {
  RequireSquare(name, a);
  const bool transpose = a.is_contiguous() && !IsComplex(a.dtype());
  return FactorizeLu(name, transpose ? *Transposed(a) : a);
}

// The sign of the permutation: -1 for an odd number of exchanges.
int SignOf(const std::int32_t* pivots, std::int64_t count) {
  int sign = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (pivots[i] != i + 1) sign = -sign;
  }
  return sign;
}

// Calls body(i, matrix, sign of the pivots) for each matrix.
template <typename T, typename Body>
void ForEachFactor(const LuFactors& f, const Body& body) {
  const Matrices<T> matrices(*f.lu);
  const std::int64_t size = matrices.rows();
  for (std::int64_t i = 0; i < matrices.count(); ++i) {
    body(i, matrices[i], SignOf(f.pivots->data<std::int32_t>() + i * size, size));
  }
}

void Det(StableIValue* stack) {
  const char* name = "linalg.det";
  const TensorPtr a = TakeTensor(stack[0]);
  LuFactors f = FactorizeEither(name, *a);
  TensorPtr result = Empty(a->dtype(), Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    ForEachFactor<T>(f, [&](std::int64_t i, const MatrixView<T>& lu, int sign) {
      T product = T(1);
      for (std::int64_t j = 0; j < lu.rows; ++j) product = Product(product, lu(j, j));
      result->data<T>()[i] = product * Real<T>(sign);
    });
  });
  stack[0] = Give(std::move(result));
  stack[1] = Give(std::move(f.lu));
  stack[2] = Give(std::move(f.pivots));
}

// x / |x|, or 0 for 0.
template <typename T>
T SignOf(T x) {
  if constexpr (kComplex<T>) {
    const Real<T> length = std::abs(x);
    return length == 0 ? T(0) : x / length;
  } else {
    return static_cast<T>((x > 0) - (x < 0));
  }
}

void SlogDet(StableIValue* stack) {
  const char* name = "linalg.slogdet";
  const TensorPtr a = TakeTensor(stack[0]);
  LuFactors f = FactorizeEither(name, *a);
  TensorPtr signs = Empty(a->dtype(), Leading(*a, 2));
  TensorPtr logarithms = Empty(RealDType(a->dtype()), Leading(*a, 2));
  DispatchLinalg(name, a->dtype(), [&]<typename T>() {
    ForEachFactor<T>(f, [&](std::int64_t i, const MatrixView<T>& lu, int sign) {
      T product = T(Real<T>(sign));
      Real<T> sum = 0;
      for (std::int64_t j = 0; j < lu.rows; ++j) {
        product = Product(product, SignOf(lu(j, j)));
        sum += std::log(std::abs(lu(j, j)));
      }
      signs->data<T>()[i] = product;
      logarithms->data<Real<T>>()[i] = sum;
    });
  });
  stack[0] = Give(std::move(signs));
  stack[1] = Give(std::move(logarithms));
  stack[2] = Give(std::move(f.lu));
  stack[3] = Give(std::move(f.pivots));
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__linalg_det, "aten::_linalg_det", "", aoti::slim::Det)
AOTI_SLIM_DISPATCHER_OP(aten__linalg_slogdet, "aten::_linalg_slogdet", "", aoti::slim::SlogDet)
