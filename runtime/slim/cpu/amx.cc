// Linux gives AMX's registers only to processes that ask for them.

#include <atomic>

#include "runtime/slim/cpu/cpu.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace aoti::slim {
namespace {

// Bits of cpuid.
constexpr unsigned kBFloat16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25;

bool DetectAmx([[maybe_unused]] unsigned numbers) {
#if defined(__x86_64__) && defined(__linux__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & numbers) == 0 || (edx & kTile) == 0) return false;
  // From asm/prctl.h and asm/fpu/xcr.h, which older systems lack.
  constexpr int kRequestFeature = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestFeature, kTileData) == 0;
#else
  return false;
#endif
}

std::atomic<bool>& AmxBFloat16() {
  static std::atomic<bool> amx{DetectAmx(kBFloat16)};
  return amx;
}

std::atomic<bool>& AmxInt8() {
  static std::atomic<bool> amx{DetectAmx(kInt8)};
  return amx;
}

}  // namespace

bool CurrentCpuHasAmxBFloat16() { return AmxBFloat16().load(std::memory_order_relaxed); }

bool CurrentCpuHasAmxInt8() { return AmxInt8().load(std::memory_order_relaxed); }

}  // namespace aoti::slim

// For tests in other languages: 0 hides AMX, 1 restores the CPU's features, and 2 stands for a CPU
// that has it, whose instructions the test emulates.
extern "C" void aoti_slim_allow_amx(int allowed) {
  using namespace aoti::slim;
  AmxBFloat16().store(allowed != 0 && (DetectAmx(kBFloat16) || allowed == 2));
  AmxInt8().store(allowed != 0 && (DetectAmx(kInt8) || allowed == 2));
}
