#include "runtime/cuda/tests/fake_driver.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "runtime/cuda/driver_api.h"

// Opaque to its users.
struct CUmod_st {
  bool ptx;
};
struct CUfunc_st {
  std::string name;
  unsigned shared = 0;
};
struct CUstream_st {};
struct CUctx_st {};

namespace aoti::cuda {
namespace {

testing::FakeDriver g_fake;
std::mutex g_mutex;
std::map<CuPointer, std::size_t> g_memory;
std::map<std::string, CUfunc_st> g_functions;
CUctx_st g_context;

// A driver that can't capture: the programs do without.
constexpr CuResult kCaptureUnsupported = 900;

constexpr CuResult kInvalidValue = 1;
constexpr CuResult kInvalidImage = 200;
constexpr CuResult kIllegalAddress = 700;

// Whether all of these bytes are in one allocation.
bool IsValid(CuPointer memory, std::size_t bytes) {
  auto block = g_memory.upper_bound(memory);
  if (block == g_memory.begin()) return false;
  --block;
  return memory + bytes <= block->first + block->second;
}

template <typename T>
T* At(void* argument, std::size_t count) {
  CuPointer memory;
  std::memcpy(&memory, argument, sizeof(memory));
  return IsValid(memory, count * sizeof(T)) ? reinterpret_cast<T*>(memory) : nullptr;
}

// The kernels of test_kernels.cc.
CuResult RunKernel(const std::string& name, void** arguments) {
  int n = 0;
  if (name == "add_row") {
    std::memcpy(&n, arguments[3], sizeof(n));
    const auto count = static_cast<std::size_t>(n);
    const float* x = At<float>(arguments[0], count);
    const float* row = At<float>(arguments[1], 4);
    float* y = At<float>(arguments[2], count);
    if (x == nullptr || row == nullptr || y == nullptr) return kIllegalAddress;
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] + row[i % 4];
    return kSuccess;
  }
  if (name == "check_index") {
    const float* index = At<float>(arguments[0], 1);
    auto* status = At<std::uint64_t>(arguments[1], 1);
    if (index == nullptr || status == nullptr) return kIllegalAddress;
    if (*index >= 4) *status = static_cast<std::uint64_t>(*index) << 32 | 5;
    return kSuccess;
  }
  std::memcpy(&n, arguments[2], sizeof(n));
  const auto count = static_cast<std::size_t>(n);
  const float* x = At<float>(arguments[0], count);
  float* total = At<float>(arguments[1], count);
  if (x == nullptr || total == nullptr) return kIllegalAddress;
  for (std::size_t i = 0; i < count; ++i) total[i] += x[i];
  return kSuccess;
}

bool Fails(std::string_view function) { return g_fake.failing == function; }

}  // namespace
}  // namespace aoti::cuda

using namespace aoti::cuda;  // NOLINT: the driver's functions are global

extern "C" {

aoti::testing::FakeDriver* fake_cuda_driver() { return &g_fake; }

CuResult cuInit(unsigned) { return g_fake.devices == 0 ? kErrorNoDevice : kSuccess; }

CuResult cuDriverGetVersion(int* version) {
  *version = g_fake.version;
  return kSuccess;
}

CuResult cuGetErrorName(CuResult error, const char** name) {
  *name = error == kErrorOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kErrorNoDevice       ? "CUDA_ERROR_NO_DEVICE"
          : error == kErrorNoBinaryForGpu ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : error == kIllegalAddress      ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                          : "CUDA_ERROR_INVALID_VALUE";
  return kSuccess;
}

CuResult cuGetErrorString(CuResult error, const char** text) {
  *text = error == kErrorOutOfMemory ? "out of memory"
          : error == kErrorNoDevice  ? "no CUDA-capable device is detected"
          : error == kErrorNoBinaryForGpu
              ? "no kernel image is available for execution on the device"
          : error == kIllegalAddress ? "an illegal memory access was encountered"
                                     : "invalid argument";
  return kSuccess;
}

CuResult cuDeviceGetCount(int* count) {
  *count = g_fake.devices;
  return kSuccess;
}

CuResult cuDeviceGet(CuDevice* device, int index) {
  *device = index;
  return index < g_fake.devices ? kSuccess : kInvalidValue;
}

CuResult cuDeviceGetName(char* name, int length, CuDevice) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return kSuccess;
}

CuResult cuDeviceGetAttribute(int* value, int what, CuDevice) {
  *value = what == kComputeCapabilityMajor ? g_fake.arch / 10 : g_fake.arch % 10;
  return kSuccess;
}

CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice) {
  ++g_fake.contexts;
  *context = &g_context;
  return kSuccess;
}

CuResult cuDevicePrimaryCtxRelease_v2(CuDevice) {
  --g_fake.contexts;
  return kSuccess;
}

CuResult cuCtxPushCurrent_v2(CuContext) {
  const std::lock_guard lock(g_mutex);
  ++g_fake.pushed;
  return kSuccess;
}

CuResult cuCtxPopCurrent_v2(CuContext* context) {
  const std::lock_guard lock(g_mutex);
  --g_fake.pushed;
  *context = &g_context;
  return kSuccess;
}

CuResult cuCtxSynchronize() {
  ++g_fake.waits;
  return kSuccess;
}

CuResult cuModuleLoadData(CuModule* module, const void* image) {
  const bool ptx = std::strncmp(static_cast<const char*>(image), ".version", 8) == 0;
  if (!ptx && std::strncmp(static_cast<const char*>(image),
                           "\x7f"
                           "ELF",
                           4) != 0) {
    return kInvalidImage;
  }
  if (!ptx && !g_fake.takes_cubins) return kErrorNoBinaryForGpu;
  if (Fails("cuModuleLoadData")) return kInvalidImage;
  ++g_fake.modules;
  g_fake.loads_of_ptx += ptx ? 1 : 0;
  *module = new CUmod_st{ptx};
  return kSuccess;
}

CuResult cuModuleUnload(CuModule module) {
  --g_fake.modules;
  delete module;
  return kSuccess;
}

CuResult cuModuleGetFunction(CuFunction* function, CuModule, const char* name) {
  *function = &g_functions[name];
  (*function)->name = name;
  return kSuccess;
}

CuResult cuFuncSetAttribute(CuFunction function, int, int value) {
  function->shared = static_cast<unsigned>(value);
  return kSuccess;
}

CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned, unsigned, unsigned shared_bytes,
                        CuStream stream, void** arguments, void**) {
  const std::lock_guard lock(g_mutex);
  if (Fails("cuLaunchKernel") || shared_bytes > function->shared) return kInvalidValue;
  ++g_fake.launches;
  g_fake.launched_on = stream;
  g_fake.launched = function->name + " " + std::to_string(grid_x) + "x" + std::to_string(grid_y) +
                    "x" + std::to_string(grid_z) + ", " + std::to_string(block_x) + " threads, " +
                    std::to_string(shared_bytes) + " bytes shared";
  return RunKernel(function->name, arguments);
}

CuResult cuMemAlloc_v2(CuPointer* memory, std::size_t bytes) {
  const std::lock_guard lock(g_mutex);
  if (g_fake.bytes + bytes > g_fake.memory) return kErrorOutOfMemory;
  void* block = std::malloc(bytes);
  *memory = reinterpret_cast<CuPointer>(block);
  g_memory[*memory] = bytes;
  g_fake.bytes += bytes;
  ++g_fake.blocks;
  ++g_fake.allocations;
  return kSuccess;
}

CuResult cuMemFree_v2(CuPointer memory) {
  const std::lock_guard lock(g_mutex);
  const auto block = g_memory.find(memory);
  if (block == g_memory.end()) return kInvalidValue;
  g_fake.bytes -= block->second;
  --g_fake.blocks;
  g_memory.erase(block);
  std::free(reinterpret_cast<void*>(memory));
  return kSuccess;
}

CuResult cuMemcpyHtoDAsync_v2(CuPointer to, const void* from, std::size_t bytes, CuStream) {
  const std::lock_guard lock(g_mutex);
  if (!IsValid(to, bytes) || Fails("cuMemcpyHtoDAsync_v2")) return kIllegalAddress;
  ++g_fake.uploads;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}

CuResult cuMemcpyDtoHAsync_v2(void* to, CuPointer from, std::size_t bytes, CuStream) {
  const std::lock_guard lock(g_mutex);
  if (!IsValid(from, bytes) || Fails("cuMemcpyDtoHAsync_v2")) return kIllegalAddress;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}

CuResult cuMemcpyDtoDAsync_v2(CuPointer to, CuPointer from, std::size_t bytes, CuStream) {
  const std::lock_guard lock(g_mutex);
  if (!IsValid(to, bytes) || !IsValid(from, bytes)) return kIllegalAddress;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}

CuResult cuMemsetD8Async(CuPointer memory, unsigned char value, std::size_t bytes, CuStream) {
  const std::lock_guard lock(g_mutex);
  if (!IsValid(memory, bytes)) return kIllegalAddress;
  std::memset(reinterpret_cast<void*>(memory), value, bytes);
  return kSuccess;
}

CuResult cuStreamCreate(CuStream* stream, unsigned) {
  const std::lock_guard lock(g_mutex);
  ++g_fake.streams;
  *stream = new CUstream_st;
  return kSuccess;
}

CuResult cuStreamDestroy_v2(CuStream stream) {
  const std::lock_guard lock(g_mutex);
  --g_fake.streams;
  delete stream;
  return kSuccess;
}

CuResult cuStreamSynchronize(CuStream stream) {
  ++g_fake.stream_waits[stream];
  return Fails("cuStreamSynchronize") ? kIllegalAddress : kSuccess;
}

CuResult cuStreamBeginCapture_v2(CuStream, int) { return kCaptureUnsupported; }
CuResult cuStreamEndCapture(CuStream, CuGraph*) { return kCaptureUnsupported; }
CuResult cuGraphInstantiateWithFlags(CuGraphExec*, CuGraph, unsigned long long) {
  return kCaptureUnsupported;
}
CuResult cuGraphLaunch(CuGraphExec, CuStream) { return kCaptureUnsupported; }
CuResult cuGraphExecDestroy(CuGraphExec) { return kCaptureUnsupported; }
CuResult cuGraphDestroy(CuGraph) { return kCaptureUnsupported; }

}  // extern "C"
