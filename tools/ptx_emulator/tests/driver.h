// The functions of the driver that the tests call, and a device with short names for them.

#ifndef PTX_EMULATOR_TESTS_DRIVER_H_
#define PTX_EMULATOR_TESTS_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize();
int cuModuleLoadData(void** module, const void* image);
int cuModuleUnload(void* module);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuFuncSetAttribute(void* function, int attribute, int value);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** parameters, void** extra);
int cuMemAlloc_v2(uint64_t* address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes);
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream);
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamBeginCapture_v2(void* stream, int mode);
int cuStreamEndCapture(void* stream, void** graph);
int cuGraphInstantiateWithFlags(void** executable, void* graph, uint64_t flags);
int cuGraphLaunch(void* executable, void* stream);
int cuGraphExecDestroy(void* executable);
int cuGraphDestroy(void* graph);
int cuGetErrorName(int code, const char** name);
int cuPointerGetAttribute(void* data, int attribute, uint64_t address);
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status);
uint64_t ptx_emulator_take_failures();
const char* ptx_emulator_last_failure();
}

namespace ptx_emulator::testing {

// A kernel `k` around the body, with parameters a to d that are 64-bit addresses, loaded into
// %a to %d, and some registers.
inline std::string Kernel(const std::string& body, const std::string& before = "") {
  std::string text = ".version 8.7\n.target sm_80\n.address_size 64\n" + before +
                     ".extern .shared .align 16 .b8 smem[];\n.visible .entry k(";
  for (const char* name : {"a", "b", "c", "d"}) {
    text += std::string(*name == 'a' ? "" : ", ") + ".param .u64 p" + name;
  }
  text +=
      ")\n{\n.reg .pred %p<8>;\n.reg .b16 %h<16>;\n.reg .b32 %r<40>;\n.reg .b64 %l<16>;\n"
      ".reg .b64 %a, %b, %c, %d, %i;\n.reg .b32 %t;\n"
      "ld.param.b64 %a, [pa];\nld.param.b64 %b, [pb];\nld.param.b64 %c, [pc];\n"
      "ld.param.b64 %d, [pd];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %i, %t, 4;\n";
  return text + body + "\nret;\n}\n";
}

inline void Expect(int code, const char* what) {
  if (code == 0) return;
  std::cerr << what << " returned " << code << std::endl;
  std::abort();
}

// The device, with one loaded module.
class Device {
 public:
  explicit Device(const std::string& ptx) {
    Expect(cuInit(0), "cuInit");
    void* context = nullptr;
    Expect(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    Expect(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Expect(cuModuleLoadData(&module_, ptx.c_str()), "cuModuleLoadData");
    Expect(cuModuleGetFunction(&function_, module_, "k"), "cuModuleGetFunction");
  }
  ~Device() {
    for (uint64_t address : allocations_) cuMemFree_v2(address);
    cuModuleUnload(module_);
    cuDevicePrimaryCtxRelease_v2(0);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  uint64_t Allocate(size_t bytes) {
    uint64_t address = 0;
    Expect(cuMemAlloc_v2(&address, bytes), "cuMemAlloc");
    allocations_.push_back(address);
    return address;
  }
  void Free(uint64_t address) {
    Expect(cuMemFree_v2(address), "cuMemFree");
    std::erase(allocations_, address);
  }
  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    uint64_t address = Allocate(values.size() * sizeof(T));
    Expect(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)), "cuMemcpyHtoD");
    return address;
  }
  template <typename T>
  std::vector<T> Download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    Expect(cuMemcpyDtoH_v2(values.data(), address, count * sizeof(T)), "cuMemcpyDtoH");
    return values;
  }
  int Launch(unsigned threads, std::vector<uint64_t> arguments, unsigned shared = 0,
             void* stream = nullptr, unsigned blocks = 1) {
    arguments.resize(4);
    void* parameters[] = {&arguments[0], &arguments[1], &arguments[2], &arguments[3]};
    return cuLaunchKernel(function_, blocks, 1, 1, threads, 1, 1, shared, stream, parameters,
                          nullptr);
  }
  void* function() const { return function_; }
  void* module() const { return module_; }

 private:
  void* module_ = nullptr;
  void* function_ = nullptr;
  std::vector<uint64_t> allocations_;
};

}  // namespace ptx_emulator::testing

#endif  // PTX_EMULATOR_TESTS_DRIVER_H_
