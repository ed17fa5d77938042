// What can go wrong, numbered by cause.

#ifndef AOTI_ERROR_H_
#define AOTI_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "aoti/cxx20.h"

namespace aoti {

// The numbers are stable: a code is never renumbered or reused.
enum class ErrorCode : std::int32_t {
  // 1xx: the arguments of a call. The model is unharmed; correct the call and try again.
  kInvalidArgument = 100,  // what none of the codes below says
  kWrongInputCount = 101,  // more or fewer tensors than the model takes
  kMissingInput = 102,     // an input that was not set
  kWrongRank = 103,        // number of dimensions
  kWrongDType = 104,       // element type
  kWrongDevice = 105,      // not in the CPU's memory
  kWrongSize = 106,        // a static size, or a buffer whose length is not what its sizes say
  kSizeOutOfRange = 107,   // a dynamic dim outside its declared range
  kSizeMismatch = 108,     // inputs that disagree about a dim, or a size that no value of it gives
  kWrongStrides = 109,     // a layout that the model can't take and that must not be copied
  kNullData = 110,         // a null pointer where there are elements
  kReadOnly = 111,         // read-only memory where the model writes
  kValueOutOfRange = 112,  // an element outside the declared range of values
  kOverlap = 113,          // memory that the model writes to, and that is another input's too

  // 2xx: what a model is loaded from.
  kWeightsNotFound = 200,   // no such file, or it is not in the runfiles
  kWeightsMalformed = 201,  // not a safetensors file, or a damaged one
  kWeightsMismatch = 202,   // missing, extra or wrongly shaped tensors
  kVersionMismatch = 203,   // the torch runtime is not the one the model was compiled for
  kProgramNotLoaded = 204,  // the library that holds the program can't be loaded

  // 3xx: the machine.
  kIoError = 300,
  kOutOfMemory = 301,
  kUnsupportedCpu = 302,  // it lacks instructions that the model was compiled for

  // 4xx: the program itself.
  kExecutionFailed = 400,  // an operator reported an error
  kInternal = 401,         // generated code and its tables disagree: a bug, please report it
};

// The enumerator's name without its `k`, such as "WrongRank"; "Unknown" for any other number.
std::string_view to_string(ErrorCode code);

// An error: its cause, and a message for a human that names the model, the input, what came, and
// what was expected.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

}  // namespace aoti

#endif  // AOTI_ERROR_H_
