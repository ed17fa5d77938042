#include "runtime/slim/ops/linalg.h"

#include <string>
#include <string_view>

#include "runtime/slim/abi/dispatcher.h"

namespace aoti::slim {

ScalarType RealDType(ScalarType dtype) {
  if (dtype == ScalarType::kComplex64) return ScalarType::kFloat32;
  return dtype == ScalarType::kComplex128 ? ScalarType::kFloat64 : dtype;
}

void RequireMatrices(const char* name, const Tensor& a) {
  Require(a.rank() >= 2, name, ": a tensor of rank ", a.rank(),
          " was given, matrices have rank 2 or more");
}

void RequireSquare(const char* name, const Tensor& a) {
  RequireMatrices(name, a);
  Require(a.size(a.rank() - 2) == a.size(a.rank() - 1), name, ": the matrices are of ",
          a.size(a.rank() - 2), " by ", a.size(a.rank() - 1), ", must be square");
}

void RequireSystem(const char* name, const Tensor& a, const Tensor& b, bool left) {
  RequireSquare(name, a);
  RequireMatrices(name, b);
  Require(a.dtype() == b.dtype(), name, ": dtypes differ: ", NameOf(a.dtype()), " and ",
          NameOf(b.dtype()));
  const std::int64_t size = a.size(a.rank() - 1);
  Require(b.size(b.rank() - (left ? 2 : 1)) == size, name, ": matrices of ", size, " by ", size,
          " and right-hand sides of ", b.size(b.rank() - 2), " by ", b.size(b.rank() - 1),
          " do not match");
}

Shape Leading(const Tensor& a, std::int64_t count, std::initializer_list<std::int64_t> more) {
  Shape sizes(a.sizes().first(static_cast<std::size_t>(a.rank() - count)));
  for (const std::int64_t size : more) sizes.Append(size);
  return sizes;
}

TensorPtr EmptyColumnMajor(ScalarType dtype, Ints sizes) {
  const std::size_t rank = sizes.size();
  if (rank < 2) return Empty(dtype, sizes);
  Shape strides(sizes);
  strides[rank - 2] = 1;
  strides[rank - 1] = std::max<std::int64_t>(sizes[rank - 2], 1);
  std::int64_t stride =
      CheckedProduct(strides[rank - 1], std::max<std::int64_t>(sizes[rank - 1], 1));
  for (std::size_t d = rank - 2; d-- > 0;) {
    strides[d] = stride;
    stride = CheckedProduct(stride, std::max<std::int64_t>(sizes[d], 1));
  }
  return EmptyStrided(dtype, sizes, strides);
}

TensorPtr ColumnMajorCopy(const Tensor& from) { return ColumnMajorCopy(from, from.sizes()); }

TensorPtr ColumnMajorCopy(const Tensor& from, Ints sizes) {
  TensorPtr copy = EmptyColumnMajor(from.dtype(), sizes);
  Copy(*copy, from);
  return copy;
}

TensorPtr AsColumns(const Tensor& vectors) {
  Shape sizes(vectors.sizes()), strides(vectors.strides());
  sizes.Append(1);
  strides.Append(1);
  return View(vectors, sizes, strides, vectors.offset());
}

namespace {

std::string Meaning(std::string_view name, std::int32_t info) {
  const auto about = [&](std::string_view what) { return name.find(what) != name.npos; };
  if (about("inv")) {
    return StrCat("the diagonal element ", info,
                  " is zero, the matrix is singular: it has no inverse");
  }
  if (about("solve")) return "the matrix is singular: there is no solution";
  if (about("cholesky")) {
    return StrCat("the matrix is not positive-definite: its leading minor of order ", info,
                  " is not");
  }
  if (about("svd")) {
    return StrCat(
        "it did not converge: the matrix is ill-conditioned, or has numbers that are not ",
        "finite (error code: ", info, ")");
  }
  if (about("eig") || about("syevd")) {
    return StrCat(
        "it did not converge: the matrix is ill-conditioned, or has numbers that are not ",
        "finite (error code: ", info, ")");
  }
  if (about("lstsq")) return StrCat("the matrix does not have full rank (error code: ", info, ")");
  if (about("lu_factor")) {
    return StrCat("U[", info, ",", info, "] is zero: solving with it would divide by zero");
  }
  if (about("ldl_factor")) {
    return StrCat("block ", info, " of D is zero: solving with it would divide by zero");
  }
  return StrCat("unknown error code ", info);
}

}  // namespace

void CheckInfo(std::string_view name, const Tensor& info) {
  Require(info.dtype() == ScalarType::kInt32, name, ": info is ", NameOf(info.dtype()),
          ", must be int32");
  std::int64_t element = 0;
  ForEachOffset(info.sizes(), {info.strides()}, [&](const std::int64_t* at) {
    const std::int32_t value = info.data<std::int32_t>()[at[0]];
    if (value != 0) {
      throw OpError(info.rank() == 0
                        ? StrCat(name, ": ", Meaning(name, value))
                        : StrCat(name, ": (batch element ", element, "): ", Meaning(name, value)));
    }
    ++element;
  });
}

namespace {

// info, name, is_matrix (which info's rank says, too).
void CheckErrors(StableIValue* stack) {
  const TensorPtr info = TakeTensor(stack[0]);
  const TakenText name(stack[1]);
  CheckInfo(name.view(), *info);
}

}  // namespace
}  // namespace aoti::slim

AOTI_SLIM_DISPATCHER_OP(aten__linalg_check_errors, "aten::_linalg_check_errors", "",
                        aoti::slim::CheckErrors)
