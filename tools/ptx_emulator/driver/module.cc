// Modules of PTX text, their functions and variables.

#include <cstring>

#include "tools/ptx_emulator/driver/device_limits.h"
#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

namespace {

// PTX for an older architecture runs on a newer device; sm_90a runs on 9.0 alone.
bool Runs(const Module& module, int arch) {
  return module.arch_specific ? module.arch == arch : module.arch <= arch;
}

int Load(State& state, void** handle, const void* image) {
  if (state.CurrentDevice() < 0) return kInvalidContext;
  if (image == nullptr) return kInvalidValue;
  // A device without binaries of any kind: cubins and fat binaries are for another one.
  const auto* bytes = static_cast<const unsigned char*>(image);
  uint32_t magic = 0;
  for (int i = 0; i < 4 && bytes[i] != 0; ++i) magic |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  if (magic == 0x464C457F || magic == 0xBA55ED50) return kNoBinaryForGpu;
  auto loaded = std::make_shared<LoadedModule>();
  loaded->device = state.CurrentDevice();
  try {
    loaded->module = ParseModule(static_cast<const char*>(image));
  } catch (const ParseError& error) {
    return state.Fail(kInvalidPtx, std::string("PTX: ") + error.what());
  }
  if (!Runs(loaded->module, state.arch)) return kNoBinaryForGpu;
  for (const auto& [name, variable] : loaded->module.globals) {
    uint64_t base =
        state.memory.Allocate(variable.bytes, Allocation::Kind::kModule, loaded->device);
    uint8_t* data = state.memory.FindBase(base)->data;
    std::memset(data, 0, variable.bytes);
    std::copy(variable.contents.begin(), variable.contents.end(), data);
    loaded->addresses[name] = base;
  }
  *handle = state.Add(loaded);
  return kSuccess;
}

}  // namespace

PTX_EMULATOR_API int cuModuleLoadData(void** module, const void* image) {
  return Call([=](State& state) { return Load(state, module, image); });
}

PTX_EMULATOR_API int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}

PTX_EMULATOR_API int cuModuleUnload(void* handle) {
  return CallAlways([=](State& state) {
    auto loaded = state.Find<LoadedModule>(handle);
    if (loaded == nullptr) return state.Fail(kInvalidHandle, "the module to unload is unknown");
    for (const auto& [name, base] : loaded->addresses) state.memory.Free(base);
    std::erase_if(state.objects, [&](const auto& entry) {
      auto* function = dynamic_cast<Function*>(entry.second.get());
      return function != nullptr && function->module == loaded;
    });
    state.objects.erase(handle);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuModuleGetFunction(void** function, void* handle, const char* name) {
  return Call([=](State& state) {
    auto loaded = state.Find<LoadedModule>(handle);
    if (loaded == nullptr) return kInvalidHandle;
    auto found = loaded->module.kernels.find(name);
    if (found == loaded->module.kernels.end()) return kNotFound;
    for (const auto& [existing, object] : state.objects) {
      auto* known = dynamic_cast<Function*>(object.get());
      if (known != nullptr && known->kernel == &found->second) {
        *function = existing;
        return kSuccess;
      }
    }
    auto created = std::make_shared<Function>();
    created->module = loaded;
    created->device = loaded->device;
    created->kernel = &found->second;
    created->most_dynamic_shared = kDefaultSharedBytes - found->second.shared_bytes;
    *function = state.Add(created);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, void* handle,
                                          const char* name) {
  return Call([=](State& state) {
    auto loaded = state.Find<LoadedModule>(handle);
    if (loaded == nullptr) return kInvalidHandle;
    auto found = loaded->addresses.find(name);
    if (found == loaded->addresses.end()) return kNotFound;
    if (address != nullptr) *address = found->second;
    if (bytes != nullptr) *bytes = loaded->module.globals.at(name).bytes;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuFuncSetAttribute(void* handle, int attribute, int value) {
  return Call([=](State& state) {
    auto function = state.Find<Function>(handle);
    if (function == nullptr) return kInvalidHandle;
    if (attribute != 8) return attribute == 9 ? kSuccess : kInvalidValue;
    int64_t most = MostSharedBytes(state.arch) - function->kernel->shared_bytes;
    if (value < 0 || value > most) {
      return state.Fail(kInvalidValue,
                        "kernel " + function->kernel->name + ": " + std::to_string(value) +
                            " bytes of dynamic shared memory; the device has at most " +
                            std::to_string(most));
    }
    function->most_dynamic_shared = value;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuFuncSetCacheConfig(void*, int) { return kSuccess; }

PTX_EMULATOR_API int cuFuncGetAttribute(int* value, int attribute, void* handle) {
  return Call([=](State& state) {
    auto function = state.Find<Function>(handle);
    if (function == nullptr) return kInvalidHandle;
    const Kernel& kernel = *function->kernel;
    switch (attribute) {
      case 0:  // MAX_THREADS_PER_BLOCK
        *value = static_cast<int>(kernel.most_threads);
        return kSuccess;
      case 1:  // SHARED_SIZE_BYTES
        *value = static_cast<int>(kernel.shared_bytes);
        return kSuccess;
      case 3:  // LOCAL_SIZE_BYTES
        *value = static_cast<int>(kernel.local_bytes);
        return kSuccess;
      case 4:  // NUM_REGS
        *value = std::min(kernel.registers, 255);
        return kSuccess;
      case 5:  // PTX_VERSION
      case 6:  // BINARY_VERSION
        *value = function->module->module.arch;
        return kSuccess;
      case 8:  // MAX_DYNAMIC_SHARED_SIZE_BYTES
        *value = static_cast<int>(function->most_dynamic_shared);
        return kSuccess;
      default:
        *value = 0;
        return kSuccess;
    }
  });
}
