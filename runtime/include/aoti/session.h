// A state of its own for one user of a loaded model, such as one conversation or one audio stream.
// Programs normally use the generated class of their model, whose NewSession() returns a typed
// session:
//
//   auto session = model->NewSession();
//   auto out = session->Run({.x = x});

#ifndef AOTI_SESSION_H_
#define AOTI_SESSION_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aoti/cxx20.h"
#include "aoti/error.h"
#include "aoti/model.h"
#include "aoti/result.h"

namespace aoti {

// The tensors that a model writes to, with the values of one session. Sessions share the model's
// weights and runners: a session takes the memory of these tensors alone, and takes it at its first
// call. A session may outlive the Model that made it.
//
// Thread safe. Calls of one session run one after the other; those of different sessions run at the
// same time, as many as LoadOptions::num_runners allows. In a child of fork(), sessions have the
// values that they had; if another thread was in a call of a session, its values are unspecified.
class Session {
 public:
  Session(Session&&) noexcept = default;
  Session& operator=(Session&&) noexcept = default;

  // The model that made this session, for calls that work on the session's state.
  const Model& model() const { return model_; }

  // The same for `method`: this model, or another method of a model with several, which then work
  // on one state. Errors: kInvalidArgument for another model.
  Result<Model> Bind(const Model& method) const;

  // Another session with the values that this one has now. Both have the same memory until one of
  // them runs; only then that one takes a copy.
  Result<Session> Fork() const;

  // Gives all tensors the values that they have in the weights file.
  std::optional<Error> Reset() const;

  // The values as a safetensors file, by the names that the tensors have in the module.
  Result<std::string> Save() const;

  // Replaces the values by those that Save() returned, in this process or another one. Errors:
  // kWeightsMalformed; kWeightsMismatch if tensors are missing, are not the model's, or have
  // another dtype or shape. After an error the session has its old values.
  std::optional<Error> Load(std::string_view saved) const;

 private:
  friend class Model;

  explicit Session(Model model) : model_(std::move(model)) {}

  Model model_;
};

}  // namespace aoti

#endif  // AOTI_SESSION_H_
