// Runs AMX's instructions on a CPU without them: each one is an illegal instruction there, whose
// signal computes what the instruction would. It knows those that slim's kernels use.
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.)

#include "runtime/slim/tests/amx_emulator.h"

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

using std::int32_t;
using std::int64_t;
using std::int8_t;
using std::size_t;
using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

// A thread's tiles, and their shapes.
struct Tiles {
  bool configured = false;
  int rows[kTiles] = {}, row_bytes[kTiles] = {};
  alignas(64) uint8_t data[kTiles][kRows][kRowBytes] = {};
};
thread_local Tiles tiles;

std::atomic<int64_t> products{0};

template <typename T>
T Read(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void Write(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof(value));
}

// The instruction's fields. Numbers of registers have their fourth bit.
struct Instruction {
  int prefix;  // 0: none, 1: 66, 2: F3, 3: F2
  int opcode;
  int mod, reg, rm, vvvv;
  // Of an operand in memory.
  uint64_t address = 0;
  int64_t index = 0;  // shifted by the scale
  int length;
};

uint64_t Register(const ucontext_t& context, int number) {
  constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.uc_mcontext.gregs[kOrder[number]]);
}

// Whether `code` is an instruction with a prefix of three bytes from the map of AMX.
bool Decode(const uint8_t* code, const ucontext_t& context, Instruction& found) {
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2) return false;
  const int high_reg = (code[1] & 0x80) != 0 ? 0 : 8, high_index = (code[1] & 0x40) != 0 ? 0 : 8,
            high_rm = (code[1] & 0x20) != 0 ? 0 : 8;
  found.prefix = code[2] & 3;
  found.vvvv = ~(code[2] >> 3) & 15;
  found.opcode = code[3];
  const uint8_t modrm = code[4];
  found.mod = modrm >> 6;
  found.reg = (modrm >> 3 & 7) + high_reg;
  found.rm = (modrm & 7) + high_rm;
  const uint8_t* next = code + 5;
  if (found.mod != 3) {
    bool has_base = true;
    int base = found.rm;
    if ((modrm & 7) == 4) {
      const uint8_t sib = *next++;
      const int index = (sib >> 3 & 7) + high_index;
      base = (sib & 7) + high_rm;
      if (index != 4) {
        found.index = static_cast<int64_t>(Register(context, index)) * (1 << (sib >> 6));
      }
      has_base = !((sib & 7) == 5 && found.mod == 0);
    } else if ((modrm & 7) == 5 && found.mod == 0) {  // relative to the next instruction
      found.address = reinterpret_cast<uint64_t>(next + 4);
      has_base = false;
    }
    if (has_base) found.address += Register(context, base);
    if (found.mod == 1) {
      found.address += static_cast<uint64_t>(int64_t{static_cast<int8_t>(*next++)});
    } else if (found.mod == 2 || !has_base) {
      found.address += static_cast<uint64_t>(int64_t{Read<int32_t>(next)});
      next += 4;
    }
  }
  found.length = static_cast<int>(next - code);
  return true;
}

bool Configure(const uint8_t* from) {
  if (from[0] != 1) return false;
  tiles = Tiles{};
  tiles.configured = true;
  for (int t = 0; t < kTiles; ++t) {
    tiles.row_bytes[t] = Read<uint16_t>(from + 16 + 2 * t);
    tiles.rows[t] = from[48 + t];
    if (tiles.row_bytes[t] > kRowBytes || tiles.rows[t] > kRows) return false;
    if ((tiles.row_bytes[t] == 0) != (tiles.rows[t] == 0)) return false;
  }
  return true;
}

void Load(int tile, const uint8_t* from, int64_t step) {
  std::memset(tiles.data[tile], 0, sizeof(tiles.data[tile]));
  for (int row = 0; row < tiles.rows[tile]; ++row) {
    std::memcpy(tiles.data[tile][row], from + row * step,
                static_cast<size_t>(tiles.row_bytes[tile]));
  }
}

void Store(int tile, uint8_t* to, int64_t step) {
  for (int row = 0; row < tiles.rows[tile]; ++row) {
    std::memcpy(to + row * step, tiles.data[tile][row], static_cast<size_t>(tiles.row_bytes[tile]));
  }
}

// Subnormal numbers are zeros.
float FromBFloat16(const uint8_t* from) {
  const auto bits = Read<uint16_t>(from);
  const uint32_t wide = uint32_t{(bits & 0x7f80) == 0 ? uint16_t(bits & 0x8000) : bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// sums += left * right, of pairs of bfloat16: the first numbers of all pairs, then the second ones.
void MultiplyBFloat16(int sums, int left, int right) {
  const int pairs = tiles.rows[right];
  float b[2][kRows][kRowBytes / 4] = {};
  for (int k = 0; k < pairs; ++k) {
    for (int column = 0; column < tiles.row_bytes[sums] / 4; ++column) {
      for (int i = 0; i < 2; ++i) {
        b[i][k][column] = FromBFloat16(tiles.data[right][k] + 4 * column + 2 * i);
      }
    }
  }
  for (int row = 0; row < tiles.rows[sums]; ++row) {
    float found[2][kRowBytes / 4] = {};
    for (int k = 0; k < pairs; ++k) {
      for (int i = 0; i < 2; ++i) {
        const float a = FromBFloat16(tiles.data[left][row] + 4 * k + 2 * i);
        for (int column = 0; column < kRowBytes / 4; ++column) {
          found[i][column] += a * b[i][k][column];
        }
      }
    }
    for (int column = 0; column < tiles.row_bytes[sums] / 4; ++column) {
      uint8_t* sum = tiles.data[sums][row] + 4 * column;
      Write(Read<float>(sum) + (found[0][column] + found[1][column]), sum);
    }
  }
}

// The same of four numbers of 8 bits; `signed_left` and `signed_right` say which ones have a sign.
void MultiplyInt8(int sums, int left, int right, bool signed_left, bool signed_right) {
  const auto number = [](uint8_t bits, bool has_sign) {
    return has_sign ? int32_t{static_cast<int8_t>(bits)} : int32_t{bits};
  };
  for (int row = 0; row < tiles.rows[sums]; ++row) {
    for (int column = 0; column < tiles.row_bytes[sums] / 4; ++column) {
      uint8_t* to = tiles.data[sums][row] + 4 * column;
      auto sum = Read<uint32_t>(to);  // it wraps around
      for (int k = 0; k < tiles.row_bytes[left]; ++k) {
        sum += static_cast<uint32_t>(
            number(tiles.data[left][row][k], signed_left) *
            number(tiles.data[right][k / 4][4 * column + k % 4], signed_right));
      }
      Write(sum, to);
    }
  }
}

// Returns whether it is an instruction of AMX that a CPU would run.
bool Run(const Instruction& i) {
  auto* memory = reinterpret_cast<uint8_t*>(i.address);
  if (i.opcode == 0x49 && i.prefix == 0) {
    if (i.mod != 3) return i.reg == 0 && Configure(memory);
    tiles = Tiles{};
    return i.reg == 0 && i.rm == 0;
  }
  if (!tiles.configured || i.reg >= kTiles) return false;
  if (i.opcode == 0x49 && i.prefix == 3 && i.mod == 3) {
    std::memset(tiles.data[i.reg], 0, sizeof(tiles.data[i.reg]));
    return true;
  }
  if (i.opcode == 0x4b && i.mod != 3) {
    if (i.prefix == 2) {
      Store(i.reg, memory, i.index);
      return true;
    }
    if (i.prefix != 3) return false;
    Load(i.reg, memory, i.index);
    return true;
  }
  if (i.mod != 3 || i.rm >= kTiles || i.vvvv >= kTiles) return false;
  // The shapes must fit.
  if (tiles.rows[i.reg] != tiles.rows[i.rm] || tiles.row_bytes[i.reg] != tiles.row_bytes[i.vvvv] ||
      tiles.row_bytes[i.rm] / 4 != tiles.rows[i.vvvv]) {
    return false;
  }
  products.fetch_add(1, std::memory_order_relaxed);
  if (i.opcode == 0x5c && i.prefix == 2) {
    MultiplyBFloat16(i.reg, i.rm, i.vvvv);
    return true;
  }
  if (i.opcode != 0x5e) return false;
  MultiplyInt8(i.reg, i.rm, i.vvvv, i.prefix >= 2, (i.prefix & 1) != 0);
  return true;
}

void OnIllegalInstruction(int, siginfo_t*, void* given) {
  auto* context = static_cast<ucontext_t*>(given);
  auto& at = context->uc_mcontext.gregs[REG_RIP];
  Instruction instruction;
  if (Decode(reinterpret_cast<const uint8_t*>(at), *context, instruction) && Run(instruction)) {
    at += instruction.length;
    return;
  }
  signal(SIGILL, SIG_DFL);  // the instruction runs again, and ends the process
}

}  // namespace

void aoti_slim_test_emulate_amx() {
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, nullptr);
}

int64_t aoti_slim_test_emulated_products() { return products.load(); }

#else

void aoti_slim_test_emulate_amx() {}
std::int64_t aoti_slim_test_emulated_products() { return 0; }

#endif
