// Scales the rows of a matrix to the length 1 on the first GPU, and checks the result.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "examples/triton_kernel/normalize.h"

namespace {

constexpr std::int32_t kColumns = 100;

int Report(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

float Length(const float* row) {
  float sum = 0;
  for (int i = 0; i < kColumns; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

}  // namespace

int main() {
  const auto normalize = examples::triton_kernel::Normalize::Load({.cuda_device = 0});
  if (!normalize.ok()) return Report(normalize.error());

  const std::int64_t rows = 3;
  std::vector<float> values(rows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 50.0F;
  const auto x = aoti::CudaArray<float>::Of(values);
  if (!x.ok()) return Report(x.error());
  const auto y = aoti::CudaArray<float>::Uninitialized(values.size());
  if (!y.ok()) return Report(y.error());

  const aoti::CudaStream stream;
  const auto launched =
      normalize->Launch(stream, x->data(), y->data(), rows, kColumns, /*epsilon=*/1e-6F);
  if (!launched.ok()) return Report(launched.error());
  const auto result = y->ToHost(stream);
  if (!result.ok()) return Report(result.error());

  for (std::int64_t row = 0; row < rows; ++row) {
    const float before = Length(&values[row * kColumns]);
    const float after = Length(&(*result)[row * kColumns]);
    std::printf("row %d: length %.2f -> %.4f\n", static_cast<int>(row), before, after);
    if (!(std::abs(after - 1) < 1e-5F)) return 1;
  }
}
