// Error codes, numbered by cause.

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
  // 1xx: the arguments of a call. The model is unharmed; correct the arguments and call again.
  kInvalidArgument = 100,  // any problem with an argument that has no code below
  kWrongInputCount = 101,  // more or fewer tensors than the model takes
  kMissingInput = 102,     // an input that was not set
  kWrongRank = 103,        // number of dimensions
  kWrongDType = 104,       // dtype
  kWrongDevice = 105,      // not in the memory of the CPU or of the model's device
  kWrongSize = 106,        // a static size, or a buffer of another length than its sizes give
  kSizeOutOfRange = 107,   // a dynamic dim outside its declared range
  kSizeMismatch = 108,     // inputs with different values of a dim, or a size that no value gives
  kWrongStrides = 109,     // a layout that would need a copy where none is allowed
  kNullData = 110,         // a null pointer where there are elements
  kReadOnly = 111,         // read-only memory that the model would write to
  kValueOutOfRange = 112,  // an integer outside the declared range of values
  kOverlap = 113,          // memory that the model writes to and that another input shares
  kNoVariant = 114,        // a call that no variant of the function takes

  // 2xx: the files that a model is loaded from.
  kWeightsNotFound = 200,    // the file does not exist, or is not in the runfiles
  kWeightsMalformed = 201,   // not a safetensors file, or a damaged one
  kWeightsMismatch = 202,    // missing, extra or wrongly shaped tensors
  kVersionMismatch = 203,    // the torch version is not the one that the model was compiled for
  kProgramNotLoaded = 204,   // the shared library with the program can't be loaded
  kOperatorNotUsable = 205,  // an operator of torch_custom_ops is missing, or is registered wrongly

  // 3xx: the machine.
  kIoError = 300,
  kOutOfMemory = 301,
  kUnsupportedCpu = 302,  // the CPU lacks instructions that the model was compiled for
  kUnsupportedGpu = 303,  // no driver, no such GPU, or one that the model was not compiled for

  // 4xx: the program itself.
  kExecutionFailed = 400,  // an operator reported an error
  kInternal = 401,         // generated code and its tables disagree: a bug, please report it
};

// The enumerator's name without its `k`, such as "WrongRank"; "Unknown" for any other number.
std::string_view to_string(ErrorCode code);

// An error: its cause, and a message for people. The message names the model, the input, the value
// that was passed and the value that was expected.
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
