// cuGetProcAddress: functions by their names without a version.

#include <dlfcn.h>

#include <string>

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

// The newest version of the function comes first. `status` gets 0 if it is found, else 1.
PTX_EMULATOR_API int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t,
                                         int* status) {
  static void* self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &info);
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  *function = dlsym(self, (std::string(name) + "_v2").c_str());
  if (*function == nullptr) *function = dlsym(self, name);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? kNotFound : kSuccess;
}

PTX_EMULATOR_API int cuGetProcAddress(const char* name, void** function, int version,
                                      uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
