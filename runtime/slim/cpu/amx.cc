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

bool DetectAmxBFloat16() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kBFloat16 = 1U << 22, kTile = 1U << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kBFloat16) == 0 || (edx & kTile) == 0) return false;
  // From asm/prctl.h and asm/fpu/xcr.h, which older systems lack.
  constexpr int kRequestFeature = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestFeature, kTileData) == 0;
#else
  return false;
#endif
}

std::atomic<bool>& AmxBFloat16() {
  static std::atomic<bool> amx{DetectAmxBFloat16()};
  return amx;
}

}  // namespace

bool CurrentCpuHasAmxBFloat16() { return AmxBFloat16().load(std::memory_order_relaxed); }

}  // namespace aoti::slim

// For tests in other languages: 0 hides AMX, 1 restores the CPU's features.
extern "C" void aoti_slim_allow_amx(int allowed) {
  aoti::slim::AmxBFloat16().store(allowed != 0 && aoti::slim::DetectAmxBFloat16());
}
