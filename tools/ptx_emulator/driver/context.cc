// Primary contexts and the stack of current ones.

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

namespace {

bool IsContext(const State& state, const void* handle) {
  for (const auto& context : state.primary) {
    if (context.get() == handle && context->retained > 0) return true;
  }
  return false;
}

}  // namespace

PTX_EMULATOR_API int cuDevicePrimaryCtxRetain(void** context, int device) {
  return Call([=](State& state) {
    if (device < 0 || device >= state.devices) return kInvalidDevice;
    ++state.primary[device]->retained;
    *context = state.primary[device].get();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDevicePrimaryCtxRelease_v2(int device) {
  return CallAlways([=](State& state) {
    if (device < 0 || device >= state.devices) return kInvalidDevice;
    if (state.primary[device]->retained == 0) {
      return state.Fail(kInvalidContext, "a primary context is released that nobody has retained");
    }
    --state.primary[device]->retained;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuDevicePrimaryCtxRelease(int device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

PTX_EMULATOR_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return Call([=](State& state) {
    if (device < 0 || device >= state.devices) return kInvalidDevice;
    *flags = 0;
    *active = state.primary[device]->retained > 0;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxSetCurrent(void* context) {
  return CallAlways([=](State& state) {
    if (context != nullptr && !IsContext(state, context)) return kInvalidContext;
    if (ContextStack().empty()) ContextStack().push_back(nullptr);
    ContextStack().back() = static_cast<Context*>(context);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxGetCurrent(void** context) {
  return CallAlways([=](State&) {
    *context = ContextStack().empty() ? nullptr : ContextStack().back();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxPushCurrent_v2(void* context) {
  return CallAlways([=](State& state) {
    if (!IsContext(state, context)) return kInvalidContext;
    ContextStack().push_back(static_cast<Context*>(context));
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxPopCurrent_v2(void** context) {
  return CallAlways([=](State&) {
    if (ContextStack().empty()) return kInvalidContext;
    if (context != nullptr) *context = ContextStack().back();
    ContextStack().pop_back();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxGetDevice(int* device) {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    *device = state.CurrentDevice();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuCtxSynchronize() {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    return state.Capturing() ? kCaptureUnsupported : kSuccess;
  });
}
