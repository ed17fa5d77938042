// Families of instructions against C++: each kernel stores the word that a thread computes.

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/tests/check.h"
#include "tools/ptx_emulator/tests/driver.h"

namespace ptx_emulator::testing {
namespace {

// %r1 of all threads, from words x and y of each thread in %r2 and %r3.
std::vector<uint32_t> Run(const std::string& body, const std::vector<uint32_t>& x,
                          const std::vector<uint32_t>& y, unsigned shared = 0) {
  Device device(
      Kernel("add.s64 %l1, %b, %i; ld.global.b32 %r2, [%l1];\n"
             "add.s64 %l2, %c, %i; ld.global.b32 %r3, [%l2];\n" +
             body + "\nadd.s64 %l3, %a, %i; st.global.b32 [%l3], %r1;"));
  uint64_t a = device.Allocate(x.size() * 4);
  CHECK_EQ(device.Launch(static_cast<unsigned>(x.size()), {a, device.Upload(x), device.Upload(y)},
                         shared),
           0);
  return device.Download<uint32_t>(a, x.size());
}

uint32_t One(const std::string& body, uint32_t x, uint32_t y = 0) { return Run(body, {x}, {y})[0]; }
uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
float OneFloat(const std::string& body, float x, float y = 0) {
  return std::bit_cast<float>(One(body, Bits(x), Bits(y)));
}

TEST(Integers) {
  CHECK_EQ(One("add.s32 %r1, %r2, %r3;", 0xFFFFFFFF, 2), 1u);
  CHECK_EQ(One("mul.hi.u32 %r1, %r2, %r3;", 0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFEu);
  CHECK_EQ(One("mul.hi.s32 %r1, %r2, %r3;", 0xFFFFFFFF, 3), 0xFFFFFFFFu);
  CHECK_EQ(One("div.s32 %r1, %r2, %r3;", static_cast<uint32_t>(-7), 2), static_cast<uint32_t>(-3));
  CHECK_EQ(One("rem.s32 %r1, %r2, %r3;", static_cast<uint32_t>(-7), 2), static_cast<uint32_t>(-1));
  CHECK_EQ(One("min.s32 %r1, %r2, %r3;", 0xFFFFFFFF, 1), 0xFFFFFFFFu);
  CHECK_EQ(One("min.u32 %r1, %r2, %r3;", 0xFFFFFFFF, 1), 1u);
  CHECK_EQ(One("mad.lo.cc.u32 %r4, %r2, 1, %r3; madc.hi.u32 %r1, %r2, 0, 5;", 0xFFFFFFFF, 1), 6u);
  CHECK_EQ(
      One("mul.wide.s32 %l4, %r2, %r3; shr.s64 %l4, %l4, 32; cvt.u32.u64 %r1, %l4;", 0xFFFFFFFF, 1),
      0xFFFFFFFFu);
}

TEST(BitOperations) {
  CHECK_EQ(One("shl.b32 %r1, %r2, %r3;", 1, 32), 0u);
  CHECK_EQ(One("shr.s32 %r1, %r2, %r3;", 0x80000000, 40), 0xFFFFFFFFu);
  CHECK_EQ(One("shf.l.wrap.b32 %r1, %r2, %r3, 8;", 0x12345678, 0x9ABCDEF0), 0xBCDEF012u);
  CHECK_EQ(One("shf.r.wrap.b32 %r1, %r2, %r3, 8;", 0x12345678, 0x9ABCDEF0), 0xF0123456u);
  CHECK_EQ(One("bfe.s32 %r1, %r2, 4, 4;", 0xF0), 0xFFFFFFFFu);
  CHECK_EQ(One("bfe.u32 %r1, %r2, 4, 4;", 0xF0), 15u);
  CHECK_EQ(One("bfi.b32 %r1, %r2, %r3, 8, 8;", 0xAB, 0x11223344), 0x1122AB44u);
  CHECK_EQ(One("prmt.b32 %r1, %r2, %r3, 0x7140;", 0x33221100, 0x77665544), 0x77114400u);
  CHECK_EQ(One("lop3.b32 %r1, %r2, %r3, 255, 0x96;", 0x0F, 0x3C), 0x0Fu ^ 0x3Cu ^ 255u);
  CHECK_EQ(One("popc.b32 %r1, %r2;", 0xF0F0), 8u);
  CHECK_EQ(One("clz.b32 %r1, %r2;", 1), 31u);
  CHECK_EQ(One("brev.b32 %r1, %r2;", 1), 0x80000000u);
}

TEST(FloatingPoint) {
  // One rounding: the product alone is not representable.
  float x = 1.0f + std::ldexp(1.0f, -12);
  CHECK_EQ(OneFloat("fma.rn.f32 %r1, %r2, %r2, %r3;", x, -1.0f), std::fma(x, x, -1.0f));
  CHECK_EQ(OneFloat("fma.rp.f32 %r1, %r2, %r2, %r3;", x, 1.0f),
           std::nextafter(std::fma(x, x, 1.0f), 3.0f));
  CHECK_EQ(OneFloat("add.rp.f32 %r1, %r2, %r3;", 1.0f, 1e-20f), std::nextafter(1.0f, 2.0f));
  CHECK_EQ(OneFloat("add.rm.f32 %r1, %r2, %r3;", 1.0f, -1e-20f), std::nextafter(1.0f, 0.0f));
  CHECK_EQ(OneFloat("add.sat.f32 %r1, %r2, %r3;", 1.0f, 1.0f), 1.0f);
  CHECK_EQ(OneFloat("mul.ftz.f32 %r1, %r2, %r3;", 1e-30f, 1e-10f), 0.0f);
  CHECK_TRUE(OneFloat("mul.f32 %r1, %r2, %r3;", 1e-30f, 1e-10f) > 0);
  float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_EQ(OneFloat("max.f32 %r1, %r2, %r3;", nan, 1.0f), 1.0f);
  CHECK_EQ(One("max.NaN.f32 %r1, %r2, %r3;", Bits(nan), Bits(1.0f)), 0x7FFFFFFFu);
  CHECK_EQ(One("min.f32 %r1, %r2, %r3;", Bits(0.0f), Bits(-0.0f)), Bits(-0.0f));
  CHECK_EQ(OneFloat("ex2.approx.f32 %r1, %r2;", 3.0f), 8.0f);
  CHECK_EQ(OneFloat("lg2.approx.f32 %r1, %r2;", 8.0f), 3.0f);
  CHECK_EQ(OneFloat("sqrt.rn.f32 %r1, %r2;", 2.0f), std::sqrt(2.0f));
  CHECK_EQ(OneFloat("rsqrt.approx.f32 %r1, %r2;", 4.0f), 0.5f);
  CHECK_EQ(OneFloat("div.rn.f32 %r1, %r2, %r3;", 1.0f, 3.0f), 1.0f / 3.0f);
}

TEST(Comparisons) {
  std::string select = " selp.b32 %r1, 1, 0, %p1;";
  float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_EQ(One("setp.lt.s32 %p1, %r2, %r3;" + select, 0xFFFFFFFF, 0), 1u);
  CHECK_EQ(One("setp.lt.u32 %p1, %r2, %r3;" + select, 0xFFFFFFFF, 0), 0u);
  CHECK_EQ(One("setp.lt.f32 %p1, %r2, %r3;" + select, Bits(nan), 0), 0u);
  CHECK_EQ(One("setp.ltu.f32 %p1, %r2, %r3;" + select, Bits(nan), 0), 1u);
  CHECK_EQ(One("setp.ne.f32 %p1, %r2, %r3;" + select, Bits(nan), 0), 0u);
  CHECK_EQ(One("setp.eq.u32 %p2, 1, 1; setp.eq.and.u32 %p1, %r2, %r3, !%p2;" + select, 5, 5), 0u);
  CHECK_EQ(One("setp.eq.u32 %p2|%p1, %r2, %r3;" + select, 5, 6), 1u);
}

TEST(Conversions) {
  CHECK_EQ(One("cvt.rni.s32.f32 %r1, %r2;", Bits(2.5f)), 2u);
  CHECK_EQ(One("cvt.rzi.s32.f32 %r1, %r2;", Bits(-2.9f)), static_cast<uint32_t>(-2));
  CHECK_EQ(One("cvt.rmi.s32.f32 %r1, %r2;", Bits(-2.1f)), static_cast<uint32_t>(-3));
  CHECK_EQ(One("cvt.rzi.u32.f32 %r1, %r2;", Bits(-1.0f)), 0u);
  CHECK_EQ(One("cvt.rzi.s32.f32 %r1, %r2;", Bits(1e20f)), 0x7FFFFFFFu);
  CHECK_EQ(OneFloat("cvt.rpi.f32.f32 %r1, %r2;", 2.1f), 3.0f);
  CHECK_EQ(One("cvt.s32.s8 %r1, %r2;", 0x80), 0xFFFFFF80u);
  // Halfway cases go to the even number.
  CHECK_EQ(One("cvt.rn.f16.f32 %h1, %r2; mov.b32 %r1, {%h1, 0};", Bits(2049.0f)), 0x6800u);
  CHECK_EQ(One("cvt.rn.f16.f32 %h1, %r2; mov.b32 %r1, {%h1, 0};", Bits(2051.0f)), 0x6802u);
  CHECK_EQ(One("cvt.rn.f16.f32 %h1, %r2; mov.b32 %r1, {%h1, 0};", Bits(65520.0f)), 0x7C00u);
  CHECK_EQ(One("cvt.rz.f16.f32 %h1, %r2; mov.b32 %r1, {%h1, 0};", Bits(65520.0f)), 0x7BFFu);
  CHECK_EQ(One("cvt.rn.f16.f32 %h1, %r2; mov.b32 %r1, {%h1, 0};", Bits(6e-8f)), 1u);
  CHECK_EQ(One("cvt.rn.bf16x2.f32 %r1, %r2, %r3;", Bits(1.0f), Bits(-2.0f)), 0x3F80C000u);
  CHECK_EQ(One("cvt.rn.f16x2.f32 %r1, %r2, %r3;", Bits(1.0f), Bits(-2.0f)), 0x3C00C000u);
  CHECK_EQ(One("cvt.rna.tf32.f32 %r1, %r2;", 0x3F801000), 0x3F802000u);
}

std::vector<uint32_t> Lanes(uint32_t count, uint32_t factor = 1, uint32_t term = 0) {
  std::vector<uint32_t> values(count);
  for (uint32_t i = 0; i < count; ++i) values[i] = i * factor + term;
  return values;
}

TEST(ShufflesAndVotes) {
  auto x = Lanes(32, 10);
  auto result = Run("shfl.sync.bfly.b32 %r1, %r2, 3, 31, -1;", x, x);
  CHECK_EQ(result[5], 60u);
  result = Run("shfl.sync.up.b32 %r1|%p1, %r2, 2, 0, -1; @!%p1 mov.b32 %r1, 999;", x, x);
  CHECK_EQ(result[0], 999u);
  CHECK_EQ(result[2], 0u);
  CHECK_EQ(Run("shfl.sync.idx.b32 %r1, %r2, 7, 31, -1;", x, x)[31], 70u);
  CHECK_EQ(Run("setp.gt.u32 %p1, %r2, 299; vote.sync.ballot.b32 %r1, %p1, -1;", x, x)[0],
           0xC0000000u);
  CHECK_EQ(Run("redux.sync.add.s32 %r1, %r2, -1;", x, x)[9], 4960u);
}

TEST(LanesPartAndMeet) {
  // Odd lanes loop as often as their number says; then all take part in a shuffle.
  auto x = Lanes(32);
  auto result =
      Run("mov.b32 %r1, 0; and.b32 %r4, %r2, 1; setp.eq.u32 %p1, %r4, 0;\n@%p1 bra DONE;\n"
          "mov.b32 %r5, %r2;\nLOOP: add.u32 %r1, %r1, %r2; sub.u32 %r5, %r5, 1;\n"
          "setp.ne.u32 %p2, %r5, 0;\n@%p2 bra LOOP;\nDONE: shfl.sync.bfly.b32 %r1, %r1, 1, 31, -1;",
          x, x);
  for (uint32_t i = 0; i < 32; i += 2) CHECK_EQ(result[i], (i + 1) * (i + 1));
}

TEST(Atomics) {
  Device device(
      Kernel("atom.global.add.f32 %r1, [%a], 0f3F800000; atom.global.max.s32 %r2, "
             "[%b], %t;\natom.global.cas.b32 %r3, [%c], 0, %t;"));
  uint64_t a = device.Upload(std::vector<float>{0.5f});
  uint64_t b = device.Upload(std::vector<int>{-5});
  uint64_t c = device.Upload(std::vector<int>{0});
  CHECK_EQ(device.Launch(64, {a, b, c}), 0);
  CHECK_EQ(device.Download<float>(a, 1)[0], 64.5f);
  CHECK_EQ(device.Download<int>(b, 1)[0], 63);
  CHECK_EQ(device.Download<int>(c, 1)[0], 1);
}

// a[i][k] = i + k with 16 rows, b[k][j] = j == k, so the product is a's left part.
TEST(MatrixProducts) {
  auto half = [](int value) -> uint32_t {
    if (value == 0) return 0;
    int exponent = std::ilogb(value);
    return static_cast<uint32_t>((exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3FF));
  };
  Device device(
      Kernel("mul.wide.u32 %l1, %t, 16; add.s64 %l2, %b, %l1;\n"
             "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%l2];\n"
             "mul.wide.u32 %l3, %t, 8; add.s64 %l4, %c, %l3;\n"
             "ld.global.v2.b32 {%r5, %r6}, [%l4]; mov.b32 %r7, 0;\n"
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, "
             "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r7, %r7, %r7};\n"
             "add.s64 %l5, %a, %l1; st.global.v4.b32 [%l5], {%r10, %r11, %r12, %r13};"));
  std::vector<uint32_t> a;
  std::vector<uint32_t> b;
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane / 4;
    int member = lane % 4;
    for (int i = 0; i < 4; ++i) {
      int row = group + i % 2 * 8;
      int k = member * 2 + i / 2 * 8;
      a.push_back(half(row + k) | half(row + k + 1) << 16);
    }
    for (int i = 0; i < 2; ++i) {
      int k = member * 2 + i * 8;
      b.push_back(half(k == group) | half(k + 1 == group) << 16);
    }
  }
  uint64_t result = device.Allocate(32 * 16);
  CHECK_EQ(device.Launch(32, {result, device.Upload(a), device.Upload(b)}), 0);
  auto d = device.Download<float>(result, 128);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      int row = lane / 4 + i / 2 * 8;
      int column = lane % 4 * 2 + i % 2;
      CHECK_EQ(d[static_cast<size_t>(lane * 4 + i)], static_cast<float>(row + column));
    }
  }
}

TEST(MatricesOfSharedMemory) {
  // Row r of the 8 x 8 matrix has 10 r + c; without and with transposition.
  auto x = Lanes(32);
  std::string body =
      "mov.b32 %r4, smem; shl.b32 %r5, %r2, 2; add.u32 %r5, %r4, %r5;\n"
      "shr.u32 %r6, %r2, 2; mul.lo.u32 %r6, %r6, 10; and.b32 %r7, %r2, 3; shl.b32 %r7, %r7, 1;\n"
      "add.u32 %r6, %r6, %r7; add.u32 %r7, %r6, 1; shl.b32 %r7, %r7, 16; or.b32 %r6, %r6, %r7;\n"
      "st.shared.b32 [%r5], %r6; bar.warp.sync -1;\n"
      "and.b32 %r8, %r2, 7; shl.b32 %r8, %r8, 4; add.u32 %r8, %r4, %r8;\n";
  auto plain = Run(body + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r8];", x, x, 128);
  CHECK_EQ(plain[5], 12u | 13u << 16);
  auto turned =
      Run(body + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r8];", x, x, 128);
  CHECK_EQ(turned[5], 21u | 31u << 16);
}

}  // namespace
}  // namespace ptx_emulator::testing

int main() { return aoti::testing::RunAllTests(); }
