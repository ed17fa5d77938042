// Copies between the host and devices, and fills.

#include <cstring>
#include <sstream>

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

namespace {

// The bytes of device memory, or null after a message.
uint8_t* Bytes(State& state, const char* function, uint64_t address, uint64_t bytes) {
  Allocation* allocation = state.memory.Find(address, bytes);
  if (allocation != nullptr) return allocation->data + (address - allocation->base);
  std::ostringstream text;
  text << function << " of " << bytes << " bytes at 0x" << std::hex << address << ": "
       << state.memory.Describe(address);
  state.Fail(kInvalidValue, text.str());
  return nullptr;
}

int CopyIn(State& state, uint64_t to, const void* from, size_t bytes) {
  if (bytes == 0) return kSuccess;
  uint8_t* data = Bytes(state, "cuMemcpyHtoD", to, bytes);
  if (data == nullptr) return kInvalidValue;
  std::memcpy(data, from, bytes);
  return kSuccess;
}

int CopyOut(State& state, void* to, uint64_t from, size_t bytes) {
  if (bytes == 0) return kSuccess;
  const uint8_t* data = Bytes(state, "cuMemcpyDtoH", from, bytes);
  if (data == nullptr) return kInvalidValue;
  std::memcpy(to, data, bytes);
  return kSuccess;
}

int CopyWithin(State& state, uint64_t to, uint64_t from, size_t bytes) {
  if (bytes == 0) return kSuccess;
  uint8_t* target = Bytes(state, "cuMemcpyDtoD", to, bytes);
  if (target == nullptr) return kInvalidValue;
  const uint8_t* source = Bytes(state, "cuMemcpyDtoD", from, bytes);
  if (source == nullptr) return kInvalidValue;
  std::memmove(target, source, bytes);
  return kSuccess;
}

int Fill(State& state, uint64_t to, uint32_t value, size_t width, size_t count) {
  if (count == 0) return kSuccess;
  if (to % width != 0) return state.Fail(kInvalidValue, "cuMemset at a misaligned address");
  uint8_t* data = Bytes(state, "cuMemset", to, width * count);
  if (data == nullptr) return kInvalidValue;
  for (size_t i = 0; i < count; ++i) std::memcpy(data + i * width, &value, width);
  return kSuccess;
}

// What waits for the device is not allowed while a stream is captured.
template <typename Body>
int Wait(Body body) {
  return Call([=](State& state) {
    if (state.Capturing())
      return state.Fail(kCaptureUnsupported, "a copy that waits, in a capture");
    return body(state);
  });
}

}  // namespace

PTX_EMULATOR_API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  return Wait([=](State& state) { return CopyIn(state, to, from, bytes); });
}
PTX_EMULATOR_API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return Wait([=](State& state) { return CopyOut(state, to, from, bytes); });
}
PTX_EMULATOR_API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  return Wait([=](State& state) { return CopyWithin(state, to, from, bytes); });
}
PTX_EMULATOR_API int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count) {
  return Wait([=](State& state) { return Fill(state, to, value, 1, count); });
}
PTX_EMULATOR_API int cuMemsetD16_v2(uint64_t to, unsigned short value, size_t count) {
  return Wait([=](State& state) { return Fill(state, to, value, 2, count); });
}
PTX_EMULATOR_API int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count) {
  return Wait([=](State& state) { return Fill(state, to, value, 4, count); });
}

PTX_EMULATOR_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes,
                                          void* stream) {
  return Call([=](State& state) {
    return state.Enqueue(stream,
                         [&state, to, from, bytes] { return CopyIn(state, to, from, bytes); });
  });
}
PTX_EMULATOR_API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  return Call([=](State& state) {
    return state.Enqueue(stream,
                         [&state, to, from, bytes] { return CopyOut(state, to, from, bytes); });
  });
}
PTX_EMULATOR_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  return Call([=](State& state) {
    return state.Enqueue(stream,
                         [&state, to, from, bytes] { return CopyWithin(state, to, from, bytes); });
  });
}
PTX_EMULATOR_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void* stream) {
  return Call([=](State& state) {
    return state.Enqueue(stream,
                         [&state, to, value, count] { return Fill(state, to, value, 1, count); });
  });
}
PTX_EMULATOR_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream) {
  return Call([=](State& state) {
    return state.Enqueue(stream,
                         [&state, to, value, count] { return Fill(state, to, value, 4, count); });
  });
}
