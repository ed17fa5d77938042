// Limits of devices.

#ifndef PTX_EMULATOR_DRIVER_DEVICE_LIMITS_H_
#define PTX_EMULATOR_DRIVER_DEVICE_LIMITS_H_

#include <cstdint>

namespace ptx_emulator {

// Shared memory of a block that a function may have without asking for more.
inline constexpr int kDefaultSharedBytes = 48 * 1024;

// Shared memory of a block that a function may ask for.
int64_t MostSharedBytes(int arch);

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_DRIVER_DEVICE_LIMITS_H_
