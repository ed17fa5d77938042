// What the runtime uses of the CUDA driver API: libcuda.so.1 is opened when a program is loaded, so
// that programs need neither NVIDIA's headers nor its libraries to be built and linked.

#ifndef AOTI_RUNTIME_CUDA_DRIVER_API_H_
#define AOTI_RUNTIME_CUDA_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

// The driver's handles point to these.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace aoti::cuda {

using CuResult = int;
using CuDevice = int;
using CuPointer = unsigned long long;  // an address in device memory
using CuContext = CUctx_st*;
using CuModule = CUmod_st*;
using CuFunction = CUfunc_st*;
using CuStream = CUstream_st*;
using CuGraph = CUgraph_st*;
using CuGraphExec = CUgraphExec_st*;

// CUresult.
inline constexpr CuResult kSuccess = 0;
inline constexpr CuResult kErrorOutOfMemory = 2;
inline constexpr CuResult kErrorNotInitialized = 3;
inline constexpr CuResult kErrorNoDevice = 100;
inline constexpr CuResult kErrorNoBinaryForGpu = 209;

// CUdevice_attribute.
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;

// CUfunction_attribute.
inline constexpr int kMaxDynamicSharedSizeBytes = 8;

// CUstream_flags: work of the stream does not wait for that of the default stream.
inline constexpr unsigned kStreamNonBlocking = 1;

// CUstreamCaptureMode: other threads, and memory, are used as without a capture.
inline constexpr int kCaptureRelaxed = 2;

// AOTI_CUDA_FUNCTIONS(F) calls F(member, symbol, parameters) for each function of the driver.
#define AOTI_CUDA_FUNCTIONS(F)                                                                     \
  F(Init, cuInit, (unsigned flags))                                                                \
  F(DriverGetVersion, cuDriverGetVersion, (int* version))                                          \
  F(GetErrorName, cuGetErrorName, (CuResult error, const char** name))                             \
  F(GetErrorString, cuGetErrorString, (CuResult error, const char** text))                         \
  F(DeviceGetCount, cuDeviceGetCount, (int* count))                                                \
  F(DeviceGet, cuDeviceGet, (CuDevice * device, int index))                                        \
  F(DeviceGetName, cuDeviceGetName, (char* name, int length, CuDevice device))                     \
  F(DeviceGetAttribute, cuDeviceGetAttribute, (int* value, int what, CuDevice device))             \
  F(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CuContext * context, CuDevice device))            \
  F(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CuDevice device))                            \
  F(CtxPushCurrent, cuCtxPushCurrent_v2, (CuContext context))                                      \
  F(CtxSynchronize, cuCtxSynchronize, ())                                                          \
  F(CtxPopCurrent, cuCtxPopCurrent_v2, (CuContext * context))                                      \
  F(ModuleLoadData, cuModuleLoadData, (CuModule * module, const void* image))                      \
  F(ModuleUnload, cuModuleUnload, (CuModule module))                                               \
  F(ModuleGetFunction, cuModuleGetFunction,                                                        \
    (CuFunction * function, CuModule module, const char* name))                                    \
  F(FuncSetAttribute, cuFuncSetAttribute, (CuFunction function, int what, int value))              \
  F(LaunchKernel, cuLaunchKernel,                                                                  \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, void** arguments, \
     void** extra))                                                                                \
  F(MemAlloc, cuMemAlloc_v2, (CuPointer * memory, std::size_t bytes))                              \
  F(MemFree, cuMemFree_v2, (CuPointer memory))                                                     \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                         \
    (CuPointer to, const void* from, std::size_t bytes, CuStream stream))                          \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                         \
    (void* to, CuPointer from, std::size_t bytes, CuStream stream))                                \
  F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                         \
    (CuPointer to, CuPointer from, std::size_t bytes, CuStream stream))                            \
  F(MemsetD8Async, cuMemsetD8Async,                                                                \
    (CuPointer memory, unsigned char value, std::size_t bytes, CuStream stream))                   \
  F(StreamCreate, cuStreamCreate, (CuStream * stream, unsigned flags))                             \
  F(StreamDestroy, cuStreamDestroy_v2, (CuStream stream))                                          \
  F(StreamSynchronize, cuStreamSynchronize, (CuStream stream))                                     \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, (CuStream stream, int mode))                      \
  F(StreamEndCapture, cuStreamEndCapture, (CuStream stream, CuGraph * graph))                      \
  F(GraphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (CuGraphExec * executable, CuGraph graph, unsigned long long flags))                           \
  F(GraphLaunch, cuGraphLaunch, (CuGraphExec executable, CuStream stream))                         \
  F(GraphExecDestroy, cuGraphExecDestroy, (CuGraphExec executable))                                \
  F(GraphDestroy, cuGraphDestroy, (CuGraph graph))

// The functions of the driver of this machine.
struct DriverApi {
#define AOTI_CUDA_MEMBER(member, symbol, parameters) CuResult(*member) parameters = nullptr;
  AOTI_CUDA_FUNCTIONS(AOTI_CUDA_MEMBER)
#undef AOTI_CUDA_MEMBER
};

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_DRIVER_API_H_
