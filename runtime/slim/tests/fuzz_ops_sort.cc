// Sorting (ops/sort*.cc), searching and scanning.

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

// The size of a dim, which may be negative; a scalar has one dim, of size 1.
std::int64_t SizeOfDim(const Sizes& shape, std::int64_t dim) {
  const std::int64_t rank = std::ssize(shape);
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? shape[static_cast<std::size_t>(dim)] : 1;
}

AOTITorchError Topk(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  const std::int64_t dim = c.Dim(shape.size());
  return aoti_torch_cpu_topk(self, c.Int(0, SizeOfDim(shape, dim)), dim, c.Flag(), c.Flag(),
                             c.Result(), c.Result());
}

AOTITorchError Sort(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  return aoti_torch_cpu_sort(self, c.Dim(shape.size()), c.Flag(), c.Result(), c.Result());
}

AOTITorchError SortStable(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  return aoti_torch_cpu_sort_stable(self, c.Maybe(c.Flag()), c.Dim(shape.size()), c.Flag(),
                                    c.Result(), c.Result());
}

AOTITorchError Kthvalue(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  const std::int64_t dim = c.Dim(shape.size());
  return aoti_torch_cpu_kthvalue(self, c.Int(1, SizeOfDim(shape, dim)), dim, c.Flag(), c.Result(),
                                 c.Result());
}

AOTITorchError Mode(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  return aoti_torch_cpu_mode(self, c.Dim(shape.size()), c.Flag(), c.Result(), c.Result());
}

template <auto kFunction>
AOTITorchError OfAll(Case& c) {
  return kFunction(c.In(c.RealType(), c.Shape(0, 5)), c.Result());
}

template <auto kFunction>
AOTITorchError Scan(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), shape);
  auto* const dtype = c.Maybe(static_cast<std::int32_t>(c.AnyType()));
  return kFunction(self, c.Dim(shape.size()), dtype, c.Result());
}

template <auto kFunction>
AOTITorchError ScanWithIndices(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.RealType(), shape);
  return kFunction(self, c.Dim(shape.size()), c.Result(), c.Result());
}

AOTITorchError Logcumsumexp(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.FloatType(), shape);
  return aoti_torch_cpu_logcumsumexp(self, c.Dim(shape.size()), c.Result());
}

AOTITorchError Bucketize(Case& c) {
  const ScalarType type = c.RealType();
  const Handle self = c.In(type, c.Shape(0, 5));
  const Handle boundaries = c.Ascending(type, {c.Size()});
  return aoti_torch_cpu_bucketize_Tensor(self, boundaries, c.Flag(), c.Flag(), c.Result());
}

// A permutation of positions; usually null.
Handle* Sorter(Case& c, const Sizes& shape) {
  if (c.random.Chance(0.7)) return nullptr;
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  return c.Keep(c.Index(ScalarType::kInt64, shape, 0, last));
}

AOTITorchError SearchsortedTensor(Case& c) {
  const ScalarType type = c.RealType();
  Sizes sequences = c.Shape(1, 4);
  Sizes values = sequences;
  values.back() = c.Size();
  if (c.random.Chance(0.3)) {
    sequences = {sequences.back()};
    values = c.Shape(0, 4);
  }
  const Handle sorted = c.Ascending(type, sequences);
  const Handle self = c.In(type, values);
  const char** const side = c.Maybe(c.Word({"left", "right"}));
  const std::int32_t right = side == nullptr || c.Wrong() ? c.Flag() : 0;
  Handle* const sorter = Sorter(c, sequences);
  return aoti_torch_cpu_searchsorted_Tensor(sorted, self, c.Flag(), right, side, sorter,
                                            c.Result());
}

AOTITorchError SearchsortedScalar(Case& c) {
  const Sizes shape = {c.Size()};
  const Handle sorted = c.Ascending(c.RealType(), shape);
  const char** const side = c.Maybe(c.Word({"left", "right"}));
  const std::int32_t right = side == nullptr || c.Wrong() ? c.Flag() : 0;
  Handle* const sorter = Sorter(c, shape);
  return aoti_torch_cpu_searchsorted_Scalar(sorted, c.Real(), c.Flag(), right, side, sorter,
                                            c.Result());
}

AOTITorchError Histc(Case& c) {
  const Handle self = c.In(c.RealType(), c.Shape(0, 4));
  const double low = c.Real();
  return aoti_torch_cpu_histc(self, c.Int(1, 20), low, c.random.Chance(0.3) ? low : c.Real(),
                              c.Result());
}

constexpr Op kOps[] = {
    {"topk", Topk},
    {"sort", Sort},
    {"sort_stable", SortStable},
    {"kthvalue", Kthvalue},
    {"mode", Mode},
    {"median", OfAll<aoti_torch_cpu_median>},
    {"nanmedian", OfAll<aoti_torch_cpu_nanmedian>},
    {"cumsum", Scan<aoti_torch_cpu_cumsum>},
    {"cumprod", Scan<aoti_torch_cpu_cumprod>},
    {"cummax", ScanWithIndices<aoti_torch_cpu_cummax>},
    {"cummin", ScanWithIndices<aoti_torch_cpu_cummin>},
    {"logcumsumexp", Logcumsumexp},
    {"bucketize.Tensor", Bucketize},
    {"searchsorted.Tensor", SearchsortedTensor},
    {"searchsorted.Scalar", SearchsortedScalar},
    {"histc", Histc},
};

}  // namespace

std::span<const Op> SortOps() { return kOps; }

}  // namespace aoti::slim::fuzz
