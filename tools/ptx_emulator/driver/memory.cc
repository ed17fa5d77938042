// Memory of devices and pinned memory of the host: cuMemAlloc, cuMemFree, pools, attributes.

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

namespace {

int Allocate(State& state, uint64_t* address, size_t bytes, int device) {
  if (device < 0) return kInvalidContext;
  if (bytes == 0) return kInvalidValue;
  if (state.memory.live_bytes() + bytes > state.device_bytes) return kOutOfMemory;
  *address = state.memory.Allocate(bytes, Allocation::Kind::kDevice, device);
  state.peak_bytes = std::max(state.peak_bytes, state.Count().live_bytes);
  return kSuccess;
}

int Free(State& state, uint64_t address) {
  Allocation* allocation = state.memory.FindBase(address);
  if (allocation == nullptr || allocation->kind != Allocation::Kind::kDevice) {
    std::ostringstream text;
    text << "0x" << std::hex << address << " is freed: " << state.memory.Describe(address)
         << "; expected the start of a live allocation";
    return state.Fail(kInvalidValue, text.str());
  }
  state.memory.Free(address);
  return kSuccess;
}

}  // namespace

PTX_EMULATOR_API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  return Call([=](State& state) {
    if (state.Capturing()) return state.Fail(kCaptureUnsupported, "cuMemAlloc in a capture");
    return Allocate(state, address, bytes, state.CurrentDevice());
  });
}

PTX_EMULATOR_API int cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    if (found == nullptr) return kInvalidHandle;
    if (found->capture != nullptr) {
      return state.Fail(kNotSupported, "the emulator has no cuMemAllocAsync in a capture");
    }
    return Allocate(state, address, bytes, state.CurrentDevice());
  });
}

PTX_EMULATOR_API int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, void*, void* stream) {
  return cuMemAllocAsync(address, bytes, stream);
}

PTX_EMULATOR_API int cuMemFree_v2(uint64_t address) {
  return CallAlways([=](State& state) {
    if (address == 0) return kSuccess;
    if (state.Capturing()) return state.Fail(kCaptureUnsupported, "cuMemFree in a capture");
    return Free(state, address);
  });
}

PTX_EMULATOR_API int cuMemFreeAsync(uint64_t address, void* stream) {
  return CallAlways([=](State& state) {
    return state.Enqueue(stream, [&state, address] { return Free(state, address); });
  });
}

PTX_EMULATOR_API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return Call([=](State& state) {
    *total = state.device_bytes;
    *free = state.device_bytes - state.memory.live_bytes();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return Call([=](State& state) {
    if (device < 0 || device >= state.devices) return kInvalidDevice;
    *pool = state.pools[device].get();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDeviceGetMemPool(void** pool, int device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}

PTX_EMULATOR_API int cuMemPoolSetAttribute(void* handle, int attribute, void* value) {
  return Call([=](State& state) {
    for (const auto& pool : state.pools) {
      if (pool.get() != handle) continue;
      pool->attributes[attribute] = *static_cast<uint64_t*>(value);
      return kSuccess;
    }
    return kInvalidHandle;
  });
}

PTX_EMULATOR_API int cuMemPoolTrimTo(void*, size_t) { return kSuccess; }

PTX_EMULATOR_API int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    *data = std::malloc(bytes);
    if (*data == nullptr) return kOutOfMemory;
    state.memory.Register(*data, bytes);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuMemAllocHost_v2(void** data, size_t bytes) {
  return cuMemHostAlloc(data, bytes, 0);
}

PTX_EMULATOR_API int cuMemFreeHost(void* data) {
  return CallAlways([=](State& state) {
    if (!state.memory.Free(reinterpret_cast<uint64_t>(data))) {
      return state.Fail(kInvalidValue, "the pinned host memory to free is unknown");
    }
    std::free(data);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuMemHostRegister_v2(void* data, size_t bytes, unsigned) {
  return Call([=](State& state) {
    state.memory.Register(data, bytes);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuMemHostUnregister(void* data) {
  return CallAlways([=](State& state) {
    bool known = state.memory.Free(reinterpret_cast<uint64_t>(data));
    return known ? kSuccess : state.Fail(kInvalidValue, "the host memory is not registered");
  });
}

PTX_EMULATOR_API int cuPointerGetAttribute(void* data, int attribute, uint64_t address) {
  return Call([=](State& state) {
    Allocation* allocation = state.memory.Find(address, 1);
    if (allocation == nullptr) return kInvalidValue;
    bool host = allocation->kind == Allocation::Kind::kHost;
    switch (attribute) {
      case 1:  // CONTEXT
        *static_cast<void**>(data) = state.primary[allocation->device].get();
        return kSuccess;
      case 2:  // MEMORY_TYPE
        *static_cast<unsigned*>(data) = host ? 1 : 2;
        return kSuccess;
      case 3:  // DEVICE_POINTER
        *static_cast<uint64_t*>(data) = address;
        return kSuccess;
      case 8:  // IS_MANAGED
        *static_cast<unsigned*>(data) = 0;
        return kSuccess;
      case 9:  // DEVICE_ORDINAL
        *static_cast<int*>(data) = allocation->device;
        return kSuccess;
      case 11:  // RANGE_START_ADDR
        *static_cast<uint64_t*>(data) = allocation->base;
        return kSuccess;
      case 12:  // RANGE_SIZE
        *static_cast<size_t*>(data) = allocation->bytes;
        return kSuccess;
      default:
        return kNotSupported;
    }
  });
}

PTX_EMULATOR_API int cuPointerGetAttributes(unsigned count, int* attributes, void** data,
                                            uint64_t address) {
  for (unsigned i = 0; i < count; ++i) {
    int code = cuPointerGetAttribute(data[i], attributes[i], address);
    // Memory that the driver does not know has zeros.
    if (code == kInvalidValue && attributes[i] == 2) *static_cast<unsigned*>(data[i]) = 0;
    if (code != kSuccess && code != kInvalidValue) return code;
  }
  return kSuccess;
}
