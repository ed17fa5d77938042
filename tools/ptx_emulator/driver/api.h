// The ABI of CUDA's driver library, as far as the emulator has it: own declarations, with the
// names under which the real library exports its functions.

#ifndef PTX_EMULATOR_DRIVER_API_H_
#define PTX_EMULATOR_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

#define PTX_EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace ptx_emulator {

// Values of CUresult besides those of exec/refusal.h.
inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNoBinaryForGpu = 209;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotFound = 500;
inline constexpr int kNotSupported = 801;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kIllegalState = 401;

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_DRIVER_API_H_
