// A model's inputs, outputs and weights as tables. The code generator writes them; the runtime's
// checks, and programs that handle any model, read them.

#ifndef AOTI_PROGRAM_SPEC_H_
#define AOTI_PROGRAM_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "aoti/cxx20.h"
#include "aoti/device_type.h"
#include "aoti/dtype.h"
#include "aoti/result.h"

namespace aoti {

// The size of one dimension: `scale * dim + offset`; `offset` alone when it is static; or what
// `compute` returns, for a sum or a quotient of dims whose values other sizes give.
struct Extent {
  std::int64_t scale = 0;
  std::int32_t dim = -1;  // index in ProgramSpec::dims; -1: static, or computed
  std::int64_t offset = 0;
  const char* text = "";  // as the model's author wrote it: "seq", "2*half + 1", "past + seq", "64"
  // The size for the values of all dims; the largest number where 64 bits are too few.
  std::int64_t (*compute)(const std::int64_t* dims) = nullptr;
  std::span<const std::int32_t> dims = {};  // indices in ProgramSpec::dims of those in the text
};

// A dynamic dim; both ends of its range are included.
struct DimSpec {
  const char* name;
  std::int64_t min;
  std::int64_t max;
  Extent alias = {};  // for a derived dim ("seq = 2*half"): its extent in terms of another dim

  bool derived() const { return alias.dim >= 0; }
};

struct InputSpec {
  const char* name;
  DType dtype;
  std::span<const Extent> sizes;
  // Whether the model writes to it: then the caller's memory has the new value after the call.
  bool mutated = false;
  // Whether a range of values was declared, which only integer inputs can have; the range includes
  // both ends.
  bool has_values = false;
  std::int64_t min_value = 0;
  std::int64_t max_value = 0;
  // Writes the strides that the generated code was made for, one per dimension; `dims` has the
  // values of all dims. Null: contiguous.
  void (*strides)(const std::int64_t* dims, std::int64_t* strides) = nullptr;
  // For a Python number that stands for a size: the index in ProgramSpec::dims of the dim whose
  // value it is. -1 for every other input.
  std::int32_t value_dim = -1;
  // Whether it is a Python number, a float or an int: the program takes it as a float64 or int64
  // tensor of rank 0.
  bool number = false;
  // The values that a float may have, both included. A call with another one, or with NaN, is
  // refused if either end is finite.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  // The value of a number that a call leaves out.
  bool has_default = false;
  double default_float = 0;
  std::int64_t default_int = 0;
};

// A condition on the dims of a call, beside their ranges: the program was exported for sizes that
// meet it.
struct GuardSpec {
  const char* text;                    // "n % 100 == 0"
  std::span<const std::int32_t> dims;  // indices in ProgramSpec::dims of the dims in the text
  bool (*holds)(const std::int64_t* dims);
};

struct OutputSpec {
  const char* name;
  DType dtype;
  std::span<const char* const> sizes;  // expressions in the dims
};

// A tensor of the weights file.
struct WeightSpec {
  const char* name;
  DType dtype;
  std::span<const std::int64_t> sizes;
  bool mutated = false;  // whether the model writes to it: then each session has its own copy
};

// The functions of a program's generated code: runtime/core/program.h.
struct ProgramVTable;

// A view of a weight, as the generated code uses it.
struct ConstantSpec {
  std::int32_t weight;  // index in ProgramSpec::weights
  DType dtype;
  std::span<const std::int64_t> sizes;
  std::span<const std::int64_t> strides;  // elements
  std::int64_t offset;                    // elements
};

// A weight in the layout that an operator reads fastest, which the build made.
struct PackedSpec {
  std::int32_t weight;  // index in ProgramSpec::weights
  const char* kind;     // the name of the layout
  const char* name;     // of the packed tensor in the weights file
  std::size_t bytes;    // of the weight in this layout
  // Whether operators read only the packed tensor: then the weights file need not have the weight
  // itself.
  bool only;
};

struct ProgramSpec;

// A model's code for one device, and one instruction set of the CPU.
struct ProgramVariant {
  // The instruction set: "x86-64-v3". No code of the program runs on a CPU that lacks it.
  const char* isa;
  std::span<const ConstantSpec> constants;  // in the order of the generated code
  // Returns the program: the one that is linked in, or one in a shared library, which this loads.
  Result<const ProgramVTable*> (*program)(const ProgramSpec& spec);
  DeviceType device = DeviceType::kCpu;  // where it computes
};

// One compiled model. All of it is static data.
struct ProgramSpec {
  const char* name;             // "encoder"; starts every error message
  const char* label;            // of the Bazel target
  const char* torch_version;    // that the program was compiled for: "2.13.0"
  const char* weights_runfile;  // "_main/models/encoder.weights.safetensors"
  // The weights file where it is a part of the binary; otherwise null.
  const std::byte* embedded_begin = nullptr;
  const std::byte* embedded_end = nullptr;
  // What the code was made of, as JSON; null if that is not known.
  const char* provenance_begin = nullptr;
  const char* provenance_end = nullptr;
  // The SHA-256 of the graph, or of the graphs of all methods: what a weights file may say that it
  // was made for. Empty if that is not known.
  const char* digest = "";
  std::span<const DimSpec> dims;
  std::span<const InputSpec> inputs;
  std::span<const OutputSpec> outputs;
  std::span<const GuardSpec> guards = {};
  std::span<const WeightSpec> weights;
  std::span<const PackedSpec> packed;
  // For a method of a model with several: whether it reads each of `packed`, which lists those of
  // all methods. Empty: it reads all.
  std::span<const bool> reads_packed = {};
  // Threads that a call may use if LoadOptions::threads is 0; 0: one per hardware thread.
  int threads = 0;
  // In order of preference: a model is loaded with the first variant for the device that the CPU
  // can run.
  std::span<const ProgramVariant> variants;

  std::string_view provenance() const {
    if (provenance_begin == nullptr) return {};
    return {provenance_begin, static_cast<std::size_t>(provenance_end - provenance_begin)};
  }
};

}  // namespace aoti

#endif  // AOTI_PROGRAM_SPEC_H_
