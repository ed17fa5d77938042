// Capture of streams, and graphs, which replay what was captured in its order.

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

PTX_EMULATOR_API int cuStreamBeginCapture_v2(void* stream, int mode) {
  return Call([=](State& state) {
    auto found = state.Find<Stream>(stream);
    if (found == nullptr) return kInvalidHandle;
    if (found->capture != nullptr) return kIllegalState;
    found->capture = std::make_shared<Graph>();
    found->capture->mode = mode;
    found->origin = true;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamEndCapture(void* stream, void** graph) {
  return Call([=](State& state) {
    auto found = state.Find<Stream>(stream);
    if (found == nullptr) return kInvalidHandle;
    if (found->capture == nullptr || !found->origin) return kIllegalState;
    std::shared_ptr<Graph> captured = found->capture;
    for (const auto& [handle, object] : state.objects) {
      auto* other = dynamic_cast<Stream*>(object.get());
      if (other != nullptr && other->capture == captured) {
        other->capture = nullptr;
        other->origin = false;
      }
      auto* event = dynamic_cast<Event*>(object.get());
      if (event != nullptr && event->capture == captured) event->capture = nullptr;
    }
    *graph = state.Add(captured);
    ++state.captures;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuStreamIsCapturing(void* stream, int* status) {
  return Call([=](State& state) {
    auto found = state.FindStream(stream);
    if (found == nullptr) return kInvalidHandle;
    *status = found->capture != nullptr ? 1 : 0;
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuGraphInstantiateWithFlags(void** executable, void* graph, uint64_t) {
  return Call([=](State& state) {
    auto found = state.Find<Graph>(graph);
    if (found == nullptr) return kInvalidHandle;
    auto created = std::make_shared<GraphExec>();
    created->operations = found->operations;
    *executable = state.Add(created);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuGraphInstantiate_v2(void** executable, void* graph, void**, char*, size_t) {
  return cuGraphInstantiateWithFlags(executable, graph, 0);
}

PTX_EMULATOR_API int cuGraphLaunch(void* executable, void* stream) {
  return Call([=](State& state) {
    auto found = state.Find<GraphExec>(executable);
    if (found == nullptr) return state.Fail(kInvalidHandle, "the graph is unknown or destroyed");
    ++state.graph_launches;
    return state.Enqueue(stream, [found] {
      for (const Operation& operation : found->operations) {
        if (int code = operation(); code != kSuccess) return code;
      }
      return kSuccess;
    });
  });
}

PTX_EMULATOR_API int cuGraphUpload(void* executable, void*) {
  return Call([=](State& state) {
    return state.Find<GraphExec>(executable) != nullptr ? kSuccess : kInvalidHandle;
  });
}

PTX_EMULATOR_API int cuGraphExecDestroy(void* executable) {
  return CallAlways([=](State& state) {
    if (state.Find<GraphExec>(executable) == nullptr) return kInvalidHandle;
    state.objects.erase(executable);
    return kSuccess;
  });
}

PTX_EMULATOR_API int cuGraphDestroy(void* graph) {
  return CallAlways([=](State& state) {
    if (state.Find<Graph>(graph) == nullptr) return kInvalidHandle;
    state.objects.erase(graph);
    return kSuccess;
  });
}
