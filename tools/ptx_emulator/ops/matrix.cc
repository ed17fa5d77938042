// ldmatrix and mma: how the elements of a matrix lie in the registers of a warp.

#include <algorithm>
#include <cstring>

#include "tools/ptx_emulator/exec/address.h"
#include "tools/ptx_emulator/ops/float8.h"
#include "tools/ptx_emulator/ops/matrix_shape.h"
#include "tools/ptx_emulator/ops/scalar.h"
#include "tools/ptx_emulator/ptx/decode.h"

namespace ptx_emulator {
namespace {

// Lanes 8k to 8k+7 have the addresses of the rows of matrix k.
void LoadMatrix(Warp& warp, const Instruction& in, uint32_t) {
  const uint64_t* base = warp.Row(in.address);
  bool transpose = in.detail != 0;
  for (size_t matrix = 0; matrix < in.vector.size(); ++matrix) {
    uint16_t elements[8][8];
    for (size_t row = 0; row < 8; ++row) {
      auto lane = static_cast<int>(matrix * 8 + row);
      uint64_t address = (base[lane] + static_cast<uint64_t>(in.offset)) & 0xFFFFFFFF;
      std::memcpy(elements[row],
                  ResolveShared(warp, in, lane, address, 16, SharedMemory::Access::kRead), 16);
    }
    uint64_t* d = warp.Row(in.vector[matrix]);
    for (int lane = 0; lane < kLanes; ++lane) {
      int row = lane / 4;
      int column = lane % 4 * 2;
      uint32_t low = transpose ? elements[column][row] : elements[row][column];
      uint32_t high = transpose ? elements[column + 1][row] : elements[row][column + 1];
      d[lane] = low | high << 16;
    }
  }
}

// The element of a register: `part` counts from its low bits.
template <typename Number>
Number Element(Type type, uint64_t word, int part) {
  switch (type) {
    case Type::kTf32:
      // What lies beyond the 10 bits of the fraction is not read.
      return static_cast<Number>(std::bit_cast<float>(static_cast<uint32_t>(word) & 0xFFFFE000));
    case Type::kBf16:
      return static_cast<Number>(FloatFromBfloat(static_cast<uint16_t>(word >> (16 * part))));
    case Type::kF16:
      return static_cast<Number>(FloatFromHalf(static_cast<uint16_t>(word >> (16 * part))));
    case Type::kS8:
      return static_cast<Number>(static_cast<int8_t>(word >> (8 * part)));
    case Type::kU8:
      return static_cast<Number>(static_cast<uint8_t>(word >> (8 * part)));
    case Type::kE4m3:
    case Type::kE5m2:
      return static_cast<Number>(
          FloatFromFloat8(static_cast<uint8_t>(word >> (8 * part)), type == Type::kE4m3));
    default:
      return static_cast<Number>(std::bit_cast<double>(word));
  }
}

// Integers are exact in double: |a * b| * 32 + |c| < 2^53.
void MultiplyMatrices(Warp& warp, const Instruction& in, uint32_t) {
  const auto shape = MatrixShape::Unpack(in.detail);
  double a[16][kMostDepth];
  double b[kMostDepth][8];
  double c[16][8];
  const int* rows = in.vector.data();
  const int* d_rows = rows;
  const int* a_rows = d_rows + shape.c_registers();
  const int* b_rows = a_rows + shape.a_registers();
  const int* c_rows = b_rows + shape.b_registers();
  int packed = shape.packed;
  bool half_sum = shape.sum == Type::kF16;
  for (int lane = 0; lane < kLanes; ++lane) {
    int group = lane / 4;
    int member = lane % 4;
    for (int i = 0; i < shape.a_registers(); ++i) {
      // Registers alternate between the upper and the lower 8 rows, if there are 16.
      int row = group + (shape.rows == 16 ? i % 2 * 8 : 0);
      int block = shape.rows == 16 ? i / 2 : i;
      for (int part = 0; part < packed; ++part) {
        a[row][block * 4 * packed + member * packed + part] =
            Element<double>(shape.a_type, warp.Row(a_rows[i])[lane], part);
      }
    }
    for (int i = 0; i < shape.b_registers(); ++i) {
      for (int part = 0; part < packed; ++part) {
        b[i * 4 * packed + member * packed + part][group] =
            Element<double>(shape.b_type, warp.Row(b_rows[i])[lane], part);
      }
    }
    for (int i = 0; i < shape.c_registers(); ++i) {
      uint64_t word = warp.Row(c_rows[i])[lane];
      if (half_sum) {
        for (int part = 0; part < 2; ++part) {
          c[group + i * 8][member * 2 + part] = Element<double>(Type::kF16, word, part);
        }
      } else {
        c[group + i / 2 * 8][member * 2 + i % 2] =
            shape.sum == Type::kS32   ? static_cast<double>(static_cast<int32_t>(word))
            : shape.sum == Type::kF64 ? std::bit_cast<double>(word)
                                      : static_cast<double>(Read<float>(word));
      }
    }
  }
  for (int row = 0; row < shape.rows; ++row) {
    double sum[8] = {};
    for (int k = 0; k < shape.depth; ++k) {
      for (int column = 0; column < 8; ++column) sum[column] += a[row][k] * b[k][column];
    }
    for (int column = 0; column < 8; ++column) c[row][column] += sum[column];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    int group = lane / 4;
    int member = lane % 4;
    for (int i = 0; i < shape.c_registers(); ++i) {
      uint64_t& word = warp.Row(d_rows[i])[lane];
      if (half_sum) {
        word = HalfBits(c[group + i * 8][member * 2]) |
               static_cast<uint32_t>(HalfBits(c[group + i * 8][member * 2 + 1])) << 16;
        continue;
      }
      double value = c[group + i / 2 * 8][member * 2 + i % 2];
      if (shape.sum == Type::kS32) {
        if (in.saturate) value = std::clamp(value, -2147483648.0, 2147483647.0);
        word = static_cast<uint32_t>(static_cast<int64_t>(value));
      } else if (shape.sum == Type::kF64) {
        word = Word<double>(value);
      } else {
        word = Word<float>(static_cast<float>(value));
      }
    }
  }
}

bool DecodeMultiply(const Statement& s, Instruction& in) {
  MatrixShape shape;
  if (!shape.Parse(s) || s.operands.size() != 4) return false;
  const int counts[] = {shape.c_registers(), shape.a_registers(), shape.b_registers(),
                        shape.c_registers()};
  for (size_t i = 0; i < 4; ++i) {
    const Operand& operand = s.operands[i];
    std::vector<int> rows =
        operand.kind == Operand::Kind::kVector ? operand.rows : std::vector<int>{operand.row};
    if (static_cast<int>(rows.size()) != counts[i]) return false;
    in.vector.insert(in.vector.end(), rows.begin(), rows.end());
  }
  in.detail = shape.Pack();
  in.run = MultiplyMatrices;
  in.flow = Flow::kCollective;
  return true;
}

}  // namespace

bool DecodeMatrix(const Statement& s, Instruction& in) {
  if (s.opcode == "mma" && s.Has("sync") && s.Has("aligned")) return DecodeMultiply(s, in);
  if (s.opcode != "ldmatrix" || !s.Has("sync") || !s.Has("m8n8") || s.operands.size() != 2) {
    return false;
  }
  if (!OnlyModifiers(
          s, {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"})) {
    return false;
  }
  size_t count = s.Has("x4") ? 4 : s.Has("x2") ? 2 : 1;
  const Operand& value = s.operands[0];
  in.vector = value.kind == Operand::Kind::kVector ? value.rows : std::vector<int>{value.row};
  in.address = s.operands[1].row;
  in.offset = s.operands[1].offset;
  in.detail = s.Has("trans") ? 1 : 0;
  in.flow = Flow::kCollective;
  in.run = LoadMatrix;
  return in.vector.size() == count && s.operands[1].kind == Operand::Kind::kAddress &&
         in.address >= 0 && in.type == Type::kB16;
}

}  // namespace ptx_emulator
