// A value or an error.

#ifndef AOTI_RESULT_H_
#define AOTI_RESULT_H_

#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

#include "aoti/cxx20.h"
#include "aoti/error.h"

namespace aoti {

// What is the same in every Result.
class ResultBase {
 protected:
  // Prints `what` and the error to stderr and aborts.
  [[noreturn]] static void DieOfBadAccess(const char* what, const Error* error);
};

// Holds either a T, or the Error that says why there is none.
//
//   aoti::Result<models::Encoder> encoder = models::Encoder::Load();
//   if (!encoder.ok()) {
//     std::cerr << encoder.error().message() << "\n";
//     return 1;
//   }
//   encoder->Run(...);
//
// Taking the value of a Result that holds an error, or the error of one that holds a value, is a
// programming mistake: it prints the error and aborts the process. No exception leaves this API. A
// Result that was moved from still holds a (moved-from) value or error.
template <typename T>
class [[nodiscard]] Result : private ResultBase {
  static_assert(!std::is_reference_v<T> && !std::is_same_v<std::remove_cv_t<T>, Error>);

 public:
  using value_type = T;

  // Implicit, so that functions can return either.
  Result(const T& value)  // NOLINT(google-explicit-constructor)
    requires std::copy_constructible<T>
      : state_(std::in_place_index<0>, value) {}
  Result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(const Error& error) : state_(std::in_place_index<1>, error) {}        // NOLINT
  Result(Error&& error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return CheckedValue(), *std::get_if<0>(&state_); }
  const T& value() const& { return CheckedValue(), *std::get_if<0>(&state_); }
  T&& value() && { return CheckedValue(), std::move(*std::get_if<0>(&state_)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return CheckedError(), *std::get_if<1>(&state_); }
  Error&& error() && { return CheckedError(), std::move(*std::get_if<1>(&state_)); }

 private:
  void CheckedValue() const {
    if (!ok()) [[unlikely]] {
      DieOfBadAccess("value of a Result that holds an error", std::get_if<1>(&state_));
    }
  }
  void CheckedError() const {
    if (ok()) [[unlikely]] {
      DieOfBadAccess("error of a Result that holds a value", nullptr);
    }
  }

  std::variant<T, Error> state_;
};

}  // namespace aoti

#endif  // AOTI_RESULT_H_
