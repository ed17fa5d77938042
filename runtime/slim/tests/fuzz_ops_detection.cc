// torchvision's operators.

#include <algorithm>

#include "runtime/slim/tests/fuzz_case.h"
#include "runtime/slim/tests/fuzz_stack.h"

namespace aoti::slim::fuzz {
namespace {

ScalarType TypeOf(Case& c) {
  return c.random.Chance(0.9) ? c.random.Pick({ScalarType::kFloat32, ScalarType::kFloat64})
                              : c.FloatType();
}

AOTITorchError Nms(Case& c) {
  const ScalarType type = TypeOf(c);
  const std::int64_t count = c.Size();
  Stack stack(c);
  stack << c.In(type, {count, 4}) << c.In(type, {count}) << c.random.Unit();
  return stack.Call("torchvision::nms", "");
}

AOTITorchError RoiAlign(Case& c) {
  const ScalarType type = TypeOf(c);
  const std::int64_t images = c.random.Range(1, 3), count = c.random.Range(0, 5);
  const Handle input = c.In(type, {images, c.random.Range(0, 4), c.random.Range(1, 9), c.Size()});
  const Handle boxes = c.In(type, {count, 5});
  Handle first = nullptr;
  if (aoti_torch_cpu_narrow(boxes, 1, 0, 1, &first) == AOTI_TORCH_SUCCESS) {
    aoti_torch_cpu_fill__Scalar(first, static_cast<double>(c.Int(0, images - 1)));
    aoti_torch_delete_tensor_object(first);
  }
  Stack stack(c);
  stack << input << boxes << (c.random.Chance(0.9) ? c.random.Unit() : c.Real()) << c.Int(0, 5)
        << c.Int(0, 5) << c.random.Range(-1, 3) << c.random.Chance(0.5);
  return stack.Call("torchvision::roi_align", "");
}

AOTITorchError DeformConv2d(Case& c) {
  const ScalarType type = TypeOf(c);
  const std::int64_t groups = c.random.Range(1, 2), offset_groups = c.random.Range(1, 2);
  const std::int64_t channels = 2 * c.random.Range(0, 2), filters = groups * c.random.Range(0, 3);
  const std::int64_t batch = c.random.Range(0, 2);
  struct Dim {
    explicit Dim(Case& c)
        : in(c.random.Range(1, 12)),
          kernel(c.random.Range(1, 3)),
          stride(c.random.Range(1, 3)),
          padding(c.random.Range(0, 3)),
          dilation(c.random.Range(1, 2)),
          out(std::max<std::int64_t>(0, in + 2 * padding - dilation * (kernel - 1) - 1 + stride) /
              stride) {}
    std::int64_t in, kernel, stride, padding, dilation, out;
  };
  const Dim y(c), x(c);
  const std::int64_t taps = offset_groups * y.kernel * x.kernel;
  const bool masked = c.random.Chance(0.5);
  const Sizes mask = masked ? Sizes{batch, taps, y.out, x.out} : Sizes{batch, 1};
  Stack stack(c);
  stack << c.In(type, {batch, channels, y.in, x.in})
        << c.In(type, {filters, channels / groups, y.kernel, x.kernel})
        << c.In(type, {batch, 2 * taps, y.out, x.out}) << c.In(type, mask) << c.In(type, {filters})
        << c.Int(y.stride, y.stride) << c.Int(x.stride, x.stride) << c.Int(y.padding, y.padding)
        << c.Int(x.padding, x.padding) << c.Int(y.dilation, y.dilation)
        << c.Int(x.dilation, x.dilation) << c.Int(groups, groups)
        << c.Int(offset_groups, offset_groups) << masked;
  return stack.Call("torchvision::deform_conv2d", "");
}

constexpr Op kOps[] = {
    {"torchvision::nms", Nms},
    {"torchvision::roi_align", RoiAlign},
    {"torchvision::deform_conv2d", DeformConv2d},
};

}  // namespace

std::span<const Op> DetectionOps() { return kOps; }

}  // namespace aoti::slim::fuzz
