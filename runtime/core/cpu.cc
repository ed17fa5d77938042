#include "runtime/core/cpu.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

// BEGIN runtime_isas: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
#elif defined(__aarch64__)
constexpr std::string_view kLevels[] = {"aarch64"};
#else
constexpr std::string_view kLevels[] = {""};
#endif
// END runtime_isas
constexpr std::size_t kUnknown = std::size(kLevels);

std::size_t g_pretended = kUnknown;

std::size_t LevelOf(std::string_view isa) {
  std::size_t level = 0;
  while (level < kUnknown && kLevels[level] != isa) ++level;
  return level;
}

// The features of a level that error messages name, and the whole level.
std::string MissingHere(std::size_t level) {
  std::string missing;
  [[maybe_unused]] const auto need = [&missing](bool there, std::string_view feature) {
    if (!there) missing += StrCat(missing.empty() ? "" : ", ", feature);
  };
  // BEGIN runtime_features: generated from toolchain/tables by ./bazelw run //tools/tables:update
#if defined(__x86_64__)
  if (level >= 1) {
    need(__builtin_cpu_supports("avx2"), "AVX2");
    need(__builtin_cpu_supports("fma"), "FMA");
    need(__builtin_cpu_supports("bmi"), "BMI1");
    need(__builtin_cpu_supports("bmi2"), "BMI2");
    if (missing.empty()) need(__builtin_cpu_supports("x86-64-v3"), "x86-64-v3");
  }
  if (level >= 2) {
    need(__builtin_cpu_supports("avx512f"), "AVX512F");
    need(__builtin_cpu_supports("avx512bw"), "AVX512BW");
    need(__builtin_cpu_supports("avx512cd"), "AVX512CD");
    need(__builtin_cpu_supports("avx512dq"), "AVX512DQ");
    need(__builtin_cpu_supports("avx512vl"), "AVX512VL");
    if (missing.empty()) need(__builtin_cpu_supports("x86-64-v4"), "x86-64-v4");
  }
#endif
  // END runtime_features
  return missing;
}

bool Has(const ProgramSpec& spec, DeviceType device) {
  return std::ranges::any_of(
      spec.variants, [device](const ProgramVariant& variant) { return variant.device == device; });
}

Error NotCompiledFor(const ProgramSpec& spec, DeviceType device) {
  std::string devices;
  for (const DeviceType there : {DeviceType::kCpu, DeviceType::kCuda}) {
    if (Has(spec, there)) devices += StrCat(devices.empty() ? "" : ", ", to_string(there));
  }
  return Error(ErrorCode::kInvalidArgument,
               StrCat(spec.name, ": can't be loaded for the device ", to_string(device),
                      ": the model was compiled for ", devices, ". Load it for that, or build ",
                      spec.label, " with devices = [\"cpu\", \"cuda\"]"));
}

}  // namespace

std::string MissingOf(std::string_view isa) {
  const std::size_t level = LevelOf(isa);
  if (level == kUnknown || (g_pretended != kUnknown && level > g_pretended)) {
    return std::string(isa);
  }
  return MissingHere(level);
}

Result<const ProgramVariant*> ChooseVariant(const ProgramSpec& spec,
                                            std::optional<DeviceType> device) {
  const DeviceType wanted =
      device.value_or(Has(spec, DeviceType::kCpu) ? DeviceType::kCpu : DeviceType::kCuda);
  if (!Has(spec, wanted)) return NotCompiledFor(spec, wanted);
  std::string needed;
  for (const ProgramVariant& variant : spec.variants) {
    if (variant.device != wanted) continue;
    const std::string missing = MissingOf(variant.isa);
    if (missing.empty()) return &variant;
    needed += StrCat(needed.empty() ? "" : "; ", variant.isa, " (the CPU lacks ", missing, ")");
  }
  return Error(
      ErrorCode::kUnsupportedCpu,
      StrCat(spec.name,
             ": this CPU has none of the instruction sets that the model was compiled for: ",
             needed, ". Use another machine, or build ", spec.label,
             " for a lower instruction set too: add it to isas, or leave isa out for any CPU"));
}

void PretendCpu(std::string_view isa) { g_pretended = LevelOf(isa); }

}  // namespace aoti::internal
