// What the code that torch's code generator writes for a CPU refers to: handles that own tensors,
// the constants of a program, and the class of the program. Only generated code includes this.
//
// torch has the same in torch/csrc/inductor/aoti_runtime, made for its own container: half of the
// time to compile a small program goes to those headers. The names are torch's, since its code
// generator writes them. In namespace torch::aot_inductor they are only made known: an object file
// that includes torch's headers can be in the same binary. Those of slim and libtorch call other
// functions, so they are different names for the linker, too.
//
// Before this header is included, the macro AOTInductorModel must be the name of the program's
// class.

#ifndef AOTI_RUNTIME_CORE_GENERATED_PROGRAM_H_
#define AOTI_RUNTIME_CORE_GENERATED_PROGRAM_H_

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The runtime finds the function's name and the reason: see Shim::Describe().
#define AOTI_TORCH_ERROR_CODE_CHECK(call) \
  if ((call) != AOTI_TORCH_SUCCESS) ::aoti::generated::Fail(#call)

#define CACHE_TORCH_DTYPE(dtype) static auto cached_torch_dtype_##dtype = aoti_torch_dtype_##dtype()
#define CACHE_TORCH_DEVICE(device) \
  static auto cached_torch_device_type_##device = aoti_torch_device_type_##device()
#define CACHE_TORCH_LAYOUT(layout) \
  static auto cached_torch_layout_##layout = aoti_torch_layout_##layout()
#define CACHE_TORCH_MEMORY_FORMAT(format) \
  static auto cached_torch_memory_format_##format = aoti_torch_memory_format_##format()

namespace aoti::generated {
#ifdef AOTI_SLIM
inline namespace slim {
#else
inline namespace libtorch {
#endif

[[noreturn, gnu::cold, gnu::noinline]] inline void Fail(const char* call) {
  throw std::runtime_error(std::string(call) + " API call failed at a line of generated code");
}

// What both kinds of handles read of a tensor.
inline void* DataOf(AtenTensorHandle tensor) {
  void* data = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(tensor, &data));
  return data;
}

inline int64_t* SizesOf(AtenTensorHandle tensor) {
  int64_t* sizes = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(tensor, &sizes));
  return sizes;
}

inline int64_t* StridesOf(AtenTensorHandle tensor) {
  int64_t* strides = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(tensor, &strides));
  return strides;
}

// Owns a tensor of the C ABI, or nothing.
class RAIIAtenTensorHandle {
 public:
  RAIIAtenTensorHandle() = default;
  RAIIAtenTensorHandle(AtenTensorHandle handle) : handle_(handle) {}
  RAIIAtenTensorHandle(RAIIAtenTensorHandle&& other) noexcept : handle_(other.release()) {}
  RAIIAtenTensorHandle& operator=(RAIIAtenTensorHandle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  ~RAIIAtenTensorHandle() { reset(); }

  // The tensor, which stays this object's.
  operator AtenTensorHandle() const { return handle_; }
  AtenTensorHandle get() const { return handle_; }
  AtenTensorHandle release() { return std::exchange(handle_, nullptr); }
  void reset() {
    if (handle_ != nullptr) aoti_torch_delete_tensor_object(release());
  }

  void* data_ptr() const { return DataOf(handle_); }
  int64_t* sizes() const { return SizesOf(handle_); }
  int64_t* strides() const { return StridesOf(handle_); }
  int64_t size(int64_t dim) const {
    int64_t size = 0;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(handle_, dim, &size));
    return size;
  }
  int64_t stride(int64_t dim) const {
    int64_t stride = 0;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(handle_, dim, &stride));
    return stride;
  }
  int64_t storage_offset() const {
    int64_t offset = 0;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_storage_offset(handle_, &offset));
    return offset;
  }

 private:
  AtenTensorHandle handle_ = nullptr;
};

// A tensor that somebody else owns, as the constants of a program.
class ConstantHandle {
 public:
  ConstantHandle() = default;
  explicit ConstantHandle(AtenTensorHandle handle) : handle_(handle), data_(DataOf(handle)) {}

  operator AtenTensorHandle() const { return handle_; }
  AtenTensorHandle get() const { return handle_; }

  void* data_ptr() const { return data_; }
  int64_t* sizes() const { return SizesOf(handle_); }
  int64_t* strides() const { return StridesOf(handle_); }

 private:
  AtenTensorHandle handle_ = nullptr;
  void* data_ = nullptr;
};

inline RAIIAtenTensorHandle wrap_with_raii_handle_if_needed(AtenTensorHandle handle) {
  return RAIIAtenTensorHandle(handle);
}
// It would own what is not its own.
RAIIAtenTensorHandle wrap_with_raii_handle_if_needed(const ConstantHandle& handle) = delete;

// Takes the handles out of the array.
inline std::vector<RAIIAtenTensorHandle> steal_from_raw_handles_to_raii_handles(
    AtenTensorHandle* handles, std::size_t size) {
  std::vector<RAIIAtenTensorHandle> taken;
  taken.reserve(size);
  for (std::size_t i = 0; i < size; ++i) taken.emplace_back(std::exchange(handles[i], nullptr));
  return taken;
}

// A new tensor in the memory of another. The caller owns it.
inline AtenTensorHandle reinterpret_tensor_wrapper(AtenTensorHandle self, int64_t dims,
                                                   const int64_t* sizes, const int64_t* strides,
                                                   int64_t offset) {
  AtenTensorHandle view = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(
      aoti_torch__reinterpret_tensor(self, dims, sizes, strides, offset, &view));
  return view;
}

// For optional arguments, which C functions take by pointer. The reference is valid until the end
// of the expression.
template <class Value>
Value& temporary_reference(Value&& value) {
  return value;
}

// The tensor of a single number. The caller owns it.
template <class Number>
RAIIAtenTensorHandle scalar_to_tensor_handle(Number value) = delete;
#define AOTI_SCALAR_TO_TENSOR(dtype, Number)                                          \
  template <>                                                                         \
  inline RAIIAtenTensorHandle scalar_to_tensor_handle<Number>(Number value) {         \
    AtenTensorHandle tensor = nullptr;                                                \
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_scalar_to_tensor_##dtype(value, &tensor)); \
    return tensor;                                                                    \
  }
AOTI_SCALAR_TO_TENSOR(float32, float)
AOTI_SCALAR_TO_TENSOR(float64, double)
AOTI_SCALAR_TO_TENSOR(uint8, uint8_t)
AOTI_SCALAR_TO_TENSOR(uint16, uint16_t)
AOTI_SCALAR_TO_TENSOR(uint32, uint32_t)
AOTI_SCALAR_TO_TENSOR(uint64, uint64_t)
AOTI_SCALAR_TO_TENSOR(int8, int8_t)
AOTI_SCALAR_TO_TENSOR(int16, int16_t)
AOTI_SCALAR_TO_TENSOR(int32, int32_t)
AOTI_SCALAR_TO_TENSOR(int64, int64_t)
AOTI_SCALAR_TO_TENSOR(bool, bool)
AOTI_SCALAR_TO_TENSOR(complex64, c10::complex<float>)
AOTI_SCALAR_TO_TENSOR(complex128, c10::complex<double>)
#undef AOTI_SCALAR_TO_TENSOR

// Rounds down, as Python's `//` does. As in torch, 0 for a divisor of 0, and the lowest integer
// divided by -1 is itself.
template <class Integer>
constexpr Integer div_floor_integer(Integer a, Integer b) {
  if (b == 0) return 0;
  if (std::is_signed_v<Integer> && b == -1 && a == std::numeric_limits<Integer>::min()) return a;
  const Integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Up to a multiple of 64 bytes.
inline int64_t align(int64_t bytes) { return (bytes + 63) & -64; }

// torch checks inputs, and the tensors that operators return, if an environment variable says so.
// The runtime always checks inputs itself.
constexpr bool _check_aoti_runtime_check_inputs_env() { return false; }
constexpr void __check_inputs_outputs(AtenTensorHandle*, AtenTensorHandle*) {}
template <class... Ignored>
void assert_size_stride(AtenTensorHandle, std::initializer_list<int64_t>,
                        std::initializer_list<int64_t>, Ignored...) {}

using DeviceStreamType = void*;

// A base of what generated code keeps of its kernels.
struct AOTInductorModelKernelsBase {
  virtual ~AOTInductorModelKernelsBase() = default;
};

// What the class of a program derives from. An instance is used by one thread at a time.
class GeneratedProgram {
 public:
  GeneratedProgram(std::size_t inputs, std::size_t outputs, std::size_t constants,
                   std::unique_ptr<AOTInductorModelKernelsBase> kernels)
      : kernels_(std::move(kernels)), inputs_(inputs), outputs_(outputs), count_(constants) {}
  GeneratedProgram(const GeneratedProgram&) = delete;
  GeneratedProgram& operator=(const GeneratedProgram&) = delete;

  std::size_t num_inputs() const { return inputs_; }
  std::size_t num_outputs() const { return outputs_; }
  std::size_t num_constants() const { return count_; }

  void update_constants_array(std::shared_ptr<std::vector<ConstantHandle>> constants) {
    constants_ = std::move(constants);
  }

 protected:
  std::shared_ptr<std::vector<ConstantHandle>> constants_;
  std::unique_ptr<AOTInductorModelKernelsBase> kernels_;
  const int32_t device_idx_ = -1;

 private:
  std::size_t inputs_;
  std::size_t outputs_;
  std::size_t count_;
};

}  // namespace slim or libtorch
}  // namespace aoti::generated

namespace c10 {
using ::aoti::generated::div_floor_integer;
}  // namespace c10

namespace torch::aot_inductor {

using namespace ::aoti::generated;

// The class of the program: the generated code defines the constructor and run_impl().
class AOTInductorModel : public GeneratedProgram {
 public:
  AOTInductorModel();

  // Takes the inputs out of their array, and puts new tensors into that of the outputs.
  void run_impl(AtenTensorHandle* inputs, AtenTensorHandle* outputs, DeviceStreamType stream,
                AOTIProxyExecutorHandle);

  void run_single_threaded(AtenTensorHandle* inputs, AtenTensorHandle* outputs,
                           DeviceStreamType stream, AOTIProxyExecutorHandle proxy_executor) {
    run_impl(inputs, outputs, stream, proxy_executor);
  }
};

}  // namespace torch::aot_inductor

#endif  // AOTI_RUNTIME_CORE_GENERATED_PROGRAM_H_
