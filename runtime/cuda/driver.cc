#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <string>

namespace aoti::cuda {
namespace {

// CUDA 12.0: its driver also runs what later compilers 12.x made.
constexpr int kLeastVersion = 12000;
constexpr const char* kLeastDriver = "the NVIDIA driver 525 (CUDA 12.0) or newer";

std::atomic<const DriverApi*> g_driver = nullptr;
std::atomic<bool> g_forked_child = false;

DeviceError Unsupported(const std::string& what) { return {ErrorCode::kUnsupportedGpu, what}; }

// The errors of cuInit have no text before it succeeds in some drivers.
std::string TextOf(const DriverApi& driver, CuResult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  if (name == nullptr || text == nullptr) return StrCat("CUDA error ", result);
  return StrCat(text, " (", name, ")");
}

DriverApi Find(void* library) {
  DriverApi driver;
#define AOTI_CUDA_FIND(member, symbol, parameters)                                    \
  driver.member = reinterpret_cast<CuResult(*) parameters>(dlsym(library, #symbol));  \
  if (driver.member == nullptr) {                                                     \
    throw Unsupported(                                                                \
        StrCat("libcuda.so.1 has no function " #symbol "; expected ", kLeastDriver)); \
  }
  AOTI_CUDA_FUNCTIONS(AOTI_CUDA_FIND)
#undef AOTI_CUDA_FIND
  return driver;
}

DriverApi Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw Unsupported(StrCat("running on a GPU needs libcuda.so.1 of ", kLeastDriver,
                             ", which can't be loaded: ", why == nullptr ? "" : why));
  }
  const DriverApi driver = Find(library);
  int version = 0;
  if (driver.DriverGetVersion(&version) == kSuccess && version < kLeastVersion) {
    throw Unsupported(StrCat("the NVIDIA driver supports CUDA ", version / 1000, ".",
                             version % 1000 / 10, "; expected ", kLeastDriver));
  }
  if (const CuResult result = driver.Init(0); result != kSuccess) {
    throw Unsupported(StrCat("can't initialise the NVIDIA driver: ", TextOf(driver, result)));
  }
  return driver;
}

}  // namespace

const DriverApi& Driver() {
  if (IsForkedChild()) {
    throw DeviceError(
        ErrorCode::kUnsupportedGpu,
        "CUDA can't be used in a child of fork() after its parent has used it; load "
        "models and kernels for CUDA in the child only, or start the child with exec()");
  }
  if (const DriverApi* driver = g_driver.load(std::memory_order_acquire)) return *driver;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const DriverApi* driver = g_driver.load(std::memory_order_acquire)) return *driver;
  // Never freed: models may be unloaded by destructors of static objects.
  const auto* driver = new DriverApi(Open());
  pthread_atfork(nullptr, nullptr, [] { g_forked_child = true; });
  g_driver.store(driver, std::memory_order_release);
  return *driver;
}

bool IsForkedChild() { return g_forked_child.load(std::memory_order_relaxed); }

std::string TextOf(CuResult result) { return TextOf(Driver(), result); }

void Throw(CuResult result, const std::string& doing) {
  const ErrorCode code =
      result == kErrorOutOfMemory ? ErrorCode::kOutOfMemory : ErrorCode::kExecutionFailed;
  throw DeviceError(code, StrCat(doing, ": ", TextOf(result)));
}

}  // namespace aoti::cuda
