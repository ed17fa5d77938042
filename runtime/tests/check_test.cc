// The checks of a call: one test for each error that a user can meet.

#include "runtime/core/check.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "aoti/tensor_view.h"
#include "runtime/tests/check.h"

namespace aoti::internal {
namespace {

// dims: batch 1..4, half 1..256, seq = 2*half, width 1 and more
constexpr DimSpec kDims[] = {{"batch", 1, 4},
                             {"half", 1, 256},
                             {"seq", 2, 512, {2, 1, 0, "2*half"}},
                             {"width", 1, std::numeric_limits<std::int64_t>::max()}};
constexpr Extent kTokens[] = {{1, 0, 0, "batch"}, {2, 1, 0, "seq"}};
constexpr Extent kMask[] = {{1, 0, 0, "batch"}, {0, -1, 1, "1"}, {2, 1, 1, "2*half + 1"}};
constexpr Extent kCache[] = {{0, -1, 2, "2"}, {1, 1, 0, "half"}};
constexpr Extent kImage[] = {{0, -1, 3, "3"}, {1, 3, 0, "width"}};
// [3, width], channels last
void ImageStrides(const std::int64_t*, std::int64_t* strides) {
  strides[0] = 1;
  strides[1] = 3;
}
constexpr InputSpec kInputs[] = {
    {.name = "tokens",
     .dtype = DType::kInt64,
     .sizes = kTokens,
     .has_values = true,
     .min_value = 0,
     .max_value = 99},
    {.name = "mask", .dtype = DType::kFloat32, .sizes = kMask},
    {.name = "cache", .dtype = DType::kFloat32, .sizes = kCache, .mutated = true},
    {.name = "image", .dtype = DType::kUInt8, .sizes = kImage, .strides = &ImageStrides},
};
constexpr ProgramSpec kSpec = {.name = "encoder",
                               .label = "//:encoder",
                               .torch_version = "2.13.0",
                               .weights_runfile = "",
                               .dims = kDims,
                               .inputs = kInputs,
                               .outputs = {},
                               .weights = {},
                               .packed = {},
                               .state = {},
                               .variants = {}};

// A right call, whose parts the tests spoil: batch 2, half 3, seq 6, width 5.
struct Call {
  std::vector<std::int64_t> tokens = std::vector<std::int64_t>(12, 7);
  std::vector<float> mask = std::vector<float>(14);
  std::vector<float> cache = std::vector<float>(6);
  std::vector<std::uint8_t> image = std::vector<std::uint8_t>(15);
  std::vector<std::int64_t> tokens_sizes = {2, 6};
  std::vector<std::int64_t> mask_sizes = {2, 1, 7};
  std::vector<std::int64_t> cache_sizes = {2, 3};
  std::vector<std::int64_t> image_sizes = {3, 5};
  std::vector<std::int64_t> image_strides = {1, 3};
  std::vector<TensorView> views = {
      {.data = tokens.data(), .dtype = DType::kInt64, .sizes = tokens_sizes, .strides = {}},
      {.data = mask.data(), .dtype = DType::kFloat32, .sizes = mask_sizes, .strides = {}},
      {.data = cache.data(),
       .dtype = DType::kFloat32,
       .sizes = cache_sizes,
       .strides = {},
       .read_only = false},
      {.data = image.data(),
       .dtype = DType::kUInt8,
       .sizes = image_sizes,
       .strides = image_strides},
  };
  CallPlan plan;

  Call() = default;
  Call(const Call&) = delete;

  std::string Message(bool check_values = true) {
    const auto error = CheckCall(kSpec, views, check_values, plan);
    if (!error) return "ok";
    return std::string(to_string(error->code())) + ": " + error->message();
  }
};

TEST(TakesARightCall) {
  Call call;
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.dims == std::vector<std::int64_t>({2, 3, 6, 5}));
  for (const InputPlan& input : call.plan.inputs) CHECK_TRUE(!input.copy);
  CHECK_TRUE(call.plan.inputs[0].strides == std::vector<std::int64_t>({6, 1}));
  CHECK_TRUE(call.plan.inputs[3].strides == std::vector<std::int64_t>({1, 3}));
}

TEST(WrongInputCount) {
  Call call;
  call.views.pop_back();
  CHECK_EQ(call.Message(),
           "WrongInputCount: encoder: got 3 inputs, must be 4 (tokens, mask, cache, image)");
}

TEST(MissingInput) {
  Call call;
  call.views[1] = TensorView::Missing();
  CHECK_EQ(
      call.Message(),
      "MissingInput: encoder: input \"mask\": not given, must be float32[batch, 1, 2*half + 1]");
}

TEST(WrongRank) {
  Call call;
  call.tokens_sizes = {1, 2, 6};
  call.views[0].sizes = call.tokens_sizes;
  CHECK_EQ(call.Message(),
           "WrongRank: encoder: input \"tokens\": rank is 3 (shape [1, 2, 6]), must be 2 "
           "([batch, seq])");
}

TEST(WrongDType) {
  Call call;
  call.views[0].dtype = DType::kInt32;
  CHECK_EQ(call.Message(), "WrongDType: encoder: input \"tokens\": dtype is int32, must be int64");
}

TEST(WrongStaticSize) {
  Call call;
  call.mask_sizes[1] = 3;
  CHECK_EQ(call.Message(), "WrongSize: encoder: input \"mask\": dim 1 is 3, must be 1");
}

TEST(SizeOutOfRange) {
  Call call;
  call.tokens_sizes[1] = 700;
  CHECK_EQ(call.Message(),
           "SizeOutOfRange: encoder: input \"tokens\": dim 1 (seq) is 700, must be in 2..512");
  call.tokens_sizes[1] = -2;
  CHECK_EQ(call.Message(),
           "SizeOutOfRange: encoder: input \"tokens\": dim 1 (seq) is -2, must be in 2..512");
  call.tokens_sizes = {5, 6};
  CHECK_EQ(call.Message(),
           "SizeOutOfRange: encoder: input \"tokens\": dim 0 (batch) is 5, must be in 1..4");
}

TEST(RangeWithoutUpperEnd) {
  Call call;
  call.image_sizes[1] = 0;
  CHECK_EQ(call.Message(),
           "SizeOutOfRange: encoder: input \"image\": dim 1 (width) is 0, must be at least 1");
}

TEST(SizeThatNoDimGives) {
  Call call;
  call.tokens_sizes[1] = 7;
  CHECK_EQ(call.Message(),
           "SizeMismatch: encoder: input \"tokens\": dim 1 (seq) is 7, must be 2*half for a whole "
           "half");
  call.tokens_sizes[1] = 6;
  call.mask_sizes[2] = 8;
  CHECK_EQ(call.Message(),
           "SizeMismatch: encoder: input \"mask\": dim 2 (2*half + 1) is 8, must be 2*half + 1 for "
           "a whole half");
}

TEST(InputsThatDisagree) {
  Call call;
  call.mask_sizes[0] = 3;
  CHECK_EQ(call.Message(),
           "SizeMismatch: encoder: input \"mask\": dim 0 (batch) is 3, but input \"tokens\" dim 0 "
           "says batch = 2");
  call.mask_sizes[0] = 2;
  call.mask_sizes[2] = 9;
  CHECK_EQ(call.Message(),
           "SizeMismatch: encoder: input \"mask\": dim 2 (2*half + 1) is 9, but input \"tokens\" "
           "dim 1 says half = 3");
}

TEST(NullData) {
  Call call;
  call.views[1].data = nullptr;
  CHECK_EQ(call.Message(),
           "NullData: encoder: input \"mask\": data is null, but shape [2, 1, 7] has 14 elements");
}

TEST(WrongBufferLength) {
  Call call;
  call.views[0].buffer_elements = 11;
  CHECK_EQ(call.Message(),
           "WrongSize: encoder: input \"tokens\": the buffer holds 11 elements, but shape [2, 6] "
           "has 12");
  call.views[0].buffer_elements = 12;
  CHECK_EQ(call.Message(), "ok");
}

TEST(MoreElementsThanMemory) {
  Call call;
  call.image_sizes[1] = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK_EQ(call.Message(),
           "WrongSize: encoder: input \"image\": shape [3, 4611686018427387903] has more elements "
           "than memory can hold");
}

TEST(ReadOnlyMemoryOfAMutatedInput) {
  Call call;
  call.views[2].read_only = true;
  CHECK_EQ(call.Message(),
           "ReadOnly: encoder: input \"cache\": memory is read-only, but the model writes to it");
}

TEST(StridesOfAMutatedInput) {
  Call call;
  const std::vector<std::int64_t> strides = {1, 2};
  call.views[2].strides = strides;
  CHECK_EQ(call.Message(),
           "WrongStrides: encoder: input \"cache\": strides are [1, 2], must be [3, 1] "
           "(contiguous), because the model writes to it in place");
}

TEST(AlignmentOfAMutatedInput) {
  Call call;
  call.views[2].data = reinterpret_cast<char*>(call.cache.data()) + 2;
  CHECK_EQ(call.Message(),
           "InvalidArgument: encoder: input \"cache\": address must be a multiple of 4, because "
           "the model writes to it in place");
}

TEST(NumberOfStrides) {
  Call call;
  const std::vector<std::int64_t> strides = {1};
  call.views[0].strides = strides;
  CHECK_EQ(call.Message(),
           "WrongStrides: encoder: input \"tokens\": has 1 strides for 2 dimensions");
}

TEST(OtherStridesAreCopied) {
  Call call;
  const std::vector<std::int64_t> transposed = {1, 2};
  call.views[0].strides = transposed;
  call.views[3].strides = {};  // contiguous, where channels last is expected
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.inputs[0].copy);
  CHECK_TRUE(!call.plan.inputs[1].copy);
  CHECK_TRUE(call.plan.inputs[3].copy);
}

TEST(UnalignedIsCopied) {
  Call call;
  call.views[1].data = reinterpret_cast<char*>(call.mask.data()) + 1;
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.inputs[1].copy);
}

TEST(StridesOfSingleElementsDontMatter) {
  Call call;
  const std::vector<std::int64_t> strides = {7, 1234, 1};
  call.views[1].strides = strides;
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(!call.plan.inputs[1].copy);
}

TEST(ValueOutOfRange) {
  Call call;
  call.tokens[8] = 100;
  CHECK_EQ(call.Message(),
           "ValueOutOfRange: encoder: input \"tokens\": value at [1, 2] is 100, must be in 0..99");
  CHECK_EQ(call.Message(/*check_values=*/false), "ok");
  call.tokens[8] = 99;
  call.tokens[1] = -1;
  CHECK_EQ(call.Message(),
           "ValueOutOfRange: encoder: input \"tokens\": value at [0, 1] is -1, must be in 0..99");
  const std::vector<std::int64_t> transposed = {1, 2};
  call.views[0].strides = transposed;
  CHECK_EQ(call.Message(),
           "ValueOutOfRange: encoder: input \"tokens\": value at [1, 0] is -1, must be in 0..99");
}

TEST(PlansAreReused) {
  Call call;
  call.mask_sizes[0] = 3;
  CHECK_TRUE(call.Message() != "ok");
  call.mask_sizes[0] = 2;
  CHECK_EQ(call.Message(), "ok");
}

}  // namespace
}  // namespace aoti::internal

int main() { return aoti::testing::RunAllTests(); }
