// Indexing by tensors, scattering, selecting and joining.

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

// self, and an index (and a source) whose sizes fit except along the dim.
struct Scatter {
  explicit Scatter(Case& c)
      : type(c.AnyType()), shape(c.Shape(0, 5)), dim(c.Dim(shape.size())), index_shape(shape) {
    const std::int64_t rank = std::ssize(shape);
    const std::int64_t wrapped = dim < 0 ? dim + rank : dim;
    std::int64_t limit = 1;
    for (std::int64_t d = 0; d < rank; ++d) {
      auto& size = index_shape[static_cast<std::size_t>(d)];
      if (d == wrapped) {
        limit = size;
        size = limit == 0 ? 0 : c.Size();
      } else if (c.random.Chance(0.3)) {
        size = c.random.Range(0, size);
      }
    }
    self = c.Out(type, shape);
    out = c.random.Chance(0.5) ? self : c.Out(type, shape);
    index = c.Index(ScalarType::kInt64, index_shape, 0, limit);
  }
  ScalarType type;
  Sizes shape;
  std::int64_t dim;
  Sizes index_shape;
  Handle self = nullptr;
  Handle out = nullptr;
  Handle index = nullptr;
};

template <auto kFunction>
AOTITorchError ScatterSrc(Case& c) {
  const Scatter s(c);
  return kFunction(s.out, s.self, s.dim, s.index, c.In(s.type, s.index_shape));
}

AOTITorchError ScatterValue(Case& c) {
  const Scatter s(c);
  return aoti_torch_cpu_scatter_value_out(s.out, s.self, s.dim, s.index, c.Real());
}

template <auto kFunction>
AOTITorchError ScatterReduce(Case& c) {
  const Scatter s(c);
  const Handle source = c.In(s.type, s.index_shape);
  const char* const reduce = c.Word({"sum", "prod", "mean", "amax", "amin"});
  return kFunction(s.out, s.self, s.dim, s.index, source, reduce, c.Flag());
}

AOTITorchError IndexReduce(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const ScalarType type = c.RealType();
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  const auto at = static_cast<std::size_t>(dim);
  Sizes source = shape;
  source[at] = shape[at] == 0 ? 0 : c.Size();
  const Handle self = c.In(type, shape);
  const Handle index = c.Index(c.IndexType(), {source[at]}, 0, shape[at]);
  const Handle values = c.In(type, source);
  return aoti_torch_cpu_index_reduce(self, c.Int(dim, dim), index, values,
                                     c.Word({"prod", "mean", "amax", "amin"}), c.Flag(),
                                     c.Result());
}

// Indices for the first dims: none, integers, or a mask over one or two dims.
struct Indices {
  Indices(Case& c, const Sizes& shape) : common(c.Shape(0, 2)) {
    const auto count =
        static_cast<std::size_t>(c.random.Range(shape.empty() ? 0 : 1, std::ssize(shape)));
    for (std::size_t d = 0; d < count; ++d) {
      Handle handle = nullptr;
      const double choice = c.random.Unit();
      if (choice < 0.25) {
        result.push_back(shape[d]);
      } else if (choice < 0.35) {
        handle = c.In(ScalarType::kBool, {shape[d]});
        has_mask = true;
      } else {
        const ScalarType type = c.IndexType();
        handle = c.Index(type, c.Broadcastable(common), -shape[d], shape[d]);
      }
      handles.push_back(handle);
      any = any || handle != nullptr;
    }
    if (!any) {
      handles.assign(1, shape.empty() ? c.In(ScalarType::kBool, {})
                                      : c.Index(ScalarType::kInt64, common, 0, shape[0]));
      result.clear();
    }
    for (Handle& handle : handles) pointers.push_back(handle == nullptr ? nullptr : &handle);
  }
  Sizes common;
  Sizes result;
  bool any = false;
  bool has_mask = false;
  std::deque<Handle> handles;
  std::vector<const Handle*> pointers;
};

AOTITorchError IndexTensor(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), shape);
  Indices indices(c, shape);
  return aoti_torch_cpu_index_Tensor(self, indices.pointers.data(), std::ssize(indices.pointers),
                                     c.Result());
}

// Values that broadcast: usually a single number, or values with the shape of the indexed part.
Handle Values(Case& c, ScalarType type, const Sizes& shape, const Indices& indices) {
  if (indices.has_mask || c.random.Chance(0.4)) return c.In(type, {});
  Sizes sizes = indices.common;
  const std::size_t used = indices.handles.size();
  if (used < shape.size()) {
    sizes.insert(sizes.end(), shape.begin() + static_cast<std::ptrdiff_t>(used), shape.end());
  }
  return c.In(type, c.Broadcastable(sizes));
}

AOTITorchError IndexPut(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  const Handle self = c.In(type, shape);
  Indices indices(c, shape);
  const Handle values = Values(c, type, shape, indices);
  return aoti_torch_cpu_index_put(self, indices.pointers.data(), std::ssize(indices.pointers),
                                  values, c.Flag(), c.Result());
}

AOTITorchError IndexPutOut(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  const Handle self = c.Out(type, shape);
  const Handle out = c.random.Chance(0.6) ? self : c.Out(type, shape);
  const Indices indices(c, shape);
  const Handle values = Values(c, type, shape, indices);
  const std::vector<Handle> handles(indices.handles.begin(), indices.handles.end());
  return aoti_torch_index_put_out(out, self, handles.data(),
                                  static_cast<std::uint32_t>(handles.size()), values,
                                  c.random.Chance(0.5));
}

AOTITorchError MaskedScatter(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const ScalarType type = c.AnyType();
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const Handle self = c.In(type, c.Broadcastable(shape));
  const Handle mask = c.In(ScalarType::kBool, c.Broadcastable(shape));
  return aoti_torch_cpu_masked_scatter(self, mask, c.In(type, {c.Wrong() ? count / 2 : count}),
                                       c.Result());
}

AOTITorchError Cat(Case& c) {
  const Sizes shape = c.Shape(1, 5);
  const ScalarType type = c.AnyType();
  const std::int64_t dim = c.random.Range(0, std::ssize(shape) - 1);
  std::vector<Handle> tensors;
  for (std::int64_t i = c.random.Range(c.Wrong() ? 0 : 1, 4); i > 0; --i) {
    Sizes sizes = shape;
    sizes[static_cast<std::size_t>(dim)] = c.Size();
    tensors.push_back(c.random.Chance(0.1) ? c.In(type, {0}) : c.In(type, sizes));
  }
  return aoti_torch_cpu_cat(tensors.data(), std::ssize(tensors), c.Int(dim, dim), c.Result());
}

AOTITorchError Nonzero(Case& c) {
  return aoti_torch_cpu_nonzero(c.In(c.AnyType(), c.Shape(0, 5)), c.Result());
}

AOTITorchError NonzeroStatic(Case& c) {
  const Handle self = c.In(c.AnyType(), c.Shape(0, 5));
  return aoti_torch_cpu_nonzero_static(self, c.Int(0, 50), c.Int(-1, 3), c.Result());
}

AOTITorchError MaskedSelect(Case& c) {
  const Sizes shape = c.Shape(0, 5);
  const Handle self = c.In(c.AnyType(), c.Broadcastable(shape));
  return aoti_torch_cpu_masked_select(self, c.In(ScalarType::kBool, c.Broadcastable(shape)),
                                      c.Result());
}

AOTITorchError RepeatInterleave(Case& c) {
  const Handle repeats = c.Index(c.IndexType(), {c.Size()}, 0, 5);
  return aoti_torch_cpu_repeat_interleave_Tensor(
      repeats, c.Wrong() ? c.Keep(c.Int(0, 50)) : nullptr, c.Result());
}

AOTITorchError SegmentReduce(Case& c) {
  const Sizes shape = c.Shape(1, 3);
  const std::int64_t axis = c.random.Range(0, std::ssize(shape) - 1);
  const std::int64_t size = shape[static_cast<std::size_t>(axis)];
  Sizes given(shape.begin(), shape.begin() + axis + 1);
  given.back() = c.random.Range(0, 4);
  const Handle data = c.In(c.FloatType(), shape);
  const bool by_length = c.random.Chance(0.5);
  // Most valid lengths are few and short, and "unsafe" allows that they don't cover the dim.
  const std::int64_t most = by_length ? size / 4 : size;
  const Handle places = c.Index(c.IndexType(), given, c.random.Chance(0.5) ? most : 0, most + 1);
  return aoti_torch_cpu_segment_reduce(data, c.Word({"sum", "prod", "mean", "amax", "amin"}),
                                       by_length ? c.Keep(places) : nullptr, nullptr,
                                       by_length ? nullptr : c.Keep(places), c.Int(axis, axis),
                                       c.random.Chance(0.9), c.Maybe(c.Real()), c.Result());
}

constexpr Op kOps[] = {
    {"segment_reduce", SegmentReduce},
    {"scatter_src_out", ScatterSrc<aoti_torch_cpu_scatter_src_out>},
    {"scatter_out", ScatterSrc<aoti_torch_scatter_out>},
    {"scatter_value_out", ScatterValue},
    {"scatter_reduce_two_out", ScatterReduce<aoti_torch_cpu_scatter_reduce_two_out>},
    {"scatter_reduce_out", ScatterReduce<aoti_torch_scatter_reduce_out>},
    {"index_reduce", IndexReduce},
    {"index.Tensor", IndexTensor},
    {"index_put", IndexPut},
    {"index_put_out", IndexPutOut},
    {"masked_scatter", MaskedScatter},
    {"nonzero", Nonzero},
    {"nonzero_static", NonzeroStatic},
    {"masked_select", MaskedSelect},
    {"repeat_interleave.Tensor", RepeatInterleave},
    {"cat", Cat},
};

}  // namespace

std::span<const Op> IndexOps() { return kOps; }

}  // namespace aoti::slim::fuzz
