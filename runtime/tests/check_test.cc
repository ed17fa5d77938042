// The checks of a call, with one test for each error that a user can get.

#include "runtime/core/check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
                               .variants = {}};

// A valid call, which the tests modify: batch 2, half 3, seq 6, width 5.
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

TEST(AcceptsAValidCall) {
  Call call;
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.dims == std::vector<std::int64_t>({2, 3, 6, 5}));
  for (const InputPlan& input : call.plan.inputs) CHECK_TRUE(!input.copy);
  CHECK_TRUE(std::ranges::equal(call.plan.inputs[0].strides, std::array{6, 1}));
  CHECK_TRUE(std::ranges::equal(call.plan.inputs[3].strides, std::array{1, 3}));
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

TEST(SizeThatNoValueOfTheDimGives) {
  Call call;
  call.tokens_sizes[1] = 7;
  CHECK_EQ(call.Message(),
           "SizeMismatch: encoder: input \"tokens\": dim 1 (seq) is 7, must be a multiple of 2");
  call.tokens_sizes[1] = 6;
  call.mask_sizes[2] = 8;
  CHECK_EQ(
      call.Message(),
      "SizeMismatch: encoder: input \"mask\": dim 2 (2*half + 1) is 8, must be 2*half + 1 for an "
      "integer half");
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
  call.views[3].strides = {};  // contiguous, but channels last is expected
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.inputs[0].copy);
  CHECK_TRUE(!call.plan.inputs[1].copy);
  CHECK_TRUE(call.plan.inputs[3].copy);
}

TEST(ContiguousIsCopiedWhereTheModelHasOtherStrides) {
  Call call;
  call.views[3].strides = {};
  CHECK_EQ(call.Message(), "ok");
  CHECK_TRUE(call.plan.inputs[3].copy);
  CHECK_TRUE(!call.plan.inputs[0].copy);
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

TEST(StridesBeyondTheAddressSpace) {
  Call call;
  const std::vector<std::int64_t> strides = {std::numeric_limits<std::int64_t>::max() / 2, 1};
  call.views[0].strides = strides;
  CHECK_EQ(call.Message(),
           "WrongStrides: encoder: input \"tokens\": strides are [4611686018427387903, 1], which "
           "reach beyond the address space");
}

constexpr char kCacheOverlapsMask[] =
    "Overlap: encoder: input \"cache\": memory overlaps that of input \"mask\", but the model "
    "writes to it; must have memory of its own: pass a copy of one of them";

TEST(WrittenMemoryMustNotOverlap) {
  Call call;
  std::vector<float> buffer(64);
  call.views[2].data = buffer.data() + 14;  // 6 elements
  for (const int begin : {14, 1, 19, 10}) {
    call.views[1].data = buffer.data() + begin;  // 14 elements
    CHECK_EQ(call.Message(), kCacheOverlapsMask);
  }
  for (const int begin : {0, 20}) {
    call.views[1].data = buffer.data() + begin;
    CHECK_EQ(call.Message(), "ok");
  }
  // One more byte overlaps, even if the other input is copied because of its alignment.
  call.views[1].data = reinterpret_cast<char*>(buffer.data()) + 1;
  CHECK_EQ(call.Message(), kCacheOverlapsMask);
  // Two inputs that are only read may be the same.
  call.views[1].data = call.tokens.data();
  CHECK_EQ(call.Message(), "ok");
}

TEST(InterleavedTensorsDoNotOverlap) {
  Call call;
  std::vector<float> buffer(64);
  call.views[2].data = buffer.data() + 8;  // elements 8..13
  const auto mask = [&](std::vector<std::int64_t> strides, int begin) {
    call.views[1].data = buffer.data() + begin;
    call.views[1].strides = strides;
    return call.Message();
  };
  CHECK_EQ(mask({20, 0, 1}, 0), "ok");  // 0..6 and 20..26
  CHECK_EQ(mask({20, 0, 1}, 2), kCacheOverlapsMask);
  CHECK_EQ(mask({-20, 0, 1}, 20), "ok");
  CHECK_EQ(mask({-20, 0, -1}, 34), kCacheOverlapsMask);
  CHECK_EQ(mask({1, 0, 7}, 0), kCacheOverlapsMask);  // 7 and 8, 14 and 15
  CHECK_EQ(mask({0, 0, 7}, 0), "ok");                // 0, 7, 14, ..., each twice
  CHECK_EQ(mask({0, 0, 7}, 1), kCacheOverlapsMask);
}

TEST(TwoWrittenInputsMustNotOverlap) {
  InputSpec inputs[] = {kInputs[0], kInputs[1], kInputs[2], kInputs[3]};
  inputs[3].mutated = true;
  ProgramSpec spec = kSpec;
  spec.inputs = inputs;
  Call call;
  call.views[3].read_only = false;
  const auto message = [&] {
    const auto error = CheckCall(spec, call.views, true, call.plan);
    return error ? error->message() : "ok";
  };
  CHECK_EQ(message(), "ok");
  call.views[3].data = reinterpret_cast<char*>(call.cache.data()) + 23;
  CHECK_EQ(
      message(),
      "encoder: input \"cache\": memory overlaps that of input \"image\", but the model writes "
      "to it; must have memory of its own: pass a copy of one of them");
}

TEST(EmptyTensorsDoNotOverlap) {
  static constexpr Extent sizes[] = {{1, 0, 0, "rows"}};
  static constexpr DimSpec dims[] = {{"rows", 0, 4}};
  static constexpr InputSpec inputs[] = {
      {.name = "a", .dtype = DType::kFloat32, .sizes = sizes, .mutated = true},
      {.name = "b", .dtype = DType::kFloat32, .sizes = sizes, .mutated = true}};
  ProgramSpec spec = kSpec;
  spec.dims = dims;
  spec.inputs = inputs;
  std::vector<float> buffer(4);
  for (const std::int64_t rows : {0, 1}) {
    const TensorView view = {
        .data = buffer.data(), .sizes = {&rows, 1}, .strides = {}, .read_only = false};
    const TensorView views[] = {view, view};
    CallPlan plan;
    CHECK_EQ(CheckCall(spec, views, true, plan).has_value(), rows == 1);
  }
}

// A program with guards, and with an input whose value is a dim: x[n:], n % 4 == 0, k < n
constexpr DimSpec kGuardedDims[] = {{"n", 2, 100}, {"k", -3, 50}, {"next", 3, 101, {1, 0, 1, "n"}}};
constexpr Extent kRows[] = {{1, 0, 0, "n"}};
constexpr InputSpec kGuardedInputs[] = {
    {.name = "k", .dtype = DType::kInt64, .sizes = {}, .value_dim = 1},
    {.name = "x", .dtype = DType::kFloat32, .sizes = kRows},
    {.name = "again", .dtype = DType::kInt64, .sizes = {}, .value_dim = 1},
};
constexpr std::int32_t kOnlyN[] = {0};
constexpr std::int32_t kBoth[] = {1, 2};
constexpr GuardSpec kGuards[] = {
    {"n % 4 == 0", kOnlyN, [](const std::int64_t* dims) { return dims[0] % 4 == 0; }},
    {"k < next", kBoth, [](const std::int64_t* dims) { return dims[1] < dims[2]; }},
};
constexpr ProgramSpec kGuarded = {.name = "m",
                                  .label = "//:m",
                                  .torch_version = "2.13.0",
                                  .weights_runfile = "",
                                  .dims = kGuardedDims,
                                  .inputs = kGuardedInputs,
                                  .outputs = {},
                                  .guards = kGuards,
                                  .weights = {},
                                  .packed = {},
                                  .variants = {}};

std::string GuardedMessage(std::int64_t n, std::int64_t k, std::int64_t again) {
  std::vector<float> x(static_cast<std::size_t>(n));
  const std::vector<std::int64_t> sizes = {n};
  const std::vector<TensorView> views = {
      {.data = &k, .dtype = DType::kInt64, .sizes = {}, .strides = {}},
      {.data = x.data(), .dtype = DType::kFloat32, .sizes = sizes, .strides = {}},
      {.data = &again, .dtype = DType::kInt64, .sizes = {}, .strides = {}},
  };
  CallPlan plan;
  const auto error = CheckCall(kGuarded, views, /*check_values=*/false, plan);
  if (!error) return "ok";
  return std::string(to_string(error->code())) + ": " + error->message();
}

TEST(Guards) {
  CHECK_EQ(GuardedMessage(8, 8, 8), "ok");
  CHECK_EQ(GuardedMessage(9, 1, 1),
           "SizeMismatch: m: n is 9 (input \"x\" dim 0), must satisfy \"n % 4 == 0\"");
  CHECK_EQ(GuardedMessage(8, 9, 9),
           "SizeMismatch: m: k is 9 (input \"k\"), next is 9 (input \"x\" dim 0), must satisfy "
           "\"k < next\"");
}

TEST(NumbersThatGiveDims) {
  CHECK_EQ(GuardedMessage(8, -3, -3), "ok");
  CHECK_EQ(GuardedMessage(8, 51, 51),
           "ValueOutOfRange: m: input \"k\": value is 51, must be in -3..50");
  CHECK_EQ(GuardedMessage(8, 1, 2),
           "SizeMismatch: m: input \"again\": value is 2, must be 1, as input \"k\"");
}

// A number alone, which no size has.
bool IsOdd(const std::int64_t* dims) { return dims[0] % 2 != 0; }
constexpr DimSpec kNumberDims[] = {{"k", 1, 9}, {"twice", 2, 18, {2, 0, 0, "2*k"}}};
constexpr std::int32_t kNumberOfGuard[] = {0};
constexpr GuardSpec kNumberGuards[] = {{"k % 2 != 0", kNumberOfGuard, &IsOdd}};
constexpr InputSpec kNumberInputs[] = {
    {.name = "k", .dtype = DType::kInt64, .sizes = {}, .value_dim = 0, .number = true}};
constexpr ProgramSpec kNumber = {.name = "m",
                                 .label = "//:m",
                                 .torch_version = "2.13.0",
                                 .weights_runfile = "",
                                 .dims = kNumberDims,
                                 .inputs = kNumberInputs,
                                 .outputs = {},
                                 .guards = kNumberGuards,
                                 .weights = {},
                                 .packed = {},
                                 .variants = {}};

TEST(NumbersAreCheckedAfterCallsThatPass) {
  CallPlan plan;
  const auto code = [&plan](std::int64_t k) -> std::string {
    const TensorView views[] = {ViewOfNumber(k)};
    const auto error = CheckCall(kNumber, views, /*check_values=*/true, plan);
    return error ? std::string(to_string(error->code())) : "ok";
  };
  CHECK_EQ(code(3), "ok");
  CHECK_EQ(code(10), "ValueOutOfRange");
  CHECK_EQ(code(5), "ok");
  CHECK_TRUE(plan.dims == std::vector<std::int64_t>({5, 10}));
  CHECK_EQ(code(4), "SizeMismatch");
  CHECK_EQ(code(4), "SizeMismatch");
  CHECK_EQ(code(7), "ok");
  CHECK_EQ(code(7), "ok");
  CHECK_TRUE(plan.dims == std::vector<std::int64_t>({7, 14}));
}

// x float32[n, 3] and cache float32[n], which the model writes to: both are taken as they are.
constexpr DimSpec kPlainDims[] = {{"n", 1, 9}};
constexpr Extent kPlainN = {.scale = 1, .dim = 0, .text = "n"};
constexpr Extent kPlainX[] = {kPlainN, {.offset = 3}};
constexpr Extent kPlainCache[] = {kPlainN};
constexpr InputSpec kPlainInputs[] = {
    {.name = "x", .dtype = DType::kFloat32, .sizes = kPlainX},
    {.name = "cache", .dtype = DType::kFloat32, .sizes = kPlainCache, .mutated = true},
};
constexpr ProgramSpec kPlain = {.name = "m",
                                .label = "//:m",
                                .torch_version = "2.13.0",
                                .weights_runfile = "",
                                .dims = kPlainDims,
                                .inputs = kPlainInputs,
                                .outputs = {},
                                .weights = {},
                                .packed = {},
                                .variants = {}};

// A call that passes, then one that `change` makes of it, with the same plan; and the second call
// with a plan of its own.
template <typename Change>
std::pair<std::string, std::string> AfterACallThatPasses(const Change& change) {
  static std::vector<float> x(64), cache(64);
  static const std::array<std::int64_t, 2> x_sizes = {4, 3};
  static const std::array<std::int64_t, 1> cache_sizes = {4};
  std::vector<TensorView> views = {
      {.data = x.data(), .dtype = DType::kFloat32, .sizes = x_sizes, .strides = {}},
      {.data = cache.data(),
       .dtype = DType::kFloat32,
       .sizes = cache_sizes,
       .strides = {},
       .read_only = false},
  };
  const auto message = [&](CallPlan& plan) -> std::string {
    const auto error = CheckCall(kPlain, views, /*check_values=*/true, plan);
    if (!error) return "ok";
    return std::string(to_string(error->code())) + ": " + error->message();
  };
  CallPlan plan;
  CHECK_EQ(message(plan), "ok");
  CHECK_EQ(message(plan), "ok");
  change(views);
  CallPlan own;
  return {message(plan), message(own)};
}

TEST(ACallLikeTheOneBeforeIsCheckedToo) {
  static const std::array<std::int64_t, 2> x_sizes = {5, 3};
  static const std::array<std::int64_t, 2> one_more = {4, 4};
  static const std::array<std::int64_t, 2> columns_first = {1, 4};
  static const std::array<std::int64_t, 2> rows_first = {3, 1};
  static std::vector<float> room(64);
  const auto check = [](std::string_view start, const auto& change) {
    const auto [again, first] = AfterACallThatPasses(change);
    CHECK_EQ(again, first);
    CHECK_TRUE(again.starts_with(start));
  };
  using Views = std::vector<TensorView>;
  check("ok", [](Views& views) { views[0].data = room.data(); });
  check("ok", [](Views& views) { views[0].strides = rows_first; });
  check("ok", [](Views& views) { views[0].strides = columns_first; });
  check("ok", [](Views& views) { views[0].buffer_elements = 12; });
  check("WrongInputCount", [](Views& views) { views.pop_back(); });
  check("MissingInput", [](Views& views) { views[0] = TensorView::Missing(); });
  check("WrongDType", [](Views& views) { views[0].dtype = DType::kInt32; });
  check("WrongRank", [](Views& views) { views[1].sizes = x_sizes; });
  check("WrongSize", [](Views& views) { views[0].sizes = one_more; });
  check("SizeMismatch", [](Views& views) { views[0].sizes = x_sizes; });
  check("WrongSize", [](Views& views) { views[0].buffer_elements = 11; });
  check("NullData", [](Views& views) { views[1].data = nullptr; });
  check("ReadOnly", [](Views& views) { views[1].read_only = true; });
  check("Overlap", [](Views& views) { views[1].data = views[0].data; });
  check("InvalidArgument",
        [](Views& views) { views[1].data = static_cast<char*>(views[1].data) + 1; });
}

// A float with a range, and one without.
constexpr InputSpec kFloatInputs[] = {
    {.name = "t", .dtype = DType::kFloat64, .sizes = {}, .number = true, .low = 0.1, .high = 2},
    {.name = "u", .dtype = DType::kFloat64, .sizes = {}, .number = true},
};
constexpr ProgramSpec kFloats = {.name = "m",
                                 .label = "//:m",
                                 .torch_version = "2.13.0",
                                 .weights_runfile = "",
                                 .dims = {},
                                 .inputs = kFloatInputs,
                                 .outputs = {},
                                 .weights = {},
                                 .packed = {},
                                 .variants = {}};

std::string FloatMessage(double t, double u) {
  const TensorView views[] = {ViewOfNumber(t), ViewOfNumber(u)};
  CallPlan plan;
  const auto error = CheckCall(kFloats, views, /*check_values=*/true, plan);
  if (!error) return "ok";
  return std::string(to_string(error->code())) + ": " + error->message();
}

TEST(RangesOfFloats) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double t : {0.1, 1.0, 2.0}) CHECK_EQ(FloatMessage(t, kNan), "ok");
  for (const double t : {0.09, 2.1, kNan, -kNan}) {
    CHECK_TRUE(FloatMessage(t, 0).starts_with("ValueOutOfRange: m: input \"t\": value is "));
    CHECK_TRUE(FloatMessage(t, 0).ends_with(", must be in 0.1..2"));
  }
}

TEST(NumbersThatAreNotGiven) {
  CHECK_EQ(FloatMessage(kNotGiven, 0), "MissingInput: m: input \"t\": not given, must be float");
  const std::int64_t number = kNotGiven;
  CHECK_EQ(ViewOfNumber(number).buffer_elements, TensorView::kMissing);
  const std::int64_t next = number + 1;
  CHECK_EQ(*static_cast<const std::int64_t*>(ViewOfNumber(next).data), next);
}

// mask [past + 2*seq + 1], cache [past], x [seq], in this order
constexpr DimSpec kSumDims[] = {{"past", 0, 9}, {"seq", 1, 4}};
std::int64_t Summed(const std::int64_t* dims) { return dims[0] + 2 * dims[1] + 1; }
constexpr std::int32_t kSummedDims[] = {0, 1};
constexpr Extent kSummed[] = {{0, -1, 0, "past + 2*seq + 1", &Summed, kSummedDims}};
constexpr Extent kPast[] = {{1, 0, 0, "past"}};
constexpr Extent kSeq[] = {{1, 1, 0, "seq"}};
constexpr InputSpec kSumInputs[] = {
    {.name = "mask", .dtype = DType::kFloat32, .sizes = kSummed},
    {.name = "cache", .dtype = DType::kFloat32, .sizes = kPast},
    {.name = "x", .dtype = DType::kFloat32, .sizes = kSeq},
};
constexpr ProgramSpec kSums = {.name = "m",
                               .label = "//:m",
                               .torch_version = "2.13.0",
                               .weights_runfile = "",
                               .dims = kSumDims,
                               .inputs = kSumInputs,
                               .outputs = {},
                               .weights = {},
                               .packed = {},
                               .variants = {}};

std::string SumMessage(std::int64_t mask, std::int64_t past, std::int64_t seq) {
  static std::vector<float> memory(32);
  const std::vector<std::int64_t> sizes = {mask, past, seq};
  std::vector<TensorView> views;
  for (const std::int64_t& size : sizes) {
    views.push_back(
        {.data = memory.data(), .dtype = DType::kFloat32, .sizes = {&size, 1}, .strides = {}});
  }
  CallPlan plan;
  const auto error = CheckCall(kSums, views, /*check_values=*/false, plan);
  if (!error) return "ok";
  return std::string(to_string(error->code())) + ": " + error->message();
}

TEST(SumsOfDims) {
  CHECK_EQ(SumMessage(14, 7, 3), "ok");
  CHECK_EQ(SumMessage(3, 0, 1), "ok");
  CHECK_EQ(SumMessage(13, 7, 3),
           "SizeMismatch: m: input \"mask\": dim 0 (past + 2*seq + 1) is 13, must be 14, because "
           "past is 7 (input \"cache\" dim 0), seq is 3 (input \"x\" dim 0)");
  CHECK_EQ(SumMessage(17, 10, 3),
           "SizeOutOfRange: m: input \"cache\": dim 0 (past) is 10, must be in 0..9");
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
