// A loaded model. Programs normally use the generated class of their model ("models/encoder.h"),
// which is a thin, typed layer over this one.

#ifndef AOTI_MODEL_H_
#define AOTI_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aoti/cxx20.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"

namespace aoti {

struct LoadOptions {
  // The weights, a safetensors file. Empty: the file that was built with the model, found in the
  // runfiles of the running program, or beside the shared library that holds the model.
  std::string weights_path = {};

  // Whether the weights file is read into memory of this model, rather than mapped. A mapped file
  // takes no time to load and is shared, but belongs to the model as long as that lives: it may be
  // replaced (rename), and must not be written to (results would change) or cut short (the process
  // would end by SIGBUS). What is copied doesn't depend on the file any more.
  bool copy_weights = false;

  // How many calls may run at the same time; further callers wait. 0: one per hardware thread.
  // Runners share the weights and are made when first needed. A model with state runs one call at a
  // time.
  int num_runners = 0;

  // How many threads one call may use, the caller's included. 0: what the build chose for the model
  // (its `threads` attribute), by default one per hardware thread. All calls in the process
  // together get no more threads than the CPU has, and each at least one.
  int threads = 0;

  // Whether integer inputs are compared with the range of values that was declared for them
  // ("int64[batch, seq] in 0..30521"). It reads each such input once per call. Without it a value
  // that is out of range is undefined behaviour in the model: it may end the process.
  bool check_values = true;
};

namespace internal {
class LoadedModel;
}  // namespace internal

// Thread safe: any number of threads may call Run() of one object at the same time. One that was
// moved from has no name, takes nothing, and fails to run.
class Model {
 public:
  // Maps the weights (shared by everything in the process that loads the same file) and prepares
  // the program. `spec` must have static lifetime. Errors: 2xx and 3xx,
  // kInvalidArgument for options that make no sense.
  static Result<Model> Load(const internal::ProgramSpec& spec, const LoadOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Runs the model on `inputs`, in the order of inputs(). Each is checked against its spec first;
  // one that is not laid out as the program wants it is copied, unless the model writes to it.
  // Inputs are borrowed until Run() returns. An input that the model writes to and that shares
  // memory with another input is refused. Outputs are contiguous, each in memory of its own, and
  // owned by the caller.
  //
  // Errors: 1xx, before anything ran; 3xx and 4xx, after which the contents of mutated inputs and
  // of the model's state are unspecified.
  Result<std::vector<Tensor>> Run(std::span<const TensorView> inputs) const;

  // Seeds the generator that the random operators of all models on the slim runtime share, as
  // torch.manual_seed() seeds PyTorch's. Does nothing where there are none. Errors:
  // kInvalidArgument for a model that runs on libtorch, whose generator is seeded by
  // torch::manual_seed().
  std::optional<Error> ManualSeed(std::uint64_t seed) const;

  const char* name() const { return spec().name; }
  // The instruction set of the code that was chosen for this CPU, such as "x86-64-v3".
  const char* isa() const;
  std::span<const DimSpec> dims() const { return spec().dims; }
  std::span<const InputSpec> inputs() const { return spec().inputs; }
  std::span<const OutputSpec> outputs() const { return spec().outputs; }
  const internal::ProgramSpec& spec() const;

 private:
  explicit Model(std::unique_ptr<internal::LoadedModel> loaded);

  std::unique_ptr<internal::LoadedModel> loaded_;
};

}  // namespace aoti

#endif  // AOTI_MODEL_H_
