// Grids that are computed from a kernel's arguments, as generated code does.

#ifndef AOTI_RUNTIME_CUDA_GRID_SIZE_H_
#define AOTI_RUNTIME_CUDA_GRID_SIZE_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

#include "aoti/cuda_kernel.h"

namespace aoti::cuda {

// An integer, or none where one is too large or was divided by zero. Division rounds down, as in
// Python.
class GridSize {
 public:
  explicit GridSize(std::integral auto value) {
    if (value <= std::numeric_limits<std::int64_t>::max()) value_ = value;
  }
  GridSize() = default;

  const std::optional<std::int64_t>& value() const { return value_; }

  friend GridSize operator+(GridSize a, GridSize b);
  friend GridSize operator-(GridSize a, GridSize b);
  friend GridSize operator*(GridSize a, GridSize b);
  friend GridSize operator/(GridSize a, GridSize b);
  friend GridSize operator%(GridSize a, GridSize b);
  friend GridSize CeilDiv(GridSize a, GridSize b);
  friend GridSize Min(GridSize a, GridSize b);
  friend GridSize Max(GridSize a, GridSize b);

 private:
  std::optional<std::int64_t> value_;
};

// The grid of up to three sizes, or an error where the GPU has no such grid.
Result<CudaGrid> GridOf(const char* label, std::initializer_list<GridSize> sizes);

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_GRID_SIZE_H_
