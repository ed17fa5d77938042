// Calls of operators by name.

#ifndef AOTI_RUNTIME_SLIM_TESTS_FUZZ_STACK_H_
#define AOTI_RUNTIME_SLIM_TESTS_FUZZ_STACK_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/slim/tests/fuzz_case.h"

namespace aoti::slim::fuzz {

// The array of arguments; the operator takes ownership of the objects on it.
class Stack {
 public:
  explicit Stack(Case& c) : case_(c) {}

  Stack& operator<<(Handle tensor) {
    values_.push_back(Tensor(tensor));
    return *this;
  }
  Stack& operator<<(std::int64_t value) {
    values_.push_back(static_cast<StableIValue>(value));
    return *this;
  }
  Stack& operator<<(bool value) { return *this << std::int64_t{value}; }
  Stack& operator<<(double value) {
    values_.push_back(std::bit_cast<StableIValue>(value));
    return *this;
  }
  Stack& operator<<(const Sizes& list) {
    values_.push_back(List(list));
    return *this;
  }
  Stack& operator<<(const std::vector<Handle>& tensors) {
    StableListHandle list = nullptr;
    torch_new_list_reserve_size(0, &list);
    for (const Handle tensor : tensors) torch_list_push_back(list, Tensor(tensor));
    values_.push_back(reinterpret_cast<StableIValue>(list));
    return *this;
  }
  Stack& operator<<(const char* text) {
    StringHandle string = nullptr;
    torch_new_string_handle(text, std::strlen(text), &string);
    values_.push_back(reinterpret_cast<StableIValue>(string));
    return *this;
  }
  Stack& operator<<(std::nullptr_t) { return *this << std::int64_t{0}; }
  // Optional arguments with a value.
  Stack& Some(Handle tensor) { return Box(Tensor(tensor)); }
  Stack& Some(std::int64_t value) { return Box(static_cast<StableIValue>(value)); }
  Stack& Some(double value) { return Box(std::bit_cast<StableIValue>(value)); }
  Stack& Some(const Sizes& list) { return Box(List(list)); }

  AOTITorchError Call(const char* name, const char* overload, std::size_t results = 1) {
    if (values_.size() < results) values_.resize(results);
    const AOTITorchError error = aoti_torch_call_dispatcher(name, overload, values_.data());
    if (error != AOTI_TORCH_SUCCESS) {
      const std::string what = torch_exception_get_what_without_backtrace();
      if (what.find("not in this program") != what.npos) Fail(name, what);
    } else {
      for (std::size_t i = 0; i < results; ++i) case_.Own(reinterpret_cast<Handle>(values_[i]));
    }
    return error;
  }

 private:
  static StableIValue Tensor(Handle tensor) {
    Handle own = nullptr;
    if (aoti_torch_new_tensor_handle(tensor, &own) != AOTI_TORCH_SUCCESS) {
      Fail("new_tensor_handle", "it failed");
    }
    return reinterpret_cast<StableIValue>(own);
  }
  static StableIValue List(const Sizes& values) {
    StableListHandle list = nullptr;
    torch_new_list_reserve_size(0, &list);
    for (const std::int64_t value : values) {
      torch_list_push_back(list, static_cast<StableIValue>(value));
    }
    return reinterpret_cast<StableIValue>(list);
  }
  Stack& Box(StableIValue value) {
    StableIValue* box = nullptr;
    torch_new_stable_ivalue(&box);
    *box = value;
    values_.push_back(reinterpret_cast<StableIValue>(box));
    return *this;
  }

  Case& case_;
  std::vector<StableIValue> values_;
};

// The operator's name in the schema.
template <std::size_t kSize>
struct Name {
  constexpr Name(const char (&name)[kSize]) {  // NOLINT: implicit, for template arguments
    std::copy_n(name, kSize, text);
  }
  char text[kSize];
};

}  // namespace aoti::slim::fuzz

#endif  // AOTI_RUNTIME_SLIM_TESTS_FUZZ_STACK_H_
