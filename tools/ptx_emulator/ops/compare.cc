// setp, set and selp.

#include "tools/ptx_emulator/exec/warp.h"
#include "tools/ptx_emulator/ops/dispatch.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

// Comparisons as a set of outcomes: less, equal, greater, unordered.
constexpr int kLess = 1;
constexpr int kEqual = 2;
constexpr int kGreater = 4;
constexpr int kUnordered = 8;

int OutcomesNamed(const std::string& name, bool floating) {
  static constexpr std::pair<std::string_view, int> kNames[] = {
      {"eq", kEqual},
      {"ne", kLess | kGreater},
      {"lt", kLess},
      {"le", kLess | kEqual},
      {"gt", kGreater},
      {"ge", kGreater | kEqual},
      {"lo", kLess},
      {"ls", kLess | kEqual},
      {"hi", kGreater},
      {"hs", kGreater | kEqual},
      {"equ", kEqual | kUnordered},
      {"neu", kLess | kGreater | kUnordered},
      {"ltu", kLess | kUnordered},
      {"leu", kLess | kEqual | kUnordered},
      {"gtu", kGreater | kUnordered},
      {"geu", kGreater | kEqual | kUnordered},
      {"num", kLess | kEqual | kGreater},
      {"nan", kUnordered},
  };
  for (const auto& [known, outcomes] : kNames) {
    if (name != known) continue;
    bool only_floating = known.size() == 3;
    return only_floating && !floating ? 0 : outcomes;
  }
  return 0;
}

enum Combination { kAlone, kAnd, kOr, kXor };

// `detail`: the outcomes, and above them the combination with a predicate.
struct Compare {
  template <typename T>
  static void Run(Warp& warp, const Instruction& in, uint32_t mask) {
    uint64_t unused[kLanes];
    uint64_t* d = in.destination < 0 ? unused : warp.Row(in.destination);
    uint64_t* second = in.second < 0 ? nullptr : warp.Row(in.second);
    const uint64_t* a = warp.Row(in.source[0]);
    const uint64_t* b = warp.Row(in.source[1]);
    const uint64_t* c = in.source[2] < 0 ? nullptr : warp.Row(in.source[2]);
    auto outcomes = static_cast<int>(in.detail & 15);
    auto combination = static_cast<int>(in.detail >> 4);
    uint64_t flip = in.negated >> 2 & 1;
    auto outcome = [&in](uint64_t x_word, uint64_t y_word) -> int {
      if constexpr (std::is_integral_v<T>) {
        T x = Read<T>(x_word);
        T y = Read<T>(y_word);
        return x < y ? kLess : x == y ? kEqual : kGreater;
      } else {
        auto value = [&in](uint64_t word) {
          if constexpr (std::is_same_v<T, float>) {
            if (in.flush) return FlushSubnormal(Read<float>(word));
            return Read<float>(word);
          } else {
            return ToDouble(Read<T>(word));
          }
        };
        auto x = value(x_word);
        auto y = value(y_word);
        return x < y ? kLess : x == y ? kEqual : x > y ? kGreater : kUnordered;
      }
    };
    ForLanes(mask, [&](int i) {
      uint64_t result = (outcomes & outcome(a[i], b[i])) != 0;
      uint64_t opposite = result ^ 1;
      if (c != nullptr) {
        uint64_t other = (c[i] ^ flip) & 1;
        auto combine = [&](uint64_t x) {
          return combination == kAnd ? x & other : combination == kOr ? x | other : x ^ other;
        };
        result = combine(result);
        opposite = combine(opposite);
      }
      d[i] = result;
      if (second != nullptr) second[i] = opposite;
    });
  }
};

void Select(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  const uint64_t* c = warp.Row(in.source[2]);
  uint64_t flip = in.negated >> 2 & 1;
  ForLanes(mask, [=](int i) { d[i] = (c[i] ^ flip) & 1 ? a[i] : b[i]; });
}

}  // namespace

bool DecodeCompare(const Statement& s, Instruction& in) {
  if (s.types.size() != 1) return false;
  if (s.opcode == "selp") {
    in.run = Select;
    return OnlyModifiers(s, {}) && SimpleOperands(s, in, 3);
  }
  if (s.opcode != "setp" || s.modifiers.empty()) return false;
  in.detail = OutcomesNamed(s.modifiers[0], IsFloating(in.type));
  if (in.detail == 0) return false;
  if (!OnlyModifiers(s, {s.modifiers[0], "and", "or", "xor", "ftz"})) return false;
  bool combined = s.operands.size() == 4;
  if (combined) {
    int combination = s.Has("and") ? kAnd : s.Has("or") ? kOr : s.Has("xor") ? kXor : kAlone;
    if (combination == kAlone) return false;
    in.detail |= combination << 4;
  }
  in.second = s.bar;
  if (!SimpleOperands(s, in, combined ? 3 : 2)) return false;
  return SetFloatingHandler<Compare>(in) || SetIntegerHandler<Compare>(in) ||
         (Bytes(in.type) > 1 && SetBitsHandler<Compare>(in));
}

}  // namespace ptx_emulator
