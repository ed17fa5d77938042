// Each refusal of a kernel: its code, and a text that says where it is.

#include "runtime/tests/check.h"
#include "tools/ptx_emulator/tests/driver.h"

namespace ptx_emulator::testing {
namespace {

// Launches the body with `threads` threads, and returns what the emulator says. `memory` is an
// allocation of 64 bytes in %a; %b is one that has been freed, and %c one of 20 bytes.
struct Outcome {
  int code = 0;
  std::string text;
  bool Says(const std::string& part) const {
    if (text.find(part) != std::string::npos) return true;
    std::cerr << "not said: " << part << "\n    but: " << text << std::endl;
    return false;
  }
};

Outcome Run(const std::string& body, unsigned threads = 1, unsigned shared = 0) {
  Device device(Kernel(body));
  uint64_t memory = device.Upload(std::vector<uint32_t>(16, 7));
  uint64_t freed = device.Allocate(64);
  device.Free(freed);
  Outcome outcome;
  uint64_t small = device.Upload(std::vector<uint32_t>(5, 7));
  outcome.code = device.Launch(threads, {memory, freed, small}, shared);
  if (outcome.code != 0) outcome.text = ptx_emulator_last_failure();
  // What follows in the same context fails as well, until the test mends it.
  if (outcome.code != 0 && outcome.code != 1) {
    CHECK_EQ(cuCtxSynchronize(), outcome.code);
  }
  CHECK_EQ(ptx_emulator_take_failures(), outcome.code == 0 ? 0u : 1u);
  return outcome;
}

TEST(NothingIsRefusedInOrder) {
  CHECK_EQ(Run("ld.global.b32 %r1, [%a+60]; st.global.b32 [%a], %r1;").code, 0);
}

TEST(AccessesOutOfRange) {
  Outcome outcome = Run("mov.b32 %r1, 1;\nst.global.b32 [%a+64], %r1;");
  CHECK_EQ(outcome.code, 700);
  CHECK_TRUE(outcome.Says("kernel k, line"));
  CHECK_TRUE(
      outcome.Says("(st.global.b32 [ %a + 64 ], %r1), block 0,0,0, thread 0,0,0: illegal access "
                   "of 4 bytes"));
  CHECK_TRUE(outcome.Says("0 bytes after the end of the allocation of 64 bytes"));
  CHECK_TRUE(Run("ld.global.b32 %r1, [%a-4];").Says("4 bytes before the allocation of 64 bytes"));
  // Only the last of the threads is out of range.
  CHECK_TRUE(Run("add.s64 %l1, %a, %i; ld.global.b32 %r1, [%l1];", 17).Says("thread 16,0,0"));
  // The end of a vector.
  CHECK_EQ(Run("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%a+48];").code, 0);
  CHECK_EQ(Run("ld.global.v2.b64 {%l1, %l2}, [%a+64];").code, 700);
  // It begins inside and ends outside.
  CHECK_EQ(Run("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%c];").code, 0);
  CHECK_EQ(Run("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%c+16];").code, 700);
  CHECK_EQ(Run("mov.b64 %l1, 0; st.global.b64 [%c+16], %l1;").code, 700);
  CHECK_EQ(Run("mov.b64 %l1, 0; ld.global.b32 %r1, [%l1];").code, 700);
  CHECK_EQ(Run("atom.global.add.u32 %r1, [%a+64], 1;").code, 700);
}

TEST(GuardedLanesAccessNothing) {
  CHECK_EQ(
      Run("setp.lt.u32 %p1, %t, 16; add.s64 %l1, %a, %i;\n@%p1 ld.global.b32 %r1, [%l1];", 32).code,
      0);
}

TEST(MisalignedAccesses) {
  Outcome outcome = Run("ld.global.b32 %r1, [%a+2];");
  CHECK_EQ(outcome.code, 716);
  CHECK_TRUE(outcome.Says("misaligned access of 4 bytes"));
  CHECK_TRUE(outcome.Says("expected a multiple of 4"));
  CHECK_EQ(Run("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%a+8];").code, 716);
}

TEST(UseAfterFree) {
  Outcome outcome = Run("ld.global.b32 %r1, [%b];");
  CHECK_EQ(outcome.code, 700);
  CHECK_TRUE(outcome.Says("at byte 0 of the freed allocation of 64 bytes"));
}

TEST(SharedMemoryIsAsLargeAsLaunched) {
  const char* body = "mov.b32 %r1, smem;\nst.shared.b32 [%r1+28], %r1;";
  CHECK_EQ(Run(body, 1, 32).code, 0);
  Outcome outcome = Run(body, 1, 16);
  CHECK_EQ(outcome.code, 700);
  CHECK_TRUE(
      outcome.Says("illegal access of 4 bytes at 0x1c of shared memory: the block has 16 bytes"));
  outcome = Run(body, 1, 49153);
  CHECK_EQ(outcome.code, 1);
  CHECK_TRUE(
      outcome.Says("kernel k: 49153 bytes of dynamic shared memory; cuFuncSetAttribute allows"));
}

TEST(SharedMemoryThatNothingHasWritten) {
  CHECK_TRUE(Run("mov.b32 %r1, smem;\nld.shared.b32 %r2, [%r1];", 1, 32)
                 .Says("shared memory that nothing has written"));
}

// Each thread writes a word, and reads that of the thread 32 further.
const char* const kExchange =
    "mov.b32 %r1, smem; cvt.u32.u64 %r2, %i; add.u32 %r3, %r1, %r2;\n"
    "st.shared.b32 [%r3], %t;\n$BARRIER$"
    "xor.b32 %r4, %r2, 128; add.u32 %r4, %r4, %r1; ld.shared.b32 %r5, [%r4];";

std::string Exchange(const std::string& barrier) {
  std::string body = kExchange;
  return body.replace(body.find("$BARRIER$"), 9, barrier);
}

TEST(MissingBarriers) {
  CHECK_EQ(Run(Exchange("bar.sync 0;"), 64, 256).code, 0);
  Outcome outcome = Run(Exchange(""), 64, 256);
  CHECK_EQ(outcome.code, 719);
  // The first warp reads what the second has not written yet.
  CHECK_TRUE(outcome.Says("nothing has written"));
  // A write after a read: the second warp writes what the first one has read.
  outcome =
      Run("mov.b32 %r1, smem; setp.lt.u32 %p1, %t, 32;\n@%p1 st.shared.b32 [%r1], %t;\n"
          "bar.sync 0;\nld.shared.b32 %r2, [%r1];\n@!%p1 st.shared.b32 [%r1], %t;",
          64, 32);
  CHECK_EQ(outcome.code, 719);
  CHECK_TRUE(outcome.Says("read by warp 0 at line 22, with no barrier between"));
  CHECK_EQ(Run(Exchange("bar.sync 0;") + "\nbar.sync 0;\nst.shared.b32 [%r3], %t;", 64, 256).code,
           0);
  // A write after a write, and a read after one.
  // Warps may write the same value.
  CHECK_EQ(Run("mov.b32 %r1, smem;\nst.shared.b32 [%r1], 5;", 64, 32).code, 0);
  const char* same = "mov.b32 %r1, smem;\nst.shared.b32 [%r1], %t;";
  CHECK_TRUE(Run(same, 64, 32).Says("written by warp 0 at line"));
  CHECK_EQ(Run(same, 32, 32).code, 0);
  CHECK_TRUE(Run("mov.b32 %r1, smem; setp.lt.u32 %p1, %t, 32;\n@%p1 st.shared.b32 [%r1], %t;\n"
                 "ld.shared.b32 %r2, [%r1];",
                 64, 32)
                 .Says("written by warp 0 at line"));
  // Atomic operations need none.
  CHECK_EQ(Run("mov.b32 %r1, smem; setp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.b32 [%r1], 0;\n"
               "bar.sync 0;\natom.shared.add.u32 %r2, [%r1], 1;",
               64, 32)
               .code,
           0);
}

TEST(BarriersThatWaitForEver) {
  Outcome outcome = Run("setp.lt.u32 %p1, %t, 16;\n@%p1 bra L;\nbar.sync 0;\nL:", 32);
  CHECK_EQ(outcome.code, 0);  // The others have exited.
  outcome = Run("setp.lt.u32 %p1, %t, 16;\n@%p1 bra L;\nbar.sync 0;\nret;\nL: bar.sync 1;", 32);
  CHECK_EQ(outcome.code, 719);
  CHECK_TRUE(outcome.Says("waits for ever"));
  outcome = Run("setp.lt.u32 %p1, %t, 32;\n@%p1 bra L;\nbar.sync 0;\nret;\nL: bar.sync 1;", 64);
  CHECK_TRUE(outcome.Says("other threads of the block do not arrive"));
}

std::string AsyncCopy(const std::string& wait) {
  return "mov.b32 %r1, smem;\ncp.async.cg.shared.global [%r1], [%a], 16;\n"
         "cp.async.commit_group;\n" +
         wait + "ld.shared.b32 %r2, [%r1];\nst.global.b32 [%a+32], %r2;";
}

TEST(CopiesThatNothingWaitsFor) {
  CHECK_EQ(Run(AsyncCopy("cp.async.wait_group 0;"), 1, 32).code, 0);
  CHECK_EQ(Run(AsyncCopy("cp.async.wait_all;"), 1, 32).code, 0);
  Outcome outcome = Run(AsyncCopy(""), 1, 32);
  CHECK_EQ(outcome.code, 719);
  CHECK_TRUE(outcome.Says("destination of the cp.async at line"));
  // One group may stay under way, and this is the only one.
  CHECK_EQ(Run(AsyncCopy("cp.async.wait_group 1;"), 1, 32).code, 719);
  CHECK_EQ(Run("mov.b32 %r1, smem;\ncp.async.cg.shared.global [%r1], [%a+64], 16;", 1, 32).code,
           700);
  CHECK_EQ(Run("mov.b32 %r1, smem;\ncp.async.cg.shared.global [%r1], [%a+4], 16;", 1, 32).code,
           716);
}

TEST(CollectivesThatLanesMiss) {
  CHECK_TRUE(Run("setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.bfly.b32 %r1, %t, 1, 31, -1;", 32)
                 .Says("not all lanes of the warp that it names arrive"));
  CHECK_TRUE(Run("setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.bfly.b32 %r1, %t, 16, 31, 0xFFFF;", 32)
                 .Says("does not take part in the shuffle"));
}

TEST(TrapsAndEndlessLoops) {
  CHECK_TRUE(Run("trap;").Says("the kernel traps"));
  Outcome outcome = Run("L: bra L;");
  CHECK_EQ(outcome.code, 702);
  CHECK_TRUE(outcome.Says("it seems to be in an endless loop"));
}

TEST(InstructionsThatAreUnknown) {
  Device device(Kernel(""));
  for (const char* body : {"frobnicate.b32 %r1, %t;", "add.rz.f64 %l1, %l2, %l3;",
                           "mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 %r1, %r1, %r1, %r1;",
                           "st.global.b32.wrong [%a], %r1;"}) {
    void* module = nullptr;
    CHECK_EQ(cuModuleLoadData(&module, Kernel(body).c_str()), 218);
    std::string text = ptx_emulator_last_failure();
    std::string opcode = std::string(body).substr(0, 8);
    CHECK_TRUE(text.find("PTX: line 19: the emulator does not know this instruction: " + opcode) !=
               std::string::npos);
  }
  CHECK_EQ(ptx_emulator_take_failures(), 4u);
}

}  // namespace
}  // namespace ptx_emulator::testing

int main() {
  setenv("PTX_EMULATOR_MOST_INSTRUCTIONS", "1000000", 1);
  return aoti::testing::RunAllTests();
}
