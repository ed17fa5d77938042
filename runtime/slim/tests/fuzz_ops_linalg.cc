// Linear algebra.

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

namespace aoti::slim::fuzz {
namespace {

ScalarType MatrixType(Case& c) {
  return c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64, ScalarType::kComplex64,
                        ScalarType::kComplex128});
}

// The sizes of a batch of matrices.
Sizes MatrixSizes(Case& c, std::int64_t rows, std::int64_t columns) {
  Sizes sizes;
  for (std::int64_t d = c.random.Range(0, 2); d > 0; --d) sizes.push_back(c.random.Range(0, 3));
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

Sizes SquareSizes(Case& c) {
  const std::int64_t size = c.Size();
  return MatrixSizes(c, size, size);
}

// The sizes of right-hand sides for matrices of these sizes.
Sizes SideSizes(Case& c, const Sizes& matrix, bool left) {
  const std::int64_t size = matrix.back(), sides = c.Size();
  Sizes sizes(matrix.begin(), matrix.end() - 2);
  if (c.random.Chance(0.3)) sizes.clear();
  sizes.push_back(left ? size : sides);
  sizes.push_back(left ? sides : size);
  return sizes;
}

// Whether a matrix is singular may depend on rounding, and so on the CPU's level: no operator is
// told to fail for that.
constexpr bool kCheckErrors = false;

template <Name kName, std::size_t kResults>
AOTITorchError OfSquare(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), SquareSizes(c)) << kCheckErrors;
  return stack.Call(kName.text, "", kResults);
}

AOTITorchError CholeskyEx(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), SquareSizes(c)) << c.random.Chance(0.5) << kCheckErrors;
  return stack.Call("aten::linalg_cholesky_ex", "", 2);
}

template <Name kName>
AOTITorchError LuOf(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), MatrixSizes(c, c.Size(), c.Size())) << c.random.Chance(0.9)
        << kCheckErrors;
  return stack.Call(kName.text, "", 3);
}

AOTITorchError SolveEx(Case& c) {
  const Sizes sizes = SquareSizes(c);
  const ScalarType type = MatrixType(c);
  const bool left = c.random.Chance(0.5);
  Stack stack(c);
  stack << c.In(type, sizes)
        << c.In(type, c.random.Chance(0.2) ? Sizes(sizes.begin(), sizes.end() - 1)
                                           : SideSizes(c, sizes, left))
        << left << kCheckErrors;
  return stack.Call("aten::_linalg_solve_ex", "", 4);
}

AOTITorchError LuSolve(Case& c) {
  const Sizes sizes = SquareSizes(c);
  const ScalarType type = MatrixType(c);
  const bool left = c.random.Chance(0.5);
  Stack stack(c);
  stack << c.In(type, sizes)
        << c.Index(ScalarType::kInt32, Sizes(sizes.begin(), sizes.end() - 1), 1, sizes.back() + 1)
        << c.In(type, SideSizes(c, sizes, left)) << left << c.random.Chance(0.5);
  return stack.Call("aten::linalg_lu_solve", "");
}

AOTITorchError SolveTriangular(Case& c) {
  const Sizes sizes = SquareSizes(c);
  const ScalarType type = MatrixType(c);
  const bool left = c.random.Chance(0.5);
  Stack stack(c);
  stack << c.In(type, sizes) << c.In(type, SideSizes(c, sizes, left)) << c.random.Chance(0.5)
        << left << c.random.Chance(0.5);
  return stack.Call("aten::linalg_solve_triangular", "");
}

AOTITorchError Qr(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), MatrixSizes(c, c.Size(), c.Size()))
        << c.Word({"reduced", "complete", "r"});
  return stack.Call("aten::linalg_qr", "", 2);
}

AOTITorchError Geqrf(Case& c) {
  return aoti_torch_cpu_geqrf(c.In(MatrixType(c), MatrixSizes(c, c.Size(), c.Size())), c.Result(),
                              c.Result());
}

AOTITorchError Ormqr(Case& c) {
  const std::int64_t rows = c.Size();
  const bool left = c.random.Chance(0.5);
  const ScalarType type = MatrixType(c);
  const Sizes sizes = MatrixSizes(c, rows, c.Size());
  Sizes taus(sizes.begin(), sizes.end() - 1), other(sizes.begin(), sizes.end() - 2);
  taus.back() = std::min(rows, sizes.back());
  const std::int64_t free = c.Size();
  other.push_back(left ? rows : free);
  other.push_back(left ? free : rows);
  return aoti_torch_cpu_ormqr(c.In(type, sizes), c.In(type, taus), c.In(type, other), left,
                              c.Flag(), c.Result());
}

AOTITorchError HouseholderProduct(Case& c) {
  const std::int64_t columns = c.Size(), count = c.random.Range(0, columns);
  const Sizes sizes = MatrixSizes(c, columns + c.Size(), columns);
  Sizes taus(sizes.begin(), sizes.end() - 1);
  taus.back() = count;
  const ScalarType type = MatrixType(c);
  Stack stack(c);
  stack << c.In(type, sizes) << c.In(type, taus);
  return stack.Call("aten::linalg_householder_product", "");
}

AOTITorchError LdlFactorEx(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), SquareSizes(c)) << c.random.Chance(0.5) << kCheckErrors;
  return stack.Call("aten::linalg_ldl_factor_ex", "", 3);
}

AOTITorchError LdlSolve(Case& c) {
  const Sizes sizes = SquareSizes(c), rows(sizes.begin(), sizes.end() - 1);
  const ScalarType type = MatrixType(c);
  // Blocks of one row, or of two that all exchange the same row.
  const bool pairs = c.random.Chance(0.4);
  Stack stack(c);
  stack << c.In(type, sizes)
        << c.Index(ScalarType::kInt32, rows, pairs ? -1 : 1, pairs ? 0 : rows.back() + 1)
        << c.In(type, SideSizes(c, sizes, true)) << c.random.Chance(0.5);
  return stack.Call("aten::linalg_ldl_solve", "");
}

AOTITorchError Eig(Case& c) {
  const std::int64_t size = std::min<std::int64_t>(c.Size(), 20);  // larger ones take long
  Stack stack(c);
  stack << c.In(MatrixType(c), MatrixSizes(c, size, size));
  return stack.Call("aten::linalg_eig", "", 2);
}

AOTITorchError Eigh(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), SquareSizes(c)) << c.Word({"L", "U"}) << c.random.Chance(0.5);
  return stack.Call("aten::_linalg_eigh", "", 2);
}

AOTITorchError Svd(Case& c) {
  Stack stack(c);
  stack << c.In(MatrixType(c), MatrixSizes(c, c.Size(), c.Size())) << c.random.Chance(0.5)
        << c.random.Chance(0.5) << nullptr;
  return stack.Call("aten::_linalg_svd", "", 3);
}

AOTITorchError CheckErrors(Case& c) {
  Stack stack(c);
  stack << c.Index(ScalarType::kInt32, c.Shape(0, 3), 0, 2)
        << c.Word({"linalg.inv", "linalg.cholesky", "linalg.svd", "linalg.other"}) << false;
  return stack.Call("aten::_linalg_check_errors", "", 0);
}

template <Name kName, std::size_t kRank>
AOTITorchError Product(Case& c) {
  const std::int64_t batch = c.random.Range(0, 3), inner = c.Size();
  const ScalarType type = MatrixType(c);
  Sizes left = {c.Size(), inner}, right = {inner, c.Size()};
  if (kRank == 3) {
    left.insert(left.begin(), batch);
    right.insert(right.begin(), batch);
  }
  Stack stack(c);
  stack << c.In(type, left) << c.In(type, right);
  return stack.Call(kName.text, "");
}

AOTITorchError NormalTensorFloat(Case& c) {
  Stack stack(c);
  stack << c.In(c.FloatType(), c.Shape(0, 4)) << c.random.Unit() << nullptr;
  return stack.Call("aten::normal", "Tensor_float");
}

AOTITorchError NormalFloatTensor(Case& c) {
  Stack stack(c);
  const Handle std = c.In(c.FloatType(), c.Shape(0, 4));
  if (!c.Wrong()) aoti_torch_cpu_fill__Scalar(std, 0.5);
  stack << c.Real() << std << nullptr;
  return stack.Call("aten::normal", "float_Tensor");
}

AOTITorchError NormalTensorTensor(Case& c) {
  const Sizes shape = c.Shape(0, 4);
  Stack stack(c);
  const Handle std = c.In(c.FloatType(), c.Broadcastable(shape));
  if (!c.Wrong()) aoti_torch_cpu_fill__Scalar(std, 0.5);
  stack << c.In(c.FloatType(), c.Broadcastable(shape)) << std << nullptr;
  return stack.Call("aten::normal", "Tensor_Tensor");
}

AOTITorchError CholeskySolve(Case& c) {
  const Sizes sizes = SquareSizes(c);
  const ScalarType type = MatrixType(c);
  return aoti_torch_cpu_cholesky_solve(c.In(type, SideSizes(c, sizes, true)), c.In(type, sizes),
                                       c.Flag(), c.Result());
}

AOTITorchError CholeskyInverse(Case& c) {
  return aoti_torch_cpu_cholesky_inverse(c.In(MatrixType(c), SquareSizes(c)), c.Flag(), c.Result());
}

AOTITorchError TriangularSolve(Case& c) {
  const Sizes sizes = SquareSizes(c);
  const ScalarType type = MatrixType(c);
  return aoti_torch_cpu_triangular_solve(c.In(type, SideSizes(c, sizes, true)), c.In(type, sizes),
                                         c.Flag(), c.Flag(), c.Flag(), c.Result(), c.Result());
}

AOTITorchError LuUnpack(Case& c) {
  const Sizes sizes = MatrixSizes(c, c.Size(), c.Size());
  const std::int64_t rows = sizes[sizes.size() - 2];
  Sizes pivots(sizes.begin(), sizes.end() - 1);
  pivots.back() = std::min(rows, sizes.back());
  return aoti_torch_cpu_lu_unpack(c.In(MatrixType(c), sizes),
                                  c.Index(ScalarType::kInt32, pivots, 1, rows + 1), c.Flag(),
                                  c.Flag(), c.Result(), c.Result(), c.Result());
}

constexpr Op kOps[] = {
    {"aten::_linalg_check_errors", CheckErrors},
    {"aten::linalg_cholesky_ex", CholeskyEx},
    {"aten::linalg_inv_ex", OfSquare<"aten::linalg_inv_ex", 2>},
    {"aten::_linalg_det", OfSquare<"aten::_linalg_det", 3>},
    {"aten::_linalg_slogdet", OfSquare<"aten::_linalg_slogdet", 4>},
    {"aten::linalg_matrix_exp", OfSquare<"aten::linalg_matrix_exp", 1>},
    {"aten::linalg_lu_factor_ex", LuOf<"aten::linalg_lu_factor_ex">},
    {"aten::linalg_lu", LuOf<"aten::linalg_lu">},
    {"aten::linalg_lu_solve", LuSolve},
    {"aten::_linalg_solve_ex", SolveEx},
    {"aten::linalg_solve_triangular", SolveTriangular},
    {"aten::linalg_qr", Qr},
    {"geqrf", Geqrf},
    {"ormqr", Ormqr},
    {"aten::linalg_householder_product", HouseholderProduct},
    {"aten::linalg_ldl_factor_ex", LdlFactorEx},
    {"aten::linalg_ldl_solve", LdlSolve},
    {"aten::linalg_eig", Eig},
    {"aten::_linalg_eigh", Eigh},
    {"aten::_linalg_svd", Svd},
    {"aten::mm", Product<"aten::mm", 2>},
    {"aten::bmm", Product<"aten::bmm", 3>},
    {"aten::normal.Tensor_float", NormalTensorFloat},
    {"aten::normal.float_Tensor", NormalFloatTensor},
    {"aten::normal.Tensor_Tensor", NormalTensorTensor},
    {"cholesky_solve", CholeskySolve},
    {"cholesky_inverse", CholeskyInverse},
    {"triangular_solve", TriangularSolve},
    {"lu_unpack", LuUnpack},
};

}  // namespace

std::span<const Op> LinalgOps() { return kOps; }

}  // namespace aoti::slim::fuzz
