// Kinds of steps of a call.

#ifndef BENCHMARKS_PROFILE_KINDS_H_
#define BENCHMARKS_PROFILE_KINDS_H_

#include <array>
#include <cstddef>
#include <string_view>

namespace aoti::benchmark {

enum class Kind { kProducts, kAttention, kLoops, kWaiting, kOther };

inline constexpr std::array<const char*, 5> kKindNames = {"products", "attention", "loops",
                                                          "waiting", "other"};

// The kind of a function, by the linker's name of it.
Kind KindOf(std::string_view function);

}  // namespace aoti::benchmark

#endif  // BENCHMARKS_PROFILE_KINDS_H_
