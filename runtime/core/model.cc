#include "aoti/model.h"

#include <utility>

#include "runtime/core/loaded.h"

namespace aoti {
namespace {

using internal::LoadedModel;
using internal::MovedFromModel;
using internal::SessionState;
using internal::WithoutExceptions;

}  // namespace

Result<Model> Model::Load(const ProgramSpec& spec, const LoadOptions& options) {
  return WithoutExceptions<Model>(spec, [&]() -> Result<Model> {
    auto loaded = LoadedModel::Load(spec, options);
    if (!loaded.ok()) return std::move(loaded).error();
    return Model(
        std::make_unique<Loaded>(Loaded{*std::move(loaded), std::make_shared<SessionState>()}));
  });
}

Result<std::vector<Model>> Model::LoadMethods(std::span<const ProgramSpec* const> specs,
                                              const LoadOptions& options) {
  if (specs.empty()) return Error(ErrorCode::kInvalidArgument, "LoadMethods: no programs");
  return WithoutExceptions<std::vector<Model>>(*specs.front(), [&]() -> Result<std::vector<Model>> {
    std::vector<Model> models;
    std::vector<std::shared_ptr<LoadedModel>> methods;
    models.reserve(specs.size());
    const auto session = std::make_shared<SessionState>();
    for (const ProgramSpec* spec : specs) {
      if (spec->weights.data() != specs.front()->weights.data() ||
          spec->packed.data() != specs.front()->packed.data()) {
        return Error(ErrorCode::kInvalidArgument,
                     internal::StrCat(spec->name, ": not a method of the same model as ",
                                      specs.front()->name, ": they have other weights"));
      }
      auto loaded = methods.empty() ? LoadedModel::Load(*spec, options)
                                    : LoadedModel::Load(*spec, options,
                                                        methods[0]->weights()->shared_weights());
      if (!loaded.ok()) return std::move(loaded).error();
      methods.push_back(*loaded);
      models.push_back(Model(std::make_unique<Loaded>(Loaded{*std::move(loaded), session})));
    }
    LoadedModel::Join(methods);
    return models;
  });
}

Model::Model(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<std::vector<Tensor>> Model::Run(std::span<const TensorView> inputs,
                                       const RunOptions& options) const {
  if (loaded_ == nullptr) return MovedFromModel();
  return WithoutExceptions<std::vector<Tensor>>(
      spec(), [&] { return loaded_->model->Run(*loaded_->session, inputs, options); });
}

std::optional<Error> Model::SwapWeights(const std::string& path, bool copy_weights) const {
  return SwapAdapter({}, path, copy_weights);
}

std::optional<Error> Model::SwapAdapter(const std::string& adapter_path,
                                        const std::string& weights_path, bool copy_weights) const {
  if (loaded_ == nullptr) return MovedFromModel();
  return internal::ErrorWithoutExceptions(spec(), [&] {
    return loaded_->model->SwapWeights({weights_path, adapter_path, copy_weights});
  });
}

std::optional<Error> Model::ManualSeed(std::uint64_t seed) const {
  if (loaded_ == nullptr) return MovedFromModel();
  return loaded_->model->ManualSeed(seed);
}

const char* Model::isa() const { return loaded_ == nullptr ? "" : loaded_->model->isa(); }

DeviceType Model::device() const {
  return loaded_ == nullptr ? DeviceType::kCpu : loaded_->model->device();
}

const ProgramSpec& Model::spec() const {
  static constexpr ProgramSpec kNone = {
      .name = "", .label = "", .torch_version = "", .weights_runfile = ""};
  return loaded_ == nullptr ? kNone : loaded_->model->spec();
}

}  // namespace aoti
