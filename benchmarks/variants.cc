// What a program for one size saves beside one for all sizes, and what choosing it costs.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "aoti/result.h"
#include "benchmarks/columns_any.h"
#include "benchmarks/columns_variants.h"
#include "benchmarks/mlp_any.h"
#include "benchmarks/mlp_variants.h"
#include "benchmarks/nanoseconds.h"

namespace {

using benchmarks::ColumnsAny;
using benchmarks::ColumnsVariants;
using benchmarks::Fail;
using benchmarks::MlpAny;
using benchmarks::MlpVariants;
using benchmarks::Nanoseconds;

constexpr int kRounds = 200;
constexpr std::size_t kCallsPerRound = 500;

template <typename T>
T Unwrap(aoti::Result<T> result) {
  if (!result.ok()) Fail(result.error());
  return *std::move(result);
}

template <typename Model>
double Time(const Model& model, const typename Model::Inputs& inputs) {
  return Nanoseconds(kRounds, kCallsPerRound, [&](std::size_t) {
    const auto outputs = model.Run(inputs);
    if (!outputs.ok()) Fail(outputs.error());
  });
}

template <typename Any, typename Variants, typename MakeSizes>
void Compare(const char* name, const MakeSizes& make_sizes) {
  const Any any = Unwrap(Any::Load({.threads = 1}));
  const Variants variants = Unwrap(Variants::Load({.threads = 1}));
  for (const std::int64_t n : {1, 3, 8, 16, 64}) {
    const aoti::Sizes<2> sizes = make_sizes(n);
    const std::vector<float> data(static_cast<std::size_t>(sizes[0] * sizes[1]), 0.5F);
    const char* variant = Variants::Explain({.input = {data, sizes}}).variant;
    const double without = Time(any, {.input = {data, sizes}});
    const double with = Time(variants, {.input = {data, sizes}});
    std::printf("%-8s %3lld  %-8s %13.0f ns %13.0f ns %8.2f\n", name, static_cast<long long>(n),
                variant, without, with, with / without);
  }
}

}  // namespace

int main() {
  std::printf("%-8s %3s  %-8s %16s %16s %8s\n", "model", "n", "variant", "one program", "variants",
              "ratio");
  Compare<MlpAny, MlpVariants>("mlp", [](std::int64_t n) { return aoti::Sizes<2>(n, 64); });
  Compare<ColumnsAny, ColumnsVariants>("columns",
                                       [](std::int64_t n) { return aoti::Sizes<2>(256, n); });
}
