// The exception with which operators report errors; abi/guarded.h turns it into an error code.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_ERROR_H_
#define AOTI_RUNTIME_SLIM_TENSOR_ERROR_H_

#include <stdexcept>

#include "runtime/core/text.h"

namespace aoti::slim {

// The message says what was expected and what was passed. It never names a C++ file.
class OpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using internal::StrCat;

// Require(index < size, "index ", index, " is out of range 0..", size - 1);
template <typename... Parts>
void Require(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    throw OpError(StrCat(parts...));
}

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_ERROR_H_
