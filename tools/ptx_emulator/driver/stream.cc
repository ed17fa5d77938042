// Streams and events. Operations run when they are issued, unless they are captured.

#include <chrono>

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

PTX_EMULATOR_API int cuStreamCreate(void** stream, unsigned) {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    auto created = std::make_shared<Stream>();
    created->device = state.CurrentDevice();
    *stream = state.Add(created);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

PTX_EMULATOR_API int cuStreamDestroy_v2(void* stream) {
  return CallAlways([=](State& state) {
    if (state.Find<Stream>(stream) == nullptr) {
      return state.Fail(kInvalidHandle, "the stream to destroy is unknown");
    }
    state.objects.erase(stream);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamSynchronize(void* stream) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    if (found == nullptr) return state.Fail(kInvalidHandle, "the stream is unknown or destroyed");
    if (found->capture != nullptr) {
      return state.Fail(kCaptureUnsupported, "cuStreamSynchronize of a stream in a capture");
    }
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamQuery(void* stream) { return cuStreamSynchronize(stream); }

PTX_EMULATOR_API int cuStreamGetCtx(void* stream, void** context) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    if (found == nullptr) return kInvalidHandle;
    *context = state.primary[found->device].get();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    auto waited = state.Find<Event>(event);
    if (found == nullptr || waited == nullptr) return kInvalidHandle;
    // A stream that waits for a captured one is captured as well.
    if (waited->capture != nullptr && found->capture == nullptr) found->capture = waited->capture;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuEventCreate(void** event, unsigned) {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    auto created = std::make_shared<Event>();
    created->device = state.CurrentDevice();
    *event = state.Add(created);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuEventDestroy_v2(void* event) {
  return CallAlways([=](State& state) {
    if (state.Find<Event>(event) == nullptr) return kInvalidHandle;
    state.objects.erase(event);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuEventRecord(void* event, void* stream) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    auto recorded = state.Find<Event>(event);
    if (found == nullptr || recorded == nullptr) return kInvalidHandle;
    recorded->capture = found->capture;
    recorded->recorded = true;
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    recorded->milliseconds = std::chrono::duration<double, std::milli>(now).count();
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuEventSynchronize(void* event) {
  return Call([=](State& state) {
    auto waited = state.Find<Event>(event);
    if (waited == nullptr) return kInvalidHandle;
    return waited->capture == nullptr ? kSuccess : kCaptureUnsupported;
  });
}

PTX_EMULATOR_API int cuEventQuery(void* event) { return cuEventSynchronize(event); }

PTX_EMULATOR_API int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return Call([=](State& state) {
    auto first = state.Find<Event>(start);
    auto last = state.Find<Event>(end);
    if (first == nullptr || last == nullptr || !first->recorded || !last->recorded) {
      return kInvalidHandle;
    }
    *milliseconds = static_cast<float>(last->milliseconds - first->milliseconds);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cuEventElapsedTime(milliseconds, start, end);
}
