#include "runtime/testing/replay.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "runtime/core/buffer.h"
#include "runtime/core/mapped_file.h"
#include "runtime/core/safetensors.h"
#include "runtime/core/text.h"
#include "runtime/testing/safetensors_writer.h"

namespace aoti::testing {
namespace {

using internal::StoredTensor;
using internal::StrCat;

constexpr int kUsage = 2;
constexpr int kModelError = 3;

struct Flags {
  std::string weights;
  std::string in;
  std::string out;
  int num_runners = 0;
};

bool ParseInt(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// What is wrong with the arguments; empty if nothing is.
std::string ParseFlags(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (equals == std::string_view::npos) return StrCat("unknown argument ", argument);
    const std::string_view value = argument.substr(equals + 1);
    if (name == "--weights") {
      flags.weights = value;
    } else if (name == "--in") {
      flags.in = value;
    } else if (name == "--out") {
      flags.out = value;
    } else if (name == "--num_runners") {
      if (!ParseInt(value, flags.num_runners))
        return StrCat("--num_runners=", value, " is not a number");
    } else {
      return StrCat("unknown argument ", argument);
    }
  }
  return flags.in.empty() || flags.out.empty() ? "needs --in and --out" : "";
}

// The inputs of each call, by the input's index; null if a call lacks an input.
using Calls = std::map<int, std::vector<const StoredTensor*>>;

std::string GroupByCall(const ProgramSpec& spec, const std::vector<StoredTensor>& tensors,
                        Calls& calls) {
  for (const StoredTensor& tensor : tensors) {
    const std::size_t slash = tensor.name.find('/');
    int call = -1;
    if (slash == std::string::npos ||
        !ParseInt(std::string_view(tensor.name).substr(0, slash), call) || call < 0) {
      return StrCat("tensor \"", tensor.name, "\" is not named <call>/<input>");
    }
    std::size_t input = 0;
    while (input < spec.inputs.size() && tensor.name.substr(slash + 1) != spec.inputs[input].name) {
      ++input;
    }
    if (input == spec.inputs.size()) {
      return StrCat("tensor \"", tensor.name, "\": the model has no such input");
    }
    auto& inputs = calls[call];
    inputs.resize(spec.inputs.size(), nullptr);
    inputs[input] = &tensor;
  }
  return "";
}

int Fail(int status, const std::string& message) {
  std::fprintf(stderr, "replay: %s\n", message.c_str());
  return status;
}

int Fail(const Error& error) {
  return Fail(kModelError, StrCat(to_string(error.code()), ": ", error.message()));
}

// Runs one call and records it; returns the exit status if it failed.
std::optional<int> RunCall(const Model& model, int call,
                           const std::vector<const StoredTensor*>& given, SafetensorsWriter& out) {
  std::vector<TensorView> views;
  std::vector<internal::Buffer> writable;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr) {
      views.push_back(TensorView::Missing());
      continue;
    }
    const StoredTensor& tensor = *given[i];
    void* data = const_cast<std::byte*>(tensor.bytes.data());
    if (model.inputs()[i].mutated) {
      const internal::Buffer& copy = writable.emplace_back(tensor.bytes.size());
      if (!tensor.bytes.empty()) std::memcpy(copy.data(), data, tensor.bytes.size());
      data = copy.data();
    }
    views.push_back({.data = data,
                     .dtype = tensor.dtype,
                     .sizes = tensor.sizes,
                     .strides = {},
                     .read_only = !model.inputs()[i].mutated});
  }
  const auto results = model.Run(views);
  if (!results.ok()) return Fail(results.error());

  const auto add = [&](const char* name, DType dtype, std::span<const std::int64_t> sizes,
                       const void* data) {
    return out.Add(StrCat(call, "/", name), dtype, {sizes.begin(), sizes.end()}, data);
  };
  bool unique = true;
  for (std::size_t i = 0; i < results->size(); ++i) {
    const Tensor& tensor = (*results)[i];
    unique &= add(model.outputs()[i].name, tensor.dtype(), tensor.sizes(), tensor.data());
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!model.inputs()[i].mutated) continue;
    unique &= add(model.inputs()[i].name, views[i].dtype, views[i].sizes, views[i].data);
  }
  if (!unique) return Fail(kUsage, "an output and an input that the model writes to share a name");
  return std::nullopt;
}

}  // namespace

int ReplayMain(const ProgramSpec& spec, int argc, char** argv, std::optional<DeviceType> device) {
  Flags flags;
  if (const std::string problem = ParseFlags(argc, argv, flags); !problem.empty()) {
    return Fail(kUsage, problem);
  }
  const auto file = internal::MappedFile::Open(flags.in);
  if (!file.ok()) return Fail(kUsage, file.error().message());
  const auto tensors = internal::ParseSafetensors((*file)->bytes(), flags.in);
  if (!tensors.ok()) return Fail(kUsage, tensors.error().message());
  Calls calls;
  if (const std::string problem = GroupByCall(spec, *tensors, calls); !problem.empty()) {
    return Fail(kUsage, StrCat(flags.in, ": ", problem));
  }

  const auto model = Model::Load(
      spec, {.weights_path = flags.weights, .num_runners = flags.num_runners, .device = device});
  if (!model.ok()) return Fail(model.error());
  SafetensorsWriter out;
  for (const auto& [call, inputs] : calls) {
    if (const auto status = RunCall(*model, call, inputs, out)) return *status;
  }
  if (!out.Write(flags.out)) return Fail(kUsage, StrCat("can't write ", flags.out));
  return 0;
}

}  // namespace aoti::testing
