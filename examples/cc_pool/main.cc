// Pools sentences of one batch in four ways; the arguments choose the program.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "examples/cc_pool/pooler.h"

using examples::cc_pool::Pooler;

namespace {

int Report(const aoti::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main() {
  const auto pooler = Pooler::Load();
  if (!pooler.ok()) return Report(pooler.error());

  const std::vector<std::int64_t> tokens = {7, 8, 9, 10, 11, 0};  // the second sentence is shorter
  const std::unique_ptr<bool[]> mask(new bool[6]{true, true, true, true, true, false});
  const aoti::TensorRef<const bool, 2> given = {mask.get(), {2, 3}};

  const Pooler::Inputs calls[] = {
      {.tokens = {tokens, {2, 3}}},
      {.tokens = {tokens, {2, 3}}, .mask = given},
      {.tokens = {tokens, {2, 3}}, .mode = "max"},
      {.tokens = {tokens, {2, 3}}, .mask = given, .mode = "max"},
  };
  for (const Pooler::Inputs& inputs : calls) {
    const auto outputs = pooler->Run(inputs);
    if (!outputs.ok()) return Report(outputs.error());
    std::printf("%-19s the second sentence begins with %7.4f\n", Pooler::Explain(inputs).variant,
                static_cast<double>(outputs->output(1, 0)));
  }
}
