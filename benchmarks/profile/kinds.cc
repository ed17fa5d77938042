#include "benchmarks/profile/kinds.h"

#include <initializer_list>

namespace aoti::benchmark {
namespace {

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Kind KindOf(std::string_view function) {
  // Kernels that Inductor wrote, and the mathematical functions that they call.
  if (HasAny(function, {"cpp_fused", "vecmath", "Sleef"})) return Kind::kLoops;
  // A thread of the pool is in Loop() until it gets a part, and the caller in ParallelRegion()
  // until all parts are done; both sleep in the C library.
  if (HasAny(function, {"ParallelRegion", "aoti_kernel_parallel", "Worker4Loop", "_M_run", "futex",
                        "cond_wait", "cond_signal", "lll_lock"})) {
    return Kind::kWaiting;
  }
  if (HasAny(function, {"ttention", "ttend", "Soften", "VisibleRange", "13MixI"})) {
    return Kind::kAttention;
  }
  if (HasAny(function, {"Gemm", "Dots", "DotTile", "Int8", "Int4", "Tiled", "4TileI", "RestOfDot",
                        "5Widen", "AddBias", "9Transpose"})) {
    return Kind::kProducts;
  }
  return Kind::kOther;
}

}  // namespace aoti::benchmark
