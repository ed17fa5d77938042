// Where the time of a decoded token goes: see README.md. MODEL_HEADER and MODEL_CLASS come from the
// BUILD file.
//
//   decode_profile_float32 THREADS CONTEXT SECONDS [--copy-weights] [--functions]
//
// prints a line of JSON: {"ms": per token, "bytes": that it reads, "kinds": {name: share}}. With
// --functions it prints the functions with the most samples, too.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aoti/model.h"
#include "benchmarks/profile/kinds.h"
#include "benchmarks/profile/sampler.h"
#include "benchmarks/profile/symbols.h"
#include "runtime/core/weights.h"

#include MODEL_HEADER

namespace aoti::benchmark {
namespace {

using Clock = std::chrono::steady_clock;

// layers, keys and values, tokens, heads, elements
constexpr std::array<std::int64_t, 5> kCacheSizes = {30, 2, 2048, 3, 64};
constexpr std::int64_t kPerToken =
    kCacheSizes[0] * kCacheSizes[1] * kCacheSizes[3] * kCacheSizes[4];

// A token that is appended to a sequence, again and again at the same place.
class Token {
 public:
  explicit Token(std::int64_t context)
      : mask_(static_cast<std::size_t>(context + 1), 1),
        position_{context},
        cache_(kCacheSizes[2] * kPerToken) {
    // Numbers of ordinary size: what they are does not matter.
    for (std::size_t i = 0; i < cache_.size(); ++i) {
      cache_[i] = static_cast<float>(i * 7919 % 1000) / 1000;
    }
  }

  // In the order of the model's inputs.
  std::vector<TensorView> Inputs(const Model& model) {
    std::vector<TensorView> views;
    for (const InputSpec& input : model.inputs()) {
      const std::string_view name = input.name;
      if (name == "input_ids") {
        views.push_back({.data = id_.data(), .dtype = input.dtype, .sizes = kOneByOne});
      } else if (name == "attention_mask") {
        views.push_back({.data = mask_.data(), .dtype = input.dtype, .sizes = mask_sizes_});
      } else if (name == "cache_position") {
        views.push_back({.data = position_.data(), .dtype = input.dtype, .sizes = kOne});
      } else if (name == "past_key_values") {
        views.push_back({.data = cache_.data(),
                         .dtype = input.dtype,
                         .sizes = kCacheSizes,
                         .read_only = false});
      } else {
        throw std::runtime_error("no value for the input " + std::string(name));
      }
    }
    return views;
  }

 private:
  static constexpr std::array<std::int64_t, 1> kOne = {1};
  static constexpr std::array<std::int64_t, 2> kOneByOne = {1, 1};

  std::array<std::int64_t, 1> id_ = {504};
  std::vector<std::int64_t> mask_;
  std::array<std::int64_t, 1> position_;
  std::vector<float> cache_;
  std::array<std::int64_t, 2> mask_sizes_ = {1, static_cast<std::int64_t>(mask_.size())};
};

// Of the keys and values of earlier tokens, and of the weights that a token needs as a whole: an
// embedding of its own is read by rows.
std::size_t BytesPerToken(const ProgramSpec& spec, std::int64_t context) {
  std::size_t bytes = static_cast<std::size_t>(context * kPerToken) * sizeof(float);
  for (const WeightSpec& weight : spec.weights) {
    if (!std::string_view(weight.name).starts_with("embedding."))
      bytes += internal::BytesOf(weight);
  }
  return bytes;
}

void Profile(const ProgramSpec& spec, int threads, std::int64_t context, double seconds,
             bool copy_weights, bool functions) {
  auto loaded =
      Model::Load(spec, {.copy_weights = copy_weights, .num_runners = 1, .threads = threads});
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
  const Model model = *std::move(loaded);
  Token token(context);
  const std::vector<TensorView> inputs = token.Inputs(model);
  std::vector<double> times;
  const auto decode = [&](double duration) {
    times.clear();
    const auto end = Clock::now() + std::chrono::duration<double>(duration);
    for (auto before = Clock::now(); before < end;) {
      const auto outputs = model.Run(inputs);
      if (!outputs.ok()) throw std::runtime_error(outputs.error().message());
      const auto after = Clock::now();
      times.push_back(std::chrono::duration<double, std::milli>(after - before).count());
      before = after;
    }
  };
  decode(0.3);  // the weights come into memory, and the threads begin
  const std::vector<std::uintptr_t> samples = Sample([&] { decode(seconds); });
  std::sort(times.begin(), times.end());

  const Symbols symbols = Symbols::OfThisProgram();
  std::map<std::string, std::size_t> counts;
  for (const std::uintptr_t sample : samples) ++counts[symbols.At(sample)];
  std::array<std::size_t, kKindNames.size()> kinds{};
  for (const auto& [name, count] : counts) kinds[static_cast<std::size_t>(KindOf(name))] += count;
  const double all = static_cast<double>(std::max<std::size_t>(samples.size(), 1));
  std::printf("{\"ms\": %.3f, \"bytes\": %zu, \"kinds\": {", times[times.size() / 2],
              BytesPerToken(spec, context));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    std::printf("%s\"%s\": %.4f", i == 0 ? "" : ", ", kKindNames[i],
                static_cast<double>(kinds[i]) / all);
  }
  std::printf("}}\n");
  if (!functions) return;
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.emplace_back(count, name);
  std::sort(sorted.rbegin(), sorted.rend());
  sorted.resize(std::min<std::size_t>(sorted.size(), 40));
  for (const auto& [count, name] : sorted) {
    std::printf("%6.2f %% %-10s %s\n", 100 * static_cast<double>(count) / all,
                kKindNames[static_cast<std::size_t>(KindOf(name))],
                name.empty() ? "(unknown)" : name.c_str());
  }
}

}  // namespace
}  // namespace aoti::benchmark

int main(int argc, char** argv) {
  bool copy_weights = false, functions = false, known = argc >= 4;
  for (int i = 4; i < argc; ++i) {
    const std::string_view flag = argv[i];
    copy_weights = copy_weights || flag == "--copy-weights";
    functions = functions || flag == "--functions";
    known = known && (flag == "--copy-weights" || flag == "--functions");
  }
  if (!known) {
    std::fprintf(stderr, "usage: %s THREADS CONTEXT SECONDS [--copy-weights] [--functions]\n",
                 argv[0]);
    return 2;
  }
  try {
    aoti::benchmark::Profile(MODEL_CLASS::Spec(), std::atoi(argv[1]), std::atoll(argv[2]),
                             std::atof(argv[3]), copy_weights, functions);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
