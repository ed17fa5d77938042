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
Wide FloorDiv(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
std::int64_t Patches(const std::int64_t* dims) {
  return static_cast<std::int64_t>(FloorDiv(Wide(dims[1]) + Wide(2), Wide(3)));
}
std::int64_t Pairs(const std::int64_t* dims) {
  return static_cast<std::int64_t>(Wide(dims[0]) * Wide(dims[1]) + Wide(1));
}
constexpr std::int32_t kBothDims[] = {0, 1};
constexpr std::span<const std::int32_t> kSeqDim = std::span(kBothDims).subspan(1);
constexpr Extent kPatches = {.text = "(seq + 2)//3", .compute = &Patches, .dims = kSeqDim};
constexpr Extent kPairs = {.text = "batch*seq + 1", .compute = &Pairs, .dims = kBothDims};
constexpr Extent kOfMask[] = {kBatch, kPatches};
constexpr Extent kOfPositions[] = {kBatch, kPairs};
constexpr aoti::InputSpec kComputedInputs[] = {
    Tokens("tokens"),
    {"mask", DType::kInt64, kOfMask},
    {"positions", DType::kInt64, kOfPositions},
    Cache("key_0"),
    Cache("value_0"),
    Cache("key_1"),
    Cache("value_1"),
    Cache("key_2"),
    Cache("value_2"),
    {"lengths", DType::kInt64, kOfRows},
};

// Ten inputs of which no two have the same sizes, of an encoder-decoder: no row of the table is
// shared, and each has a size that varies.
constexpr Extent Fixed(std::int64_t size) { return {.offset = size}; }
constexpr Extent Scaled(std::int64_t scale, std::int32_t dim, std::int64_t offset = 0) {
  return {.scale = scale, .dim = dim, .offset = offset, .text = "a size"};
}
constexpr Extent kOfFrames[] = {kBatch, Fixed(80), Scaled(2, 1)};
constexpr Extent kOfFrameMask[] = {kBatch, Scaled(2, 1)};
constexpr Extent kOfPositionsOfSeq[] = {kSeq};
constexpr Extent kOfSteps[] = {kBatch, Scaled(1, 1, 1)};
constexpr Extent kOfSelfCache[] = {kBatch, kHeads, Scaled(1, 1, 1), kWidth};
constexpr Extent kOfCrossCache[] = {kBatch, kHeads, Scaled(2, 1), kWidth};
constexpr Extent kOfBias[] = {kBatch, Fixed(1), kSeq, Scaled(2, 1)};
constexpr Extent kOfSpeakers[] = {kBatch, Fixed(192)};
constexpr aoti::InputSpec kDifferentInputs[] = {
    {"frames", DType::kFloat32, kOfFrames},
    {"frame_mask", DType::kBool, kOfFrameMask},
    Tokens("tokens"),
    {"positions", DType::kInt64, kOfPositionsOfSeq},
    {"steps", DType::kInt64, kOfSteps},
    {"self_cache", DType::kFloat32, kOfSelfCache},
    {"cross_cache", DType::kFloat32, kOfCrossCache},
    {"bias", DType::kFloat32, kOfBias},
    {"speakers", DType::kFloat32, kOfSpeakers},
    {"lengths", DType::kInt64, kOfRows},
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
constexpr aoti::ProgramSpec kDifferentSpec = Spec(kDifferentInputs);

// A call with sequences of `seq` tokens, and the memory that it points to.
class Call {
 public:
  Call(const aoti::ProgramSpec& spec, std::int64_t seq) : memory_(4 * 8 * 64 * 2 * seq) {
    const std::array<std::int64_t, 2> dims = {4, seq};
    for (const aoti::InputSpec& input : spec.inputs) {
      auto& sizes = sizes_.emplace_back();
      for (const Extent& extent : input.sizes) {
        sizes.push_back(extent.compute != nullptr ? extent.compute(dims.data())
                        : extent.dim < 0 ? extent.offset
                                         : extent.scale * dims[extent.dim] + extent.offset);
      }
    }
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      views_.push_back({.data = memory_.data(),
                        .dtype = spec.inputs[i].dtype,
                        .sizes = sizes_[i],
                        .strides = {}});
    }
  }
  Call(const Call&) = delete;

  std::span<const TensorView> views() const { return views_; }

 private:
  std::vector<std::int64_t> memory_;
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<TensorView> views_;
};

// Of calls that have these sequences in turn.
double NanosecondsOfChecks(const aoti::ProgramSpec& spec, std::int64_t seq, std::int64_t other) {
  const Call first(spec, seq);
  const Call second(spec, other);
  const std::array<std::span<const TensorView>, 2> calls = {first.views(), second.views()};
  aoti::internal::CallPlan plan;
  return Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t i) {
    const auto error = aoti::internal::CheckCall(spec, calls[i % 2], /*check_values=*/false, plan);
    if (error) Fail(*error);
  });
}

}  // namespace

int main() {
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
  print("the checks of ten inputs, sizes as in the call before",
        NanosecondsOfChecks(kSpec, 16, 16));
  print("the checks of ten inputs, other sizes", NanosecondsOfChecks(kSpec, 16, 17));
  print("the same, two of the sizes computed", NanosecondsOfChecks(kComputedSpec, 16, 17));
  print("the checks of ten inputs of ten shapes", NanosecondsOfChecks(kDifferentSpec, 16, 16));
  print("the same, other sizes", NanosecondsOfChecks(kDifferentSpec, 16, 17));
}
