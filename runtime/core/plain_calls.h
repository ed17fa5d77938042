// Quick checks of the commonest calls: all inputs contiguous, aligned, not empty and taken as they
// are.

#ifndef AOTI_RUNTIME_CORE_PLAIN_CALLS_H_
#define AOTI_RUNTIME_CORE_PLAIN_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "aoti/dtype.h"
#include "aoti/program_spec.h"
#include "aoti/tensor_view.h"

namespace aoti::internal {

// How one input of a call is handed to the program.
struct InputPlan {
  std::span<const std::int64_t> strides;  // the strides that the program expects
  std::int64_t numel = 0;
  bool copy = false;  // the strides differ or the data is not aligned: copy the input first
};

// Tells which calls of one program are plain, and plans them.
//
// The spec is read once, into tables of what each input is compared with. Inputs of the same shape
// share one row of sizes and strides, which is computed when a call gives a dim another value, so
// that the check of an input is a comparison of a few numbers.
class PlainCalls {
 public:
  // Whether a call is plain. Then `dims` has the values of all dims, and `plans` refers to tables
  // that the next call may change. If not, nothing is said about the call: other checks decide.
  //
  // `dims` and `plans` are the same in every call. Whoever else changes them calls Forget().
  bool Accept(const ProgramSpec& spec, std::span<const TensorView> inputs,
              std::vector<std::int64_t>& dims, std::vector<InputPlan>& plans);

  void Forget() { current_ = false; }

  // Whether the program writes to an input; known after the first call of Accept().
  bool writes() const { return writes_; }

 private:
  // Where the value of a free dim is found: `scale * value + offset` is a size of an input.
  struct Source {
    std::uint32_t dim;
    std::uint32_t input;
    std::uint32_t axis;
    bool is_number;  // the value is that of the input, which is a Python number
    std::int64_t scale;
    std::int64_t offset;
  };
  // The sizes and strides of some inputs: a row of `sizes_` and `strides_`.
  struct Shape {
    std::uint32_t begin;
    std::uint32_t rank;
    std::uint32_t element_size;
    std::int64_t numel;
    std::uintptr_t last_address;  // at which its memory may begin
  };
  struct Input {
    std::uint32_t shape;
    DType dtype;
    bool written;
    std::uintptr_t address_bits;  // that must be 0, so that elements are aligned
  };
  // A size that is not static: where it is in `sizes_`.
  struct Size {
    std::uint32_t at;
    Extent extent;
  };

  void Compile(const ProgramSpec& spec);
  bool FindSources(const ProgramSpec& spec);
  std::uint32_t ShapeFor(std::span<const Extent> extents, std::uint32_t element_size,
                         std::vector<std::span<const Extent>>& known);
  bool LearnDims(std::span<const TensorView> inputs, std::vector<std::int64_t>& dims);
  bool ComputeShapes(const ProgramSpec& spec, std::vector<std::int64_t>& dims,
                     std::vector<InputPlan>& plans);
  inline bool IsPlain(const Input& expected, const TensorView& given) const;

  bool compiled_ = false;
  bool possible_ = false;  // whether any call of the program can be plain
  bool current_ = false;   // whether the tables, `dims` and `plans` hold for the values of `dims`
  bool writes_ = false;
  std::vector<Input> inputs_;
  std::vector<Source> sources_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::vector<Size> varying_;
};

// The number of bytes that the address of a tensor must be a multiple of: a power of two.
std::size_t Alignment(DType dtype);

// The size of a tensor where 64 bits don't hold it, and the upper bound of a dim that has none.
inline constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// The size that a linear extent gives for a value of its dim; kUnbounded if it does not fit.
std::int64_t SizeFor(const Extent& extent, std::int64_t dim);

// Sets the dims that are sizes of other dims.
void SolveDerivedDims(std::span<const DimSpec> specs, std::int64_t* dims);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PLAIN_CALLS_H_
