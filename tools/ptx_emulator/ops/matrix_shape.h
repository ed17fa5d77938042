// The shape and types of an mma instruction.

#ifndef PTX_EMULATOR_OPS_MATRIX_SHAPE_H_
#define PTX_EMULATOR_OPS_MATRIX_SHAPE_H_

#include <cstdio>

#include "tools/ptx_emulator/ptx/statement.h"

namespace ptx_emulator {

inline constexpr int kMostDepth = 32;

struct MatrixShape {
  int rows = 0;    // m; n is 8.
  int depth = 0;   // k
  int packed = 0;  // Elements of a and b in a register.
  Type sum = Type::kNone;
  Type a_type = Type::kNone;
  Type b_type = Type::kNone;

  int a_registers() const { return rows * depth / (32 * packed); }
  int b_registers() const { return depth / (4 * packed); }
  int c_registers() const { return rows / (sum == Type::kF16 ? 8 : 4); }

  // False if the statement is none of the known combinations.
  bool Parse(const Statement& s) {
    for (const std::string& modifier : s.modifiers) {
      int n = 0;
      if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &rows, &n, &depth) == 3 && n != 8)
        return false;
    }
    if (s.types.size() != 4 || !s.Has("row") || !s.Has("col")) return false;
    sum = s.types[0];
    a_type = s.types[1];
    b_type = s.types[2];
    if (s.types[3] != sum || depth == 0) return false;
    bool bytes = (a_type == Type::kS8 || a_type == Type::kU8) &&
                 (b_type == Type::kS8 || b_type == Type::kU8);
    bool float8 = (a_type == Type::kE4m3 || a_type == Type::kE5m2) &&
                  (b_type == Type::kE4m3 || b_type == Type::kE5m2);
    auto known = [&](int elements, bool sums, std::initializer_list<std::pair<int, int>> shapes) {
      packed = elements;
      if (!sums) return false;
      for (const auto& [m, k] : shapes) {
        if (rows == m && depth == k) return true;
      }
      return false;
    };
    bool single = sum == Type::kF32;
    if (bytes) return known(4, sum == Type::kS32, {{16, 32}, {16, 16}, {8, 16}});
    if (float8) return known(4, single, {{16, 32}, {16, 16}});
    if (a_type != b_type) return false;
    if (a_type == Type::kF16) {
      return known(2, single || sum == Type::kF16, {{16, 16}, {16, 8}});
    }
    if (a_type == Type::kBf16) return known(2, single, {{16, 16}, {16, 8}});
    if (a_type == Type::kTf32) return known(1, single, {{16, 8}, {16, 4}});
    return a_type == Type::kF64 &&
           known(1, sum == Type::kF64, {{8, 4}, {16, 4}, {16, 8}, {16, 16}});
  }

  int64_t Pack() const {
    return rows | depth << 8 | packed << 16 | static_cast<int64_t>(sum) << 24 |
           static_cast<int64_t>(a_type) << 32 | static_cast<int64_t>(b_type) << 40;
  }
  static MatrixShape Unpack(int64_t word) {
    MatrixShape shape;
    shape.rows = static_cast<int>(word & 0xFF);
    shape.depth = static_cast<int>(word >> 8 & 0xFF);
    shape.packed = static_cast<int>(word >> 16 & 0xFF);
    shape.sum = static_cast<Type>(word >> 24 & 0xFF);
    shape.a_type = static_cast<Type>(word >> 32 & 0xFF);
    shape.b_type = static_cast<Type>(word >> 40 & 0xFF);
    return shape;
  }
};

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_OPS_MATRIX_SHAPE_H_
