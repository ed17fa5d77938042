// What the checks of a call cost, beside a call of the smallest model: nanoseconds per call.

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "aoti/dtype.h"
#include "aoti/error.h"
#include "aoti/program_spec.h"
#include "aoti/tensor_view.h"
#include "benchmarks/mlp_v3_slim.h"
#include "benchmarks/nanoseconds.h"
#include "runtime/core/check.h"

namespace {

using aoti::DType;
using aoti::Extent;
using aoti::TensorView;
using benchmarks::Fail;
using benchmarks::Nanoseconds;

constexpr int kRounds = 100;
constexpr std::size_t kCallsPerRound = 10'000;

constexpr Extent kBatch = {.scale = 1, .dim = 0, .text = "batch"};
constexpr Extent kSeq = {.scale = 1, .dim = 1, .text = "seq"};
constexpr Extent kHeads = {.offset = 8};
constexpr Extent kWidth = {.offset = 64};
constexpr Extent kOfTokens[] = {kBatch, kSeq};
constexpr Extent kOfCache[] = {kBatch, kHeads, kSeq, kWidth};
constexpr Extent kOfRows[] = {kBatch};
constexpr aoti::DimSpec kDims[] = {{"batch", 1, 64}, {"seq", 1, 2048}};

// What a decoder takes: tokens, mask and positions, six tensors of a cache, and lengths.
constexpr aoti::InputSpec Tokens(const char* name) { return {name, DType::kInt64, kOfTokens}; }
constexpr aoti::InputSpec Cache(const char* name) { return {name, DType::kFloat32, kOfCache}; }
constexpr aoti::InputSpec kInputs[] = {
    Tokens("tokens"),    Tokens("mask"),
    Tokens("positions"), Cache("key_0"),
    Cache("value_0"),    Cache("key_1"),
    Cache("value_1"),    Cache("key_2"),
    Cache("value_2"),    {"lengths", DType::kInt64, kOfRows},
};

// The same with two sizes that are computed, as generated code does it, in numbers of 128 bits.
__extension__ typedef __int128 Wide;
std::int64_t Computed(const std::int64_t* dims) {
  return static_cast<std::int64_t>((Wide(2) * Wide(dims[1]) + Wide(1)) / Wide(2));
}
constexpr std::int32_t kSeqDim[] = {1};
constexpr Extent kOfMask[] = {kBatch,
                              {.text = "(2*seq + 1)//2", .compute = &Computed, .dims = kSeqDim}};
constexpr aoti::InputSpec Mask(const char* name) { return {name, DType::kInt64, kOfMask}; }
constexpr aoti::InputSpec kComputedInputs[] = {
    Tokens("tokens"),  Mask("mask"),
    Mask("positions"), Cache("key_0"),
    Cache("value_0"),  Cache("key_1"),
    Cache("value_1"),  Cache("key_2"),
    Cache("value_2"),  {"lengths", DType::kInt64, kOfRows},
};

constexpr aoti::ProgramSpec Spec(std::span<const aoti::InputSpec> inputs) {
  return {.name = "ten_inputs",
          .label = "//benchmarks:checks",
          .torch_version = "",
          .weights_runfile = "",
          .dims = kDims,
          .inputs = inputs,
          .outputs = {},
          .weights = {},
          .packed = {},
          .variants = {}};
}
constexpr aoti::ProgramSpec kSpec = Spec(kInputs);
constexpr aoti::ProgramSpec kComputedSpec = Spec(kComputedInputs);

// A call with sequences of `seq` tokens, and the memory that it points to.
struct Call {
  explicit Call(std::int64_t seq)
      : token_sizes{4, seq},
        cache_sizes{4, 8, seq, 64},
        tokens(static_cast<std::size_t>(4 * seq)),
        cache(static_cast<std::size_t>(4 * 8 * seq * 64)) {
    for (const aoti::InputSpec& input : kInputs) {
      if (input.dtype == DType::kFloat32) {
        Add(cache.data(), DType::kFloat32, cache_sizes);
      } else if (input.sizes.size() == 2) {
        Add(tokens.data(), DType::kInt64, token_sizes);
      } else {
        Add(tokens.data(), DType::kInt64, row_sizes);
      }
    }
  }
  Call(const Call&) = delete;

  void Add(void* data, DType dtype, std::span<const std::int64_t> sizes) {
    views.push_back({.data = data, .dtype = dtype, .sizes = sizes, .strides = {}});
  }

  std::array<std::int64_t, 1> row_sizes = {4};
  std::array<std::int64_t, 2> token_sizes;
  std::array<std::int64_t, 4> cache_sizes;
  std::vector<std::int64_t> tokens;
  std::vector<float> cache;
  std::vector<TensorView> views;
};

double NanosecondsOfChecks(const aoti::ProgramSpec& spec, std::span<const Call* const> calls) {
  aoti::internal::CallPlan plan;
  return Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t i) {
    const auto& views = calls[i % calls.size()]->views;
    const auto error = aoti::internal::CheckCall(spec, views, /*check_values=*/false, plan);
    if (error) Fail(*error);
  });
}

}  // namespace

int main() {
  const Call one(16);
  const Call other(17);
  const Call* const same[] = {&one};
  const Call* const changing[] = {&one, &other};

  auto model = benchmarked::Model::Load({.threads = 1});
  if (!model.ok()) Fail(model.error());
  const std::vector<float> row(64);
  const std::array<std::int64_t, 2> sizes = {1, 64};
  const double call = Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t) {
    const auto outputs = model->Run({.input = {row, sizes}});
    if (!outputs.ok()) Fail(outputs.error());
  });

  const auto print = [&](const char* what, double nanoseconds) {
    std::printf("%-52s %8.1f ns %7.3f of the MLP's call\n", what, nanoseconds, nanoseconds / call);
  };
  print("a call of the MLP with one row, checks included", call);
  print("the checks of ten inputs, sizes as in the call before", NanosecondsOfChecks(kSpec, same));
  print("the checks of ten inputs, other sizes", NanosecondsOfChecks(kSpec, changing));
  print("the same, two of the sizes computed", NanosecondsOfChecks(kComputedSpec, changing));
}
