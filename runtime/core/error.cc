#include "aoti/error.h"

#include <cstdio>
#include <cstdlib>

#include "aoti/result.h"

namespace aoti {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kWrongInputCount:
      return "WrongInputCount";
    case ErrorCode::kMissingInput:
      return "MissingInput";
    case ErrorCode::kWrongRank:
      return "WrongRank";
    case ErrorCode::kWrongDType:
      return "WrongDType";
    case ErrorCode::kWrongDevice:
      return "WrongDevice";
    case ErrorCode::kWrongSize:
      return "WrongSize";
    case ErrorCode::kSizeOutOfRange:
      return "SizeOutOfRange";
    case ErrorCode::kSizeMismatch:
      return "SizeMismatch";
    case ErrorCode::kWrongStrides:
      return "WrongStrides";
    case ErrorCode::kNullData:
      return "NullData";
    case ErrorCode::kReadOnly:
      return "ReadOnly";
    case ErrorCode::kValueOutOfRange:
      return "ValueOutOfRange";
    case ErrorCode::kOverlap:
      return "Overlap";
    case ErrorCode::kNoVariant:
      return "NoVariant";
    case ErrorCode::kWeightsNotFound:
      return "WeightsNotFound";
    case ErrorCode::kWeightsMalformed:
      return "WeightsMalformed";
    case ErrorCode::kWeightsMismatch:
      return "WeightsMismatch";
    case ErrorCode::kVersionMismatch:
      return "VersionMismatch";
    case ErrorCode::kProgramNotLoaded:
      return "ProgramNotLoaded";
    case ErrorCode::kOperatorNotUsable:
      return "OperatorNotUsable";
    case ErrorCode::kIoError:
      return "IoError";
    case ErrorCode::kOutOfMemory:
      return "OutOfMemory";
    case ErrorCode::kUnsupportedCpu:
      return "UnsupportedCpu";
    case ErrorCode::kUnsupportedGpu:
      return "UnsupportedGpu";
    case ErrorCode::kExecutionFailed:
      return "ExecutionFailed";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

void ResultBase::DieOfBadAccess(const char* what, const Error* error) {
  const std::string_view code = error == nullptr ? "" : to_string(error->code());
  std::fprintf(stderr, "aoti: took the %s%s%.*s%s%s\n", what, error == nullptr ? "" : ": ",
               static_cast<int>(code.size()), code.data(), error == nullptr ? "" : ": ",
               error == nullptr ? "" : error->message().c_str());
  std::abort();
}

}  // namespace aoti
