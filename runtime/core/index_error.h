// What generated code throws for an index that is out of range. Everything has internal linkage, as
// in kernel.h.

#ifndef AOTI_RUNTIME_CORE_INDEX_ERROR_H_
#define AOTI_RUNTIME_CORE_INDEX_ERROR_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace aoti::kernel {
namespace {

// `lowest` is below 0 where negative indices count from the end.
[[noreturn]] inline void FailIndex(int64_t index, int64_t lowest, int64_t size) {
  char text[128];
  if (size <= 0) {
    std::snprintf(text, sizeof(text), "index %" PRId64 " is out of range: there are no elements",
                  index);
  } else {
    std::snprintf(text, sizeof(text), "index %" PRId64 " is out of range %" PRId64 "..%" PRId64,
                  index, lowest, size - 1);
  }
  throw std::runtime_error(text);
}

// wrapped: whether the size was already added to negative indices.
[[noreturn]] inline void IndexError(int64_t index, int64_t size, bool wrapped) {
  if (!wrapped) FailIndex(index, 0, size);
  FailIndex(index < 0 ? index - size : index, -size, size);
}

}  // namespace
}  // namespace aoti::kernel

#endif  // AOTI_RUNTIME_CORE_INDEX_ERROR_H_
