// A loaded model. Programs normally use the generated class of their model ("models/encoder.h"),
// which is a thin, typed layer over aoti::Model.

#ifndef AOTI_MODEL_H_
#define AOTI_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aoti/cxx20.h"
#include "aoti/device_type.h"
#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "aoti/tensor.h"
#include "aoti/tensor_view.h"

namespace aoti {

class Session;

struct LoadOptions {
  // Path of the weights, a safetensors file. Empty: the file that was built with the model; it is
  // looked for in the runfiles of the running program and beside the program or the shared library
  // that contains the model.
  std::string weights_path = {};

  // Path of a safetensors file with some of the model's tensors, which take the place of those of
  // the weights; empty: none. Models with different adapters share the memory of all other tensors,
  // because they map one file. With copy_weights, each has a copy of all.
  std::string adapter_path = {};

  // Whether Load() reads the weights file into memory that this model owns, instead of mapping it.
  // A mapped file takes no time to load, and models share it. As long as the model exists, a mapped
  // file may be replaced (rename), but must not be written to (results would change) or truncated
  // (SIGBUS would end the process). A copy does not depend on the file after Load(). It has large
  // pages where the system gives them, and a call that reads all weights once, such as a decoded
  // token, is then up to a tenth faster.
  bool copy_weights = false;

  // How many calls may run at the same time; further callers wait. 0: one per hardware thread.
  // Runners share the weights and are created when they are first needed. Calls that work on the
  // same state run one after the other.
  int num_runners = 0;

  // How many threads one call may use, including the caller's. 0: the number that the model was
  // built with (its attribute `threads`), by default one per hardware thread. All calls in the
  // process together get no more threads than the CPU has, but each call gets at least one.
  int threads = 0;

  // Whether Run() checks that the elements of integer inputs are in their declared range
  // ("int64[batch, seq] in 0..30521"). The check reads each such input once per call. Without it, a
  // value that is out of range is undefined behaviour, which may end the process.
  bool check_values = true;

  // What the model runs on, of what its target names (its attribute `devices`). Not given: the CPU,
  // also where there is a GPU; or CUDA if the model was built for CUDA alone.
  std::optional<DeviceType> device = {};

  // The GPU that a model on CUDA runs on, as the driver numbers them; CUDA_VISIBLE_DEVICES applies.
  // Models on the CPU ignore it.
  int cuda_device = 0;

  // Whether the second call with the same sizes records the kernels as a CUDA graph, which later
  // calls with these sizes launch as one. Models built for the CPU ignore it.
  bool cuda_graphs = false;
};

// How a call of a model for CUDA runs. Models for the CPU ignore it.
struct RunOptions {
  // The caller's CUDA stream (a cudaStream_t, or CUstream), on which the call's work comes after
  // what is there already; it must live as long as outputs that stay on the device. Null: a stream
  // of the model's own, whose work waits for all that was asked of the device before. (The legacy
  // default stream is cudaStreamLegacy, which is not null.)
  void* cuda_stream = nullptr;

  // Whether outputs stay in the device's memory, where Tensor::cuda_device() says so. By default
  // they are copied to the CPU's memory. With a stream of the caller's and all inputs on the
  // device, Run() of a model without state then returns before the work is done, and errors of its
  // kernels show later.
  bool outputs_on_device = false;
};

// Thread safe: any number of threads may call Run() of one object at the same time. A Model that
// was moved from has an empty name and no inputs or outputs, and its Run() returns an error.
class Model {
 public:
  // Prepares the program and maps the weights; models in one process that load the same file share
  // the mapping. `spec` must have static lifetime. Errors: 2xx, 3xx, and kInvalidArgument for
  // options that are out of range.
  static Result<Model> Load(const ProgramSpec& spec, const LoadOptions& options = {});

  // Prepares several programs over one set of weights and one state: what one of them writes to a
  // buffer, the others read. Calls that work on the same state run one after the other. The
  // programs are methods of one model: all have the same table of weights, and the first says where
  // the file is. Errors: as above; kInvalidArgument for programs with other tables.
  static Result<std::vector<Model>> LoadMethods(std::span<const ProgramSpec* const> specs,
                                                const LoadOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Runs the model on `inputs`, which are in the order of inputs(). Each input is first checked
  // against its spec. An input in another layout than the program expects is copied, unless the
  // model writes to it: then it is refused. An input that the model writes to must not share memory
  // with another input. Inputs are borrowed until Run() returns. Outputs are contiguous, each in
  // memory of its own, which the caller owns. Inputs of a model for CUDA may be on the model's
  // device: those are taken without a copy, and check_values does not read them. They are borrowed
  // until the work of the call is done.
  // Errors: 1xx, before any of the program ran; 3xx and 4xx, after which the contents of mutated
  // inputs and of the model's state are unspecified.
  Result<std::vector<Tensor>> Run(std::span<const TensorView> inputs,
                                  const RunOptions& options = {}) const;

  // A new state, which begins with the values of the weights file: see aoti/session.h. Calls of
  // this object work on its own state, the default one. Errors: kInvalidArgument for a model that
  // writes to none of its buffers.
  Result<Session> NewSession() const;

  // Replaces the weights by those of another safetensors file of the same program; `path` and
  // `copy_weights` are as in LoadOptions, and an empty path is the file that was built with the
  // model. Thread safe: calls that have begun end with the old weights, later ones have the new
  // ones, and no call has some of both. The old file's memory is freed when the last of its calls
  // has ended. The state (the tensors that the model writes to) that a session has stays what it
  // is; sessions that begin, or are reset, after that begin with the new file's values. Errors: 2xx
  // and 3xx as those of Load(), kInvalidArgument for a model without weights; after an error, the
  // model has the old weights. All methods of LoadMethods() change at once, whichever is asked.
  std::optional<Error> SwapWeights(const std::string& path, bool copy_weights = false) const;

  // The same with an adapter: the weights of `weights_path` with the adapter's tensors in place of
  // theirs. All three are as in LoadOptions.
  std::optional<Error> SwapAdapter(const std::string& adapter_path,
                                   const std::string& weights_path = {},
                                   bool copy_weights = false) const;

  // Seeds the generator of random numbers that all models on the slim runtime share, as
  // torch.manual_seed() does in PyTorch. Has no effect for models without random operators. Errors:
  // kInvalidArgument for a model that runs on libtorch; torch::manual_seed() seeds that generator.
  std::optional<Error> ManualSeed(std::uint64_t seed) const;

  const char* name() const { return spec().name; }
  // The instruction set of the variant that was chosen for this CPU, such as "x86-64-v3".
  const char* isa() const;
  // What it runs on. For an empty model: the CPU.
  DeviceType device() const;
  std::span<const DimSpec> dims() const { return spec().dims; }
  std::span<const InputSpec> inputs() const { return spec().inputs; }
  std::span<const OutputSpec> outputs() const { return spec().outputs; }
  const ProgramSpec& spec() const;

 private:
  friend class Session;
  struct Loaded;

  explicit Model(std::unique_ptr<Loaded> loaded);

  std::unique_ptr<Loaded> loaded_;
};

}  // namespace aoti

#endif  // AOTI_MODEL_H_
