// Exchange between the lanes of a warp: shfl, vote, redux, match, activemask.

#include <algorithm>
#include <array>

#include "tools/ptx_emulator/exec/launch.h"
#include "tools/ptx_emulator/ops/spaces.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

enum ShuffleKind { kUp, kDown, kButterfly, kIndex };

void Shuffle(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  uint64_t* in_range = in.second < 0 ? nullptr : warp.Row(in.second);
  const uint64_t* a = warp.Row(in.source[0]);
  const uint64_t* b = warp.Row(in.source[1]);
  const uint64_t* c = warp.Row(in.source[2]);
  std::array<uint64_t, kLanes> values;
  std::copy_n(a, kLanes, values.begin());
  ForLanes(mask, [&](int lane) {
    auto by = static_cast<int>(b[lane] & 31);
    auto clamp = static_cast<int>(c[lane] & 31);
    auto segments = static_cast<int>(c[lane] >> 8 & 31);
    int last = (lane & segments) | (clamp & ~segments);
    int first = lane & segments;
    int from = 0;
    bool valid = false;
    switch (in.detail) {
      case kUp:
        from = lane - by;
        valid = from >= last;
        break;
      case kDown:
        from = lane + by;
        valid = from <= last;
        break;
      case kButterfly:
        from = lane ^ by;
        valid = from <= last;
        break;
      default:
        from = first | (by & ~segments);
        valid = from <= last;
        break;
    }
    if (!valid) from = lane;
    if (!(mask >> from & 1)) {
      throw Refusal(kIllegalInstruction, lane,
                    "the value of lane " + std::to_string(from) +
                        " is read, which does not take part in the shuffle");
    }
    d[lane] = static_cast<uint32_t>(values[from]);
    if (in_range != nullptr) in_range[lane] = valid;
  });
}

enum VoteKind { kBallot, kAll, kAny, kUniform };

void Vote(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* a = warp.Row(in.source[0]);
  uint64_t flip = in.negated & 1;
  uint32_t set = 0;
  ForLanes(mask, [&](int i) { set |= static_cast<uint32_t>((a[i] ^ flip) & 1) << i; });
  uint64_t result = in.detail == kBallot ? set
                    : in.detail == kAll  ? set == mask
                    : in.detail == kAny  ? set != 0
                                         : set == mask || set == 0;
  uint64_t* d = warp.Row(in.destination);
  ForLanes(mask, [&](int i) { d[i] = result; });
}

enum ReduceKind { kAdd, kMinimum, kMaximum, kAnd, kOr, kXor };

void Reduce(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* a = warp.Row(in.source[0]);
  bool first = true;
  uint32_t result = 0;
  ForLanes(mask, [&](int i) {
    auto value = static_cast<uint32_t>(a[i]);
    bool less = IsSigned(in.type) ? static_cast<int32_t>(value) < static_cast<int32_t>(result)
                                  : value < result;
    if (first) {
      result = value;
    } else if (in.detail == kAdd) {
      result += value;
    } else if (in.detail == kMinimum) {
      result = less ? value : result;
    } else if (in.detail == kMaximum) {
      result = less ? result : value;
    } else if (in.detail == kAnd) {
      result &= value;
    } else if (in.detail == kOr) {
      result |= value;
    } else {
      result ^= value;
    }
    first = false;
  });
  uint64_t* d = warp.Row(in.destination);
  ForLanes(mask, [&](int i) { d[i] = result; });
}

// match.any: which lanes have the same value.
void Match(Warp& warp, const Instruction& in, uint32_t mask) {
  const uint64_t* a = warp.Row(in.source[0]);
  uint64_t width = Bytes(in.type) == 8 ? ~0ull : 0xFFFFFFFF;
  std::array<uint32_t, kLanes> same{};
  ForLanes(mask, [&](int i) {
    ForLanes(mask, [&](int j) {
      if ((a[i] & width) == (a[j] & width)) same[i] |= 1u << j;
    });
  });
  uint64_t* d = warp.Row(in.destination);
  ForLanes(mask, [&](int i) { d[i] = same[i]; });
}

void ActiveMask(Warp& warp, const Instruction& in, uint32_t mask) {
  uint64_t* d = warp.Row(in.destination);
  ForLanes(mask, [&](int i) { d[i] = mask; });
}

void Elect(Warp& warp, const Instruction& in, uint32_t mask) {
  int leader = std::countr_zero(mask);
  ForLanes(mask, [&](int i) {
    if (in.destination >= 0) warp.Row(in.destination)[i] = static_cast<uint64_t>(leader);
    if (in.second >= 0) warp.Row(in.second)[i] = i == leader;
  });
}

// The last operand names the lanes that take part.
bool Collective(const Statement& s, Instruction& in, int sources) {
  if (!SimpleOperands(s, in, sources + 1)) return false;
  in.flow = Flow::kCollective;
  in.source[4] = in.source[sources];
  in.source[sources] = -1;
  return true;
}

template <size_t n>
bool KindOf(const Statement& s, Instruction& in, const std::string_view (&names)[n]) {
  for (size_t i = 0; i < n; ++i) {
    if (!s.Has(names[i])) continue;
    in.detail = static_cast<int64_t>(i);
    return true;
  }
  return false;
}

}  // namespace

bool DecodeWarp(const Statement& s, Instruction& in) {
  if (s.opcode == "activemask") {
    in.run = ActiveMask;
    return SimpleOperands(s, in, 0);
  }
  if (!s.Has("sync")) return false;
  if (s.opcode == "shfl") {
    static constexpr std::string_view kNames[] = {"up", "down", "bfly", "idx"};
    in.run = Shuffle;
    in.second = s.bar;
    return KindOf(s, in, kNames) && Collective(s, in, 3);
  }
  if (s.opcode == "vote") {
    static constexpr std::string_view kNames[] = {"ballot", "all", "any", "uni"};
    in.run = Vote;
    return KindOf(s, in, kNames) && Collective(s, in, 1);
  }
  if (s.opcode == "redux") {
    static constexpr std::string_view kNames[] = {"add", "min", "max", "and", "or", "xor"};
    in.run = Reduce;
    return KindOf(s, in, kNames) && Bytes(in.type) == 4 && !IsFloating(in.type) &&
           Collective(s, in, 1);
  }
  if (s.opcode == "match" && s.Has("any")) {
    in.run = Match;
    return Collective(s, in, 1);
  }
  if (s.opcode == "elect") {
    in.run = Elect;
    in.second = s.bar;
    return Collective(s, in, 0);
  }
  return false;
}

}  // namespace ptx_emulator
