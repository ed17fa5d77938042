// What a Model holds: a loaded program, and the session whose state its calls work on.

#ifndef AOTI_RUNTIME_CORE_LOADED_H_
#define AOTI_RUNTIME_CORE_LOADED_H_

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "aoti/model.h"
#include "runtime/core/device.h"
#include "runtime/core/loaded_model.h"
#include "runtime/core/session_state.h"
#include "runtime/core/text.h"

namespace aoti {

struct Model::Loaded {
  std::shared_ptr<internal::LoadedModel> model;
  std::shared_ptr<internal::SessionState> session;
};

namespace internal {

inline Error MovedFromModel() {
  return {ErrorCode::kInvalidArgument,
          "this Model was moved from; use the one that it was moved to"};
}

// Turns exceptions of the standard library into errors: no exception leaves the public API.
template <typename T, typename Function>
Result<T> WithoutExceptions(const ProgramSpec& spec, const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, StrCat(spec.name, ": out of memory"));
  } catch (const DeviceError& error) {
    return Error(error.code(), StrCat(spec.name, ": ", error.what()));
  } catch (const std::exception& exception) {
    return Error(ErrorCode::kInternal, StrCat(spec.name, ": ", exception.what()));
  }
}

// The same for a function that returns an optional error.
template <typename Function>
std::optional<Error> ErrorWithoutExceptions(const ProgramSpec& spec, const Function& function) {
  using Outcome = std::optional<Error>;
  auto outcome =
      WithoutExceptions<Outcome>(spec, [&]() -> Result<Outcome> { return Outcome(function()); });
  return outcome.ok() ? *std::move(outcome) : std::move(outcome).error();
}

}  // namespace internal
}  // namespace aoti

#endif  // AOTI_RUNTIME_CORE_LOADED_H_
