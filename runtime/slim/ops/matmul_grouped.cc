// _grouped_mm: several matrix products at once, whose sizes a tensor says; a mixture of experts.

#include <cstdint>
#include <string>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/gemm/gemm.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {
namespace {

constexpr const char* kName = "_grouped_mm";

GemmType TypeOf(const Tensor& t) {
  switch (t.dtype()) {
    case ScalarType::kFloat32:
      return GemmType::kFloat;
    case ScalarType::kBFloat16:
      return GemmType::kBFloat16;
    case ScalarType::kFloat16:
      return GemmType::kFloat16;
    default:
      throw OpError(StrCat(kName, ": not supported for tensors of ", NameOf(t.dtype()),
                           ", must be float32, bfloat16 or float16"));
  }
}

// Part of a tensor of rank 2 or 3: one of its matrices, and a range of its rows or columns.
struct Part {
  Part(const Tensor& t, std::int64_t group)
      : rows(t.size(t.rank() - 2)),
        columns(t.size(t.rank() - 1)),
        row(t.stride(t.rank() - 2)),
        column(t.stride(t.rank() - 1)),
        offset(t.rank() == 3 ? group * t.stride(0) : 0) {}
  Part Rows(std::int64_t first, std::int64_t last) const {
    Part part = *this;
    part.rows = last - first;
    part.offset += first * row;
    return part;
  }
  Part Columns(std::int64_t first, std::int64_t last) const {
    Part part = *this;
    part.columns = last - first;
    part.offset += first * column;
    return part;
  }

  std::int64_t rows, columns, row, column, offset;
};

void Multiply(GemmType type, const Tensor& to, const Part& c, const Tensor& left, const Part& a,
              const Tensor& right, const Part& b) {
  const std::int64_t size = type == GemmType::kFloat ? 4 : 2;
  const auto at = [&](const Tensor& t, const Part& part) -> void* {
    return static_cast<char*>(t.data()) + part.offset * size;
  };
  Gemm(GemmAny{.type = type,
               .m = c.rows,
               .n = c.columns,
               .k = a.columns,
               .a = at(left, a),
               .a_row = a.row,
               .a_col = a.column,
               .b = at(right, b),
               .b_row = b.row,
               .b_col = b.column,
               .c = at(to, c),
               .c_row = c.row,
               .c_col = c.column});
}

// Where each group ends, in 0..size.
class Ends {
 public:
  Ends(const Tensor& offsets, std::int64_t size) : offsets_(Contiguous(offsets)) {
    const auto* ends = offsets_->data<std::int32_t>();
    for (std::int64_t g = 0; g < offsets.size(0); ++g) {
      const std::int64_t least = g == 0 ? 0 : ends[g - 1];
      Require(ends[g] >= least && ends[g] <= size, kName, ": offs[", g, "] is ",
              std::int64_t{ends[g]}, ", must be in ", least, "..", size);
    }
  }
  std::int64_t first(std::int64_t group) const { return group == 0 ? 0 : last(group - 1); }
  std::int64_t last(std::int64_t group) const { return offsets_->data<std::int32_t>()[group]; }

 private:
  TensorPtr offsets_;
};

// The result's rows begin at multiples of 16 bytes, as PyTorch's do.
TensorPtr EmptyAligned(ScalarType dtype, std::initializer_list<std::int64_t> sizes) {
  const std::size_t rank = sizes.size();
  const auto aligned = static_cast<std::int64_t>(16 / SizeOf(dtype));
  const Ints all(sizes.begin(), rank);
  const std::int64_t row = CheckedSum(all[rank - 1], aligned - 1) / aligned * aligned;
  const std::int64_t strides[] = {CheckedProduct(all[rank - 2], row), row, 1};
  return EmptyStrided(dtype, all, Ints(strides, 3).last(rank));
}

TensorPtr GroupedMm(const Tensor& a, const Tensor& b, const Tensor* offsets) {
  for (const Tensor* t : {&a, &b}) {
    Require(t->rank() == 2 || t->rank() == 3, kName, ": a tensor of rank ", t->rank(),
            " was given, 2 or 3 is needed");
  }
  const GemmType type = TypeOf(a);
  Require(a.dtype() == b.dtype(), kName, ": dtypes differ: ", NameOf(a.dtype()), " and ",
          NameOf(b.dtype()));
  const bool a_batch = a.rank() == 3, b_batch = b.rank() == 3;
  Require((offsets == nullptr) == (a_batch && b_batch), kName,
          ": needs offs if a tensor has rank 2, and none if both have rank 3");
  Require(offsets == nullptr || (offsets->rank() == 1 && offsets->dtype() == ScalarType::kInt32),
          kName, ": offs must have 1 dim, and be int32");
  const Part all_a(a, 0), all_b(b, 0);
  Require(all_a.columns == all_b.rows, kName, ": matrices of sizes [", all_a.rows, ", ",
          all_a.columns, "] and [", all_b.rows, ", ", all_b.columns, "] cannot be multiplied");
  const std::int64_t groups = offsets != nullptr ? offsets->size(0) : a.size(0);
  for (const Tensor* t : {&a, &b}) {
    Require(t->rank() == 2 || t->size(0) == groups, kName, ": a batch of ", t->size(0),
            " matrices for ", groups, " groups");
  }
  TensorPtr out = a_batch == b_batch ? EmptyAligned(a.dtype(), {groups, all_a.rows, all_b.columns})
                                     : EmptyAligned(a.dtype(), {all_a.rows, all_b.columns});
  if (offsets == nullptr) {
    for (std::int64_t g = 0; g < groups; ++g) {
      Multiply(type, *out, Part(*out, g), a, Part(a, g), b, Part(b, g));
    }
    return out;
  }
  const Ends ends(*offsets, a_batch ? all_b.columns : b_batch ? all_a.rows : all_a.columns);
  if (a_batch != b_batch) {
    // PyTorch leaves what is in no group unspecified; here it is zero, the same in each run.
    const std::int64_t done = groups == 0 ? 0 : ends.last(groups - 1);
    const Part whole(*out, 0);
    const Part rest = a_batch ? whole.Columns(done, whole.columns) : whole.Rows(done, whole.rows);
    Multiply(type, *out, rest, a, all_a.Columns(0, 0), b, all_b.Rows(0, 0));
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t first = ends.first(g), last = ends.last(g);
    const Part left(a, g), right(b, g), to(*out, g);
    if (a_batch) {
      Multiply(type, *out, to.Columns(first, last), a, left, b, right.Columns(first, last));
    } else if (b_batch) {
      Multiply(type, *out, to.Rows(first, last), a, left.Rows(first, last), b, right);
    } else {
      Multiply(type, *out, to, a, left.Columns(first, last), b, right.Rows(first, last));
    }
  }
  return out;
}

}  // namespace
}  // namespace aoti::slim

extern "C" AOTITorchError aoti_torch_cpu__grouped_mm(AtenTensorHandle self, AtenTensorHandle mat2,
                                                     AtenTensorHandle* offs, AtenTensorHandle* bias,
                                                     int32_t* out_dtype, AtenTensorHandle* ret0) {
  using namespace aoti::slim;
  return Guarded([&] {
    Require(bias == nullptr, kName, ": a bias is not supported, as in PyTorch");
    Require(out_dtype == nullptr || static_cast<ScalarType>(*out_dtype) == self->dtype(), kName,
            ": out_dtype must be the dtype of the first tensor, ", NameOf(self->dtype()));
    *ret0 = GroupedMm(*self, *mat2, offs == nullptr ? nullptr : *offs).release();
  });
}
