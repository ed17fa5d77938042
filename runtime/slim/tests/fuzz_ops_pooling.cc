// Pooling in two and three dims.

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {
namespace {

// The sizes of an image with `dims` pooled dims, with or without a batch.
Sizes Image(Case& c, int dims, std::int64_t least) {
  Sizes sizes;
  if (c.random.Chance(0.8)) sizes.push_back(c.random.Range(0, 3));
  sizes.push_back(c.random.Pick<std::int64_t>({1, 2, 3, 8, 16, 17}));
  for (int d = 0; d < dims; ++d) sizes.push_back(c.random.Range(least, dims == 3 ? 9 : 17));
  return sizes;
}

// One value per dim, or one value for all dims.
const Sizes& PerDim(Case& c, int dims, std::int64_t low, std::int64_t high) {
  Sizes values;
  for (int d = 0; d < dims; ++d) values.push_back(c.random.Range(low, high));
  if (c.random.Chance(0.3)) values.resize(1);
  return c.List(values);
}

struct Window {
  Window(Case& c, int dims)
      : kernel(PerDim(c, dims, 2, 3)),
        stride(c.random.Chance(0.3) ? c.List({}) : PerDim(c, dims, 1, 3)),
        padding(PerDim(c, dims, 0, 1)),
        dilation(PerDim(c, dims, 1, 2)) {}
  const Sizes& kernel;
  const Sizes& stride;
  const Sizes& padding;
  const Sizes& dilation;
};

template <int kDims, auto kFunction>
AOTITorchError AvgPool(Case& c) {
  const Window w(c, kDims);
  const Handle self = c.In(c.random.Chance(0.1) ? c.AnyType() : c.FloatType(), Image(c, kDims, 3));
  return kFunction(self, w.kernel.data(), std::ssize(w.kernel), w.stride.data(),
                   std::ssize(w.stride), w.padding.data(), std::ssize(w.padding), c.Flag(),
                   c.Flag(), c.Maybe(c.Int(1, 5)), c.Result());
}

template <int kDims, auto kFunction>
AOTITorchError MaxPool(Case& c) {
  const Window w(c, kDims);
  const Handle self = c.In(c.random.Chance(0.1) ? c.AnyType() : c.FloatType(), Image(c, kDims, 5));
  return kFunction(self, w.kernel.data(), std::ssize(w.kernel), w.stride.data(),
                   std::ssize(w.stride), w.padding.data(), std::ssize(w.padding), w.dilation.data(),
                   std::ssize(w.dilation), c.Flag(), c.Result(), c.Result());
}

const Sizes& OutputSize(Case& c, int dims) {
  Sizes values;
  for (int d = 0; d < dims; ++d) values.push_back(c.random.Range(0, 9));
  return c.List(values);
}

template <int kDims, auto kFunction>
AOTITorchError AdaptiveAvgPool(Case& c) {
  const Handle self = c.In(c.FloatType(), Image(c, kDims, 1));
  const Sizes& size = OutputSize(c, kDims);
  return kFunction(self, size.data(), std::ssize(size), c.Result());
}

template <int kDims, auto kFunction>
AOTITorchError AdaptiveMaxPool(Case& c) {
  const Handle self = c.In(c.FloatType(), Image(c, kDims, 1));
  const Sizes& size = OutputSize(c, kDims);
  return kFunction(self, size.data(), std::ssize(size), c.Result(), c.Result());
}

template <int kDims, auto kFunction>
AOTITorchError FractionalMaxPool(Case& c) {
  Sizes image = Image(c, kDims, 5);
  if (image.size() == kDims + 1) image.insert(image.begin(), 1);
  const Handle self = c.In(c.FloatType(), image);
  Sizes kernel, output;
  for (int d = 0; d < kDims; ++d) {
    kernel.push_back(c.random.Range(1, 3));
    output.push_back(c.random.Range(1, 3));
  }
  const Sizes& k = c.List(kernel);
  const Sizes& o = c.List(output);
  // Valid samples are in [0, 1).
  const Handle samples = c.In(ScalarType::kFloat32, {image[0], image[1], kDims});
  if (!c.Wrong()) aoti_torch_zero_(samples);
  return kFunction(self, k.data(), std::ssize(k), o.data(), std::ssize(o), samples, c.Result(),
                   c.Result());
}

AOTITorchError MaxUnpool2d(Case& c) {
  const Sizes image = Image(c, 2, 1);
  const std::int64_t rows = c.random.Range(1, 20);
  const std::int64_t columns = c.random.Range(1, 20);
  const Handle self = c.In(c.FloatType(), image);
  const Handle indices = c.Index(ScalarType::kInt64, image, 0, rows * columns);
  const Sizes& size = c.List({rows, columns});
  return aoti_torch_cpu_max_unpool2d(self, indices, size.data(), std::ssize(size), c.Result());
}

AOTITorchError MaxUnpool3d(Case& c) {
  const Sizes image = Image(c, 3, 1);
  const Sizes sizes = {2 * image.end()[-3], 2 * image.end()[-2], 2 * image.end()[-1]};
  const Handle self = c.In(c.FloatType(), image);
  const Handle indices = c.Index(ScalarType::kInt64, image, 0, sizes[0] * sizes[1] * sizes[2]);
  const Sizes& size = c.List(sizes);
  const Sizes& stride = c.List({2, 2, 2});
  const Sizes& padding = c.List({0, 0, 0});
  return aoti_torch_cpu_max_unpool3d(self, indices, size.data(), std::ssize(size), stride.data(),
                                     std::ssize(stride), padding.data(), std::ssize(padding),
                                     c.Result());
}

constexpr Op kOps[] = {
    {"avg_pool2d", AvgPool<2, aoti_torch_cpu_avg_pool2d>},
    {"avg_pool3d", AvgPool<3, aoti_torch_cpu_avg_pool3d>},
    {"max_pool2d_with_indices", MaxPool<2, aoti_torch_cpu_max_pool2d_with_indices>},
    {"max_pool3d_with_indices", MaxPool<3, aoti_torch_cpu_max_pool3d_with_indices>},
    {"_adaptive_avg_pool2d", AdaptiveAvgPool<2, aoti_torch_cpu__adaptive_avg_pool2d>},
    {"_adaptive_avg_pool3d", AdaptiveAvgPool<3, aoti_torch_cpu__adaptive_avg_pool3d>},
    {"adaptive_max_pool2d", AdaptiveMaxPool<2, aoti_torch_cpu_adaptive_max_pool2d>},
    {"adaptive_max_pool3d", AdaptiveMaxPool<3, aoti_torch_cpu_adaptive_max_pool3d>},
    {"fractional_max_pool2d", FractionalMaxPool<2, aoti_torch_cpu_fractional_max_pool2d>},
    {"fractional_max_pool3d", FractionalMaxPool<3, aoti_torch_cpu_fractional_max_pool3d>},
    {"max_unpool2d", MaxUnpool2d},
    {"max_unpool3d", MaxUnpool3d},
};

}  // namespace

std::span<const Op> PoolingOps() { return kOps; }

}  // namespace aoti::slim::fuzz
