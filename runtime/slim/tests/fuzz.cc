// Calls every operator of the C ABI with random arguments, on every level of the CPU and with an
// emulated AMX, in builds with AddressSanitizer, UndefinedBehaviorSanitizer or ThreadSanitizer.
//
//   fuzz [--seed N] [--cases N] [--seconds S] [--threads N] [--op NAME] [--verbose]
//
// Any status is correct. A crash, a sanitizer's report, a leak, or a result that a failed call has
// set is a failure. If a case ends the program, its seed is printed, so that it can be repeated
// alone: --seed N --cases 1.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/core/parallel.h"
#include "runtime/slim/cpu/cpu.h"
#include "runtime/slim/tests/amx_emulator.h"
#include "runtime/slim/tests/fuzz_case.h"

extern "C" void aoti_slim_allow_amx(int allowed);

// Failures abort, so that the handler below can print the case. An allocation that is too large for
// any machine is an ordinary error.
extern "C" {
const char* __asan_default_options() {
  return "abort_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=256:"
         "detect_stack_use_after_return=1";
}
const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
const char* __tsan_default_options() {
  return "abort_on_error=1:halt_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=256";
}
}

namespace aoti::slim::fuzz {
namespace {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t cases = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  int threads = 1;
  const char* op = nullptr;
  bool verbose = false;
};

struct Count {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> successes{0};
};

// The operator that this thread calls.
thread_local const char* t_op = "nothing";
thread_local std::uint64_t t_seed = 0;
thread_local int t_level = -1;
thread_local const char* t_amx = "";

extern "C" void NameTheCase(int signal) {
  char line[256];
  const int length = std::snprintf(
      line, sizeof(line), "\nfuzz: signal %d in %s, level %d%s: --seed %llu --cases 1\n", signal,
      t_op, t_level, t_amx, static_cast<unsigned long long>(t_seed));
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(std::max(length, 0))) < 0) _exit(3);
  _exit(2);
}

std::vector<Op> AllOps(const char* only) {
  std::vector<Op> ops;
  for (const std::span<const Op> some :
       {MatmulOps(), NetworkOps(), PoolingOps(), SortOps(), IndexOps(), RandomOps(), TensorOps(),
        DispatcherOps(), LayoutOps(), LinalgOps(), DetectionOps(), StableOps()}) {
    for (const Op& op : some) {
      if (only == nullptr || std::string_view(only) == op.name) ops.push_back(op);
    }
  }
  return ops;
}

// What the runtime takes the CPU for.
struct Cpu {
  CpuLevel level;
  bool emulates_amx;
};

std::vector<Cpu> Cpus(int threads) {
  const CpuLevel best = CurrentCpuLevel();
  std::vector<Cpu> cpus = {{best, false}};
  // The level applies to the whole process, so threads can't have different levels.
  if (threads > 1 || best == CpuLevel::kNeon) return cpus;
  for (int level = static_cast<int>(best) - 1; level >= 0; --level) {
    cpus.push_back({static_cast<CpuLevel>(level), false});
  }
  // All CPUs with AMX have these, too.
  if (best == CpuLevel::kX86V4 && CurrentCpuHasBFloat16() && CurrentCpuHasVnni()) {
    aoti_slim_test_emulate_amx();
    cpus.push_back({best, true});
  }
  return cpus;
}

// One stream of cases.
class Stream {
 public:
  Stream(const Options& options, const std::vector<Op>& ops, std::vector<Count>& counts)
      : options_(options), ops_(ops), counts_(counts), cpus_(Cpus(options.threads)) {}

  void Run(std::uint64_t seed, std::uint64_t step) {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(std::min(options_.seconds, 1e6));
    for (std::uint64_t i = 0; i < options_.cases; ++i) {
      if (std::chrono::steady_clock::now() >= end) return;
      RunCase(seed + i * step);
    }
  }

 private:
  void RunCase(std::uint64_t seed) {
    // Hashed first, so that consecutive seeds begin with different numbers.
    Random random(seed);
    const std::uint64_t chosen = random.Next();
    const std::size_t index = chosen % ops_.size();
    const Op& op = ops_[index];
    t_op = op.name;
    t_seed = seed;
    if (options_.verbose) {
      std::fprintf(stderr, "%s --seed %llu\n", op.name, static_cast<unsigned long long>(seed));
    }
    if (options_.threads == 1) alarm(120);
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      const Cpu& cpu = cpus_[i];
      if (cpus_.size() > 1) {
        SetCpuLevel(cpu.level);
        aoti_slim_allow_amx(cpu.emulates_amx ? 2 : 1);
      }
      t_level = static_cast<int>(cpu.level);
      t_amx = cpu.emulates_amx ? " with AMX" : "";
      Case fuzz_case(chosen);
      const internal::RunThreads threads(static_cast<int>(chosen >> 40 & 1) + 1);
      const AOTITorchError error = op.call(fuzz_case);
      fuzz_case.Finish(op.name, error);
      if (i == 0) {
        first = fuzz_case.digest();
        ++counts_[index].calls;
        if (error == AOTI_TORCH_SUCCESS) ++counts_[index].successes;
        if (error != AOTI_TORCH_SUCCESS && options_.verbose) {
          std::fprintf(stderr, "  %s\n", torch_exception_get_what_without_backtrace());
        }
      } else if (fuzz_case.digest() != first) {
        Fail(op.name, "status or sizes differ between CPUs");
      }
    }
  }

  const Options& options_;
  const std::vector<Op>& ops_;
  std::vector<Count>& counts_;
  const std::vector<Cpu> cpus_;
};

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    // --name value, or --name=value.
    const std::string given(argv[i]);
    const std::string name = given.substr(0, given.find('='));
    if (name == "--verbose") {
      options.verbose = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (name.size() < given.size()) {
      value = argv[i] + name.size() + 1;
    } else {
      ++i;
    }
    if (name == "--seed") {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (name == "--cases") {
      options.cases = std::strtoull(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "--threads") {
      options.threads = std::max(1, std::atoi(value));
    } else if (name == "--op") {
      options.op = value;
    } else {
      std::fprintf(stderr, "fuzz: unknown option %s\n", given.c_str());
      std::exit(2);
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  for (const int number : {SIGABRT, SIGALRM}) signal(number, NameTheCase);
  const Options options = Parse(argc, argv);
  const std::vector<Op> ops = AllOps(options.op);
  if (ops.empty()) {
    std::fprintf(stderr, "fuzz: no operator %s\n", options.op);
    return 2;
  }
  std::vector<Count> counts(ops.size());
  // Simulates enough CPUs, so that operators really run in parallel.
  internal::SetCpusForTesting(2 * options.threads);
  std::vector<std::thread> threads;
  for (int t = 1; t < options.threads; ++t) {
    threads.emplace_back([&, t] {
      Stream(options, ops, counts)
          .Run(options.seed + static_cast<std::uint64_t>(t),
               static_cast<std::uint64_t>(options.threads));
    });
  }
  Stream(options, ops, counts).Run(options.seed, static_cast<std::uint64_t>(options.threads));
  for (std::thread& thread : threads) thread.join();
  std::uint64_t calls = 0;
  std::uint64_t successes = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    calls += counts[i].calls;
    successes += counts[i].successes;
    std::printf("%-48s %8llu calls %8llu succeeded\n", ops[i].name,
                static_cast<unsigned long long>(counts[i].calls),
                static_cast<unsigned long long>(counts[i].successes));
  }
  std::printf("%zu operators, %llu cases, %llu succeeded\n", ops.size(),
              static_cast<unsigned long long>(calls), static_cast<unsigned long long>(successes));
  return 0;
}

}  // namespace
}  // namespace aoti::slim::fuzz

int main(int argc, char** argv) { return aoti::slim::fuzz::Main(argc, argv); }
