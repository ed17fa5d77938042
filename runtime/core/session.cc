#include "aoti/session.h"

#include <utility>

#include "runtime/core/loaded.h"
#include "runtime/core/safetensors.h"

namespace aoti {
namespace {

using internal::LoadedModel;
using internal::SessionState;
using internal::State;
using internal::Turn;

Error MovedFrom() {
  return {ErrorCode::kInvalidArgument,
          "this Session was moved from; use the one that it was moved to"};
}

}  // namespace

Result<Session> Model::NewSession() const {
  if (loaded_ == nullptr) return internal::MovedFromModel();
  if (!internal::HasState(spec())) {
    return Error(ErrorCode::kInvalidArgument,
                 internal::StrCat(spec().name,
                                  ": has no state, because the model writes to none of its "
                                  "buffers; call the model itself"));
  }
  return internal::WithoutExceptions<Session>(spec(), [&]() -> Result<Session> {
    return Session(
        Model(std::make_unique<Loaded>(Loaded{loaded_->model, std::make_shared<SessionState>()})));
  });
}

Result<Model> Session::Bind(const Model& method) const {
  if (model_.loaded_ == nullptr) return MovedFrom();
  const ProgramSpec& spec = model_.spec();
  if (method.loaded_ == nullptr || method.spec().weights.data() != spec.weights.data()) {
    return Error(ErrorCode::kInvalidArgument,
                 internal::StrCat(
                     spec.name, ": the session can't be bound to ",
                     method.loaded_ == nullptr ? "a Model that was moved from" : method.spec().name,
                     ", which is not a method of its model"));
  }
  return internal::WithoutExceptions<Model>(spec, [&]() -> Result<Model> {
    return Model(std::make_unique<Model::Loaded>(
        Model::Loaded{method.loaded_->model, model_.loaded_->session}));
  });
}

Result<Session> Session::Fork() const {
  if (model_.loaded_ == nullptr) return MovedFrom();
  return internal::WithoutExceptions<Session>(model_.spec(), [&]() -> Result<Session> {
    const Turn turn(*model_.loaded_->session);
    return Session(Model(std::make_unique<Model::Loaded>(
        Model::Loaded{model_.loaded_->model, model_.loaded_->session->Fork()})));
  });
}

std::optional<Error> Session::Reset() const {
  if (model_.loaded_ == nullptr) return MovedFrom();
  const Turn turn(*model_.loaded_->session);
  model_.loaded_->session->Replace(nullptr);
  return std::nullopt;
}

Result<std::string> Session::Save() const {
  if (model_.loaded_ == nullptr) return MovedFrom();
  const ProgramSpec& spec = model_.spec();
  return internal::WithoutExceptions<std::string>(spec, [&]() -> Result<std::string> {
    const auto weights = model_.loaded_->model->weights();
    const Turn turn(*model_.loaded_->session);
    const auto state = model_.loaded_->session->Read(spec, weights->weights());
    return internal::ToSafetensors(state->StoredTensors(spec));
  });
}

std::optional<Error> Session::Load(std::string_view saved) const {
  if (model_.loaded_ == nullptr) return MovedFrom();
  const ProgramSpec& spec = model_.spec();
  return internal::ErrorWithoutExceptions(spec, [&]() -> std::optional<Error> {
    auto state = State::Parse(spec, saved);
    if (!state.ok()) return std::move(state).error();
    const Turn turn(*model_.loaded_->session);
    model_.loaded_->session->Replace(*std::move(state));
    return std::nullopt;
  });
}

}  // namespace aoti
