// A program that runs one compiled model for the benchmark.

#ifndef BENCHMARKS_RUNNER_H_
#define BENCHMARKS_RUNNER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "aoti/program_spec.h"

namespace aoti::benchmark {

// Where the inputs of a model are that does not run on the CPU.
class InputMemory {
 public:
  virtual ~InputMemory() = default;

  // A copy of the bytes in the memory of the device.
  virtual std::shared_ptr<void> Copy(std::span<const std::byte> bytes) const = 0;
};

// The body of main():
//
//   runner [--threads=N] [--callers=N]    serves commands, one per line of standard input
//   runner [--threads=N] --start=INPUTS   one call, then waits for the end of standard input
//
// Commands, each answered with one line of JSON; "case" is a word, the rest of the line a path:
//
//   load CASE INPUTS    reads the inputs of a case: a safetensors file, a tensor per input
//   run CASE OUTPUT     one call; writes the outputs' elements, one after the other
//   time CASE SECONDS RUNS   calls for that long and at least so often: {"runs", "min_ns", ...}
//
//   callers CASE COUNT SECONDS   so many callers for that long: {"calls", "seconds", "p99_ns", ...}
//
// `--callers` is how many calls may run at the same time. `--cuda-graphs` has a model for CUDA
// record its calls. An input of static size that the file
// lacks is zeros. What fails is answered with {"error"}.
//
// on_cuda: null for a model on the CPU. With it, inputs are on the GPU, and outputs stay there
// while time is taken.
int RunnerMain(const ProgramSpec& spec, int argc, char** argv,
               const InputMemory* on_cuda = nullptr);

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_RUNNER_H_
