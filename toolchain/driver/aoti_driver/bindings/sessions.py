"""The C++ class of a model's sessions, for models that write to some of their buffers."""

from __future__ import annotations

from aoti_driver.bindings.text import substitute

_MEMBERS = """\
  class Session;

  // A new state, which begins with the values of the weights file. Calls of this object work on its
  // own state, the default one.
  ::aoti::Result<Session> NewSession() const;

"""

_CLASS = """\
// The model with a state of its own, for one user; sessions share the weights. Calls of a session
// work on its state. Thread safe: calls of one session run one after the other, those of different
// sessions at the same time. Errors: see aoti/session.h.
class @CLASS@::Session : public @CLASS@ {
 public:
  // Another session with the values that this one has now; its memory is copied when one of the two
  // runs.
  ::aoti::Result<Session> Fork() const { return Make(*this, session_.Fork()); }

  // Gives the state the values of the weights file.
  std::optional<::aoti::Error> Reset() const { return session_.Reset(); }

  // The state as a safetensors file, which Load() takes in this process or in another one.
  ::aoti::Result<std::string> Save() const { return session_.Save(); }
  std::optional<::aoti::Error> Load(std::string_view saved) const { return session_.Load(saved); }

 private:
  friend class @CLASS@;

  Session(@CLASS@ model, ::aoti::Session session)
      : @CLASS@(std::move(model)), session_(std::move(session)) {}

  static ::aoti::Result<Session> Make(const @CLASS@& model,
                                      ::aoti::Result<::aoti::Session> session);

  ::aoti::Session session_;
};

"""

_ONE = """
::aoti::Result<@CLASS@::Session> @CLASS@::NewSession() const {
  return Session::Make(*this, model_.NewSession());
}

::aoti::Result<@CLASS@::Session> @CLASS@::Session::Make(
    const @CLASS@& model, ::aoti::Result<::aoti::Session> session) {
  if (!session.ok()) return std::move(session).error();
  auto bound = session->Bind(model.model_);
  if (!bound.ok()) return std::move(bound).error();
  return Session(@CLASS@(*std::move(bound)), *std::move(session));
}
"""

_SEVERAL = """\
::aoti::Result<@CLASS@::Session> @CLASS@::NewSession() const {
  if (methods_.empty()) return MovedFrom();
  return Session::Make(*this, methods_[0].NewSession());
}

::aoti::Result<@CLASS@::Session> @CLASS@::Session::Make(
    const @CLASS@& model, ::aoti::Result<::aoti::Session> session) {
  if (!session.ok()) return std::move(session).error();
  std::vector<::aoti::Model> methods;
  for (const ::aoti::Model& method : model.methods_) {
    auto bound = session->Bind(method);
    if (!bound.ok()) return std::move(bound).error();
    methods.push_back(*std::move(bound));
  }
  return Session(@CLASS@(std::move(methods)), *std::move(session));
}

"""

INCLUDE = '#include "aoti/session.h"\n'


def members() -> str:
    """What the class of the model has in its public part."""
    return _MEMBERS


def session_class(class_name: str) -> str:
    """The definition that follows the class of the model."""
    return substitute(_CLASS, {"CLASS": class_name})


def source(class_name: str, *, several_methods: bool) -> str:
    """The functions that the header does not define."""
    return substitute(_SEVERAL if several_methods else _ONE, {"CLASS": class_name})
