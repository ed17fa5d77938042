// MODEL_HEADER and MODEL_CLASS come from the BUILD file (benchmarks/defs.bzl).

#include "benchmarks/runner.h"

#include MODEL_HEADER

int main(int argc, char** argv) {
  return aoti::benchmark::RunnerMain(MODEL_CLASS::Spec(), argc, argv);
}
