// Initialization, devices and their attributes.

#include <cstdio>
#include <cstring>

#include "tools/ptx_emulator/driver/device_limits.h"
#include "tools/ptx_emulator/driver/environment.h"
#include "tools/ptx_emulator/driver/state.h"

namespace ptx_emulator {

int64_t MostSharedBytes(int arch) {
  switch (arch) {
    case 75:
      return 64 * 1024;
    case 86:
    case 89:
    case 120:
      return 99 * 1024;
    case 80:
    case 87:
      return 163 * 1024;
    default:
      return 227 * 1024;
  }
}

namespace {

int Attribute(const State& state, int attribute) {
  switch (attribute) {
    case 1:  // MAX_THREADS_PER_BLOCK
    case 2:  // MAX_BLOCK_DIM_X
    case 3:  // MAX_BLOCK_DIM_Y
      return 1024;
    case 4:  // MAX_BLOCK_DIM_Z
      return 64;
    case 5:  // MAX_GRID_DIM_X
      return 2147483647;
    case 6:  // MAX_GRID_DIM_Y
    case 7:  // MAX_GRID_DIM_Z
      return 65535;
    case 8:  // MAX_SHARED_MEMORY_PER_BLOCK
      return kDefaultSharedBytes;
    case 9:  // TOTAL_CONSTANT_MEMORY
      return 65536;
    case 10:  // WARP_SIZE
      return 32;
    case 12:  // MAX_REGISTERS_PER_BLOCK
    case 82:  // MAX_REGISTERS_PER_MULTIPROCESSOR
      return 65536;
    case 16:  // MULTIPROCESSOR_COUNT
      return 4;
    case 39:  // MAX_THREADS_PER_MULTIPROCESSOR
      return state.arch == 75 ? 1024 : 2048;
    case 75:  // COMPUTE_CAPABILITY_MAJOR
      return state.arch / 10;
    case 76:  // COMPUTE_CAPABILITY_MINOR
      return state.arch % 10;
    case 81:  // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      return static_cast<int>(MostSharedBytes(state.arch)) + 1024;
    case 97:  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      return static_cast<int>(MostSharedBytes(state.arch));
    case 31:   // CONCURRENT_KERNELS
    case 40:   // ASYNC_ENGINE_COUNT
    case 41:   // UNIFIED_ADDRESSING
    case 115:  // MEMORY_POOLS_SUPPORTED
      return 1;
    default:
      return 0;
  }
}

bool Known(const State& state, int device) { return device >= 0 && device < state.devices; }

}  // namespace
}  // namespace ptx_emulator

using namespace ptx_emulator;

PTX_EMULATOR_API int cuInit(unsigned flags) {
  State& state = State::Get();
  std::lock_guard lock(state.mutex);
  if (flags != 0) return kInvalidValue;
  if (state.devices == 0) return 100;
  state.initialized = true;
  return kSuccess;
}

PTX_EMULATOR_API int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(NumberFromEnvironment("PTX_EMULATOR_DRIVER_VERSION", 13000));
  return kSuccess;
}

PTX_EMULATOR_API int cuDeviceGetCount(int* count) {
  return Call([=](State& state) {
    *count = state.devices;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGet(int* device, int ordinal) {
  return Call([=](State& state) {
    if (!Known(state, ordinal)) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetName(char* name, int length, int device) {
  return Call([=](State& state) {
    if (!Known(state, device) || length <= 0) return kInvalidDevice;
    std::snprintf(name, static_cast<size_t>(length), "PTX emulator sm_%d", state.arch);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return Call([=](State& state) {
    if (!Known(state, device)) return kInvalidDevice;
    *value = Attribute(state, attribute);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return Call([=](State& state) {
    if (!Known(state, device)) return kInvalidDevice;
    *bytes = state.device_bytes;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetUuid_v2(char* uuid, int device) {
  return Call([=](State& state) {
    if (!Known(state, device)) return kInvalidDevice;
    std::memset(uuid, 0, 16);
    uuid[15] = static_cast<char>(device + 1);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetUuid(char* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
