// What stops a kernel, as the driver's error code and a text.

#ifndef PTX_EMULATOR_EXEC_REFUSAL_H_
#define PTX_EMULATOR_EXEC_REFUSAL_H_

#include <stdexcept>
#include <string>

namespace ptx_emulator {

// Values of CUresult.
inline constexpr int kInvalidValue = 1;
inline constexpr int kInvalidPtx = 218;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kAssert = 710;
inline constexpr int kMisalignedAddress = 716;
inline constexpr int kIllegalInstruction = 715;
inline constexpr int kLaunchFailed = 719;

class Refusal : public std::runtime_error {
 public:
  // `lane` is that of the warp which executes, or -1 for the warp as a whole.
  Refusal(int code, int lane, const std::string& what)
      : std::runtime_error(what), code(code), lane(lane) {}

  int code;
  int lane;
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_EXEC_REFUSAL_H_
