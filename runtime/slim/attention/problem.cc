#include "runtime/slim/attention/problem.h"

#include <algorithm>
#include <cmath>

namespace aoti::slim {
namespace {

// Like Require(), but builds the message only if the condition is false.
#define AOTI_REQUIRE(condition, ...) \
  if (!(condition)) [[unlikely]]     \
  throw OpError(StrCat("attention: ", __VA_ARGS__))

std::string Shape(const Tensor& tensor) {
  std::string text = "[";
  for (const std::int64_t size : tensor.sizes()) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

// Sets the strides over [batch, heads, queries, keys].
void ReadMask(const Tensor& mask, const Tensor& query, std::int64_t keys, std::int64_t* strides) {
  AOTI_REQUIRE(mask.dtype() == query.dtype() || mask.dtype() == ScalarType::kFloat32,
               "the mask is ", NameOf(mask.dtype()), ", must be ", NameOf(query.dtype()),
               " like the query, or float32");
  AOTI_REQUIRE(mask.rank() == 2 || mask.rank() == 4, "the mask is ", Shape(mask),
               ", must have 2 or 4 dims");
  const std::int64_t wanted[4] = {query.size(0), query.size(1), query.size(2), keys};
  for (std::int64_t dim = 4 - mask.rank(); dim < 4; ++dim) {
    const std::int64_t own = dim - (4 - mask.rank());
    AOTI_REQUIRE(mask.size(own) == wanted[dim] || mask.size(own) == 1, "the mask is ", Shape(mask),
                 ", its dim ", own, " must be 1 or ", wanted[dim]);
    strides[dim] = mask.size(own) == 1 ? 0 : mask.stride(own);
  }
}

}  // namespace

AttentionProblem::AttentionProblem(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const Tensor* mask, double dropout, bool causal,
                                   const double* scale)
    : query(&query), key(&key), value(&value), mask(mask), causal(causal) {
  AOTI_REQUIRE(query.rank() == 4 && key.rank() == 4 && value.rank() == 4,
               "query, key and value are ", Shape(query), ", ", Shape(key), ", ", Shape(value),
               ", must have 4 dims: batch, heads, positions, depth");
  AOTI_REQUIRE(IsFloating(query.dtype()), "the query is ", NameOf(query.dtype()),
               ", must be a floating-point dtype");
  AOTI_REQUIRE(key.dtype() == query.dtype() && value.dtype() == query.dtype(),
               "query, key and value are ", NameOf(query.dtype()), ", ", NameOf(key.dtype()), ", ",
               NameOf(value.dtype()), ", must be of the same dtype");
  AOTI_REQUIRE(dropout == 0, "dropout is ", dropout, ", must be 0 on CPU");
  batch = query.size(0);
  queries = query.size(2);
  depth = query.size(3);
  key_heads = key.size(1);
  keys = key.size(2);
  value_depth = value.size(3);
  AOTI_REQUIRE(key.size(0) == batch && value.size(0) == batch && value.size(1) == key_heads &&
                   value.size(2) == keys && key.size(3) == depth,
               "query, key and value are ", Shape(query), ", ", Shape(key), ", ", Shape(value),
               ", which do not match");
  AOTI_REQUIRE(key_heads == query.size(1) || (key_heads > 0 && query.size(1) % key_heads == 0),
               "the query's ", query.size(1), " heads are not a multiple of the key's ", key_heads);
  group = key_heads == 0 ? 1 : query.size(1) / key_heads;
  if (mask != nullptr && mask->numel() == 0) this->mask = nullptr;
  if (this->mask != nullptr) ReadMask(*mask, query, keys, mask_strides);
  this->scale = scale != nullptr ? *scale : 1 / std::sqrt(static_cast<double>(depth));

  const std::int64_t heads = query.size(1);
  if (value_depth == depth) {
    output = EmptyLike(query);
  } else {
    output = Empty(query.dtype(), {batch, heads, queries, value_depth});
  }
  const std::int64_t sizes[] = {batch, heads, queries};
  const std::int64_t strides[] = {
      std::max<std::int64_t>(queries, 1) * std::max<std::int64_t>(heads, 1), 1,
      std::max<std::int64_t>(heads, 1)};
  logsumexp = EmptyStrided(
      query.dtype() == ScalarType::kFloat64 ? ScalarType::kFloat64 : ScalarType::kFloat32, sizes,
      strides);
}

}  // namespace aoti::slim
