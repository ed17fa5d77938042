// What a model takes and returns, as tables: made by the code generator, read by the runtime's
// checks and by programs that handle models generically.

#ifndef AOTI_PROGRAM_SPEC_H_
#define AOTI_PROGRAM_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "aoti/cxx20.h"
#include "aoti/dtype.h"
#include "aoti/result.h"

namespace aoti {

// The size of one dimension: `scale * dim + offset`, or `offset` alone when it is static.
struct Extent {
  std::int64_t scale = 0;
  std::int32_t dim = -1;  // index in ProgramSpec::dims; -1: static
  std::int64_t offset = 0;
  const char* text = "";  // as the model's author wrote it: "seq", "2*half + 1", "64"
};

// A dynamic dim; both ends of its range are included.
struct DimSpec {
  const char* name;
  std::int64_t min;
  std::int64_t max;
  Extent alias = {};  // of a derived dim ("seq = 2*half"): its extent in another dim

  bool derived() const { return alias.dim >= 0; }
};

struct InputSpec {
  const char* name;
  DType dtype;
  std::span<const Extent> sizes;
  // The model writes to it: the caller's memory holds the new value after the call.
  bool mutated = false;
  // For integers whose range of values was declared: the lowest and the highest.
  bool has_values = false;
  std::int64_t min_value = 0;
  std::int64_t max_value = 0;
  // The strides that the generated code was made for: writes one per dimension, given the values of
  // all dims. Null: contiguous.
  void (*strides)(const std::int64_t* dims, std::int64_t* strides) = nullptr;
  // Of a number that the model takes as it takes a size: the dim whose value it is, an index in
  // ProgramSpec::dims.
  std::int32_t value_dim = -1;
};

// What the sizes of a call must fulfil beside their ranges: the program was exported for such
// alone.
struct GuardSpec {
  const char* text;                    // "n % 100 == 0"
  std::span<const std::int32_t> dims;  // that it mentions, indices in ProgramSpec::dims
  bool (*holds)(const std::int64_t* dims);
};

struct OutputSpec {
  const char* name;
  DType dtype;
  std::span<const char* const> sizes;  // expressions in the dims
};

// One tensor of the weights file.
struct WeightSpec {
  const char* name;
  DType dtype;
  std::span<const std::int64_t> sizes;
  bool mutated = false;  // the model writes to it: each loaded model has its own copy
};

namespace internal {

struct ProgramVTable;

// A view of a weight, as the generated code refers to it.
struct ConstantSpec {
  std::int32_t weight;  // index in ProgramSpec::weights
  DType dtype;
  std::span<const std::int64_t> sizes;
  std::span<const std::int64_t> strides;  // elements
  std::int64_t offset;                    // elements
};

// A weight in the layout in which an operator reads it fastest, made by the build.
struct PackedSpec {
  std::int32_t weight;  // index in ProgramSpec::weights
  const char* kind;     // the layout
  const char* name;     // of the tensor in the weights file
  std::size_t bytes;    // of the layout
  // Nothing reads the weight itself: a file that holds the packed tensor need not hold it.
  bool only;
};

struct ProgramSpec;

// A model's code for one instruction set.
struct ProgramVariant {
  // What the kernels' code is made of: "x86-64-v3". Nothing of the program runs on other CPUs.
  const char* isa;
  std::span<const ConstantSpec> constants;  // in the order of the generated code
  // The program: linked in, or in a library that is loaded now.
  Result<const ProgramVTable*> (*program)(const ProgramSpec& spec);
};

// One compiled model. All of it is static data.
struct ProgramSpec {
  const char* name;             // "encoder"; starts every error message
  const char* label;            // the Bazel target
  const char* torch_version;    // that it was compiled for: "2.13.0"
  const char* weights_runfile;  // "_main/models/encoder.weights.safetensors"
  // The same file where it is a part of the binary; begin is null where it is not.
  const std::byte* embedded_begin = nullptr;
  const std::byte* embedded_end = nullptr;
  // What the code was made of, as JSON; begin is null where that is not known.
  const char* provenance_begin = nullptr;
  const char* provenance_end = nullptr;
  std::span<const DimSpec> dims;
  std::span<const InputSpec> inputs;
  std::span<const OutputSpec> outputs;
  std::span<const GuardSpec> guards = {};
  std::span<const WeightSpec> weights;
  std::span<const PackedSpec> packed;
  // Weights that the program takes as inputs after `inputs`, because it writes to them.
  std::span<const std::int32_t> state;
  // Threads that a run may use where LoadOptions don't say; 0: one per hardware thread.
  int threads = 0;
  // The best first: a model is loaded with the first one that the CPU can run.
  std::span<const ProgramVariant> variants;

  std::string_view provenance() const {
    if (provenance_begin == nullptr) return {};
    return {provenance_begin, static_cast<std::size_t>(provenance_end - provenance_begin)};
  }
};

}  // namespace internal
}  // namespace aoti

#endif  // AOTI_PROGRAM_SPEC_H_
