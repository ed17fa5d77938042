// One case of the fuzz test: random arguments for one call of the C ABI, and the checks after it.
// Most cases are valid; in the others each argument may be slightly wrong: it has another dtype, a
// size that is one too large, or a negative or huge number. The seed of a case determines
// everything.

#ifndef AOTI_RUNTIME_SLIM_TESTS_FUZZ_CASE_H_
#define AOTI_RUNTIME_SLIM_TESTS_FUZZ_CASE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/tensor/dtype.h"

namespace aoti::slim::fuzz {

using Handle = AtenTensorHandle;
using Sizes = std::vector<std::int64_t>;

// Gives the same numbers on every platform, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next();
  std::int64_t Range(std::int64_t low, std::int64_t high);  // both included
  double Unit();                                            // in [0, 1)
  bool Chance(double probability) { return Unit() < probability; }
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[Range(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

 private:
  std::uint64_t state_;
};

class Case {
 public:
  explicit Case(std::uint64_t seed);
  ~Case();
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Random random;

  // Whether the next argument should be wrong.
  bool Wrong() { return wrong_ && random.Chance(0.2); }

  std::int64_t Size();  // of a dim: 0, 1, primes, near the widths of vectors
  std::int64_t Positive() { return Size() + 1; }  // for tensors that must not be empty
  Sizes Shape(int least_rank, int most_rank);
  // A shape that broadcasts to `shape`: some of its dims are 1 or missing.
  Sizes Broadcastable(const Sizes& shape);

  ScalarType AnyType();  // any dtype, including complex ones
  ScalarType RealType();
  ScalarType FloatType();
  ScalarType IntegerType();
  ScalarType IndexType() {
    return random.Pick({ScalarType::kInt64, ScalarType::kInt64, ScalarType::kInt32});
  }

  // An argument that is only read; it may have any strides.
  Handle In(ScalarType dtype, const Sizes& sizes);
  // An argument that is written to; its elements don't overlap.
  Handle Out(ScalarType dtype, const Sizes& sizes);
  // Integers in low..high-1; in wrong cases some are outside this range.
  Handle Index(ScalarType dtype, const Sizes& sizes, std::int64_t low, std::int64_t high);
  // Numbers in ascending order along the last dim.
  Handle Ascending(ScalarType dtype, const Sizes& sizes);

  // Null or a pointer to the value, for optional arguments.
  template <typename T>
  T* Maybe(T value) {
    return random.Chance(0.4) ? nullptr : Keep(value);
  }
  template <typename T>
  T* Keep(T value) {
    auto kept = std::make_shared<T>(value);
    kept_.push_back(kept);
    return kept.get();
  }

  std::int64_t Dim(std::size_t rank);
  std::int64_t Int(std::int64_t low, std::int64_t high);  // both included
  double Real();
  std::int32_t Flag() { return static_cast<std::int32_t>(random.Range(0, 1)); }
  const char* Word(std::initializer_list<const char*> words);
  // A list of numbers; it is valid as long as the case.
  const Sizes& List(Sizes values);

  // A pointer for a result, which must be set on success and only then.
  Handle* Result();
  // The same, for a result that may be undefined.
  Handle* OptionalResult();
  // Takes ownership of a result that was returned in another way.
  void Own(Handle handle);

  // Deletes the results; ends the program if they fail the checks. `name`: the operator.
  void Finish(const char* name, AOTITorchError error);
  // A digest of what must be equal on each level of the CPU: status, dtypes and sizes of results.
  std::uint64_t digest() const { return digest_; }

 private:
  struct Slot {
    Handle handle = nullptr;
    bool optional = false;
  };

  Handle Make(ScalarType dtype, Sizes sizes, bool written, bool ascending);
  void Perturb(ScalarType& dtype, Sizes& sizes);
  void Fill(ScalarType dtype, void* data, std::int64_t count);
  void Check(const char* name, Handle handle);

  const bool wrong_;
  std::uint64_t digest_ = 0;
  std::deque<Slot> results_;
  std::deque<Sizes> lists_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<Handle> handles_;
  std::vector<void*> blobs_;
};

// An operator under test. Returns the C function's status.
struct Op {
  const char* name;
  AOTITorchError (*call)(Case&);
};

std::span<const Op> MatmulOps();
std::span<const Op> NetworkOps();
std::span<const Op> PoolingOps();
std::span<const Op> SortOps();
std::span<const Op> IndexOps();
std::span<const Op> RandomOps();
std::span<const Op> TensorOps();
std::span<const Op> DispatcherOps();
std::span<const Op> LayoutOps();
std::span<const Op> LinalgOps();
std::span<const Op> DetectionOps();
std::span<const Op> StableOps();

// Prints what is wrong and ends the program.
[[noreturn]] void Fail(const char* name, const std::string& what);

}  // namespace aoti::slim::fuzz

#endif  // AOTI_RUNTIME_SLIM_TESTS_FUZZ_CASE_H_
