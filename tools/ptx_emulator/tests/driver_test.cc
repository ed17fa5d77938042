// The driver's functions: launches, copies, captured graphs, handles, and what is left at the end.

#include "tools/ptx_emulator/tests/driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/tests/check.h"

namespace ptx_emulator::testing {
namespace {

// a[i] = b[i] + c[i] for the block's part.
const char* const kAdd =
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %t;\n"
    "mul.wide.u32 %l1, %r3, 4; add.s64 %l2, %b, %l1; add.s64 %l3, %c, %l1;\n"
    "ld.global.f32 %r4, [%l2]; ld.global.f32 %r5, [%l3]; add.f32 %r6, %r4, %r5;\n"
    "add.s64 %l4, %a, %l1; st.global.f32 [%l4], %r6;";

TEST(LaunchesBlocks) {
  Device device(Kernel(kAdd));
  uint64_t a = device.Allocate(96 * 4);
  uint64_t b = device.Upload(std::vector<float>(96, 1.5f));
  uint64_t c = device.Upload(std::vector<float>(96, 2.0f));
  CHECK_EQ(device.Launch(48, {a, b, c}, 0, nullptr, 2), 0);
  CHECK_TRUE(device.Download<float>(a, 96) == std::vector<float>(96, 3.5f));
}

TEST(GraphsReplayWhatIsCaptured) {
  Device device(Kernel(kAdd));
  uint64_t a = device.Upload(std::vector<float>(32, 0));
  uint64_t b = device.Upload(std::vector<float>(32, 1));
  void* stream = nullptr;
  void* graph = nullptr;
  void* executable = nullptr;
  CHECK_EQ(cuStreamCreate(&stream, 1), 0);
  CHECK_EQ(cuStreamBeginCapture_v2(stream, 1), 0);
  CHECK_EQ(device.Launch(32, {a, a, b}, 0, stream), 0);
  CHECK_EQ(cuStreamSynchronize(stream), 900);
  CHECK_EQ(ptx_emulator_take_failures(), 1u);
  CHECK_EQ(cuStreamEndCapture(stream, &graph), 0);
  CHECK_EQ(device.Download<float>(a, 1)[0], 0.0f);
  CHECK_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  CHECK_EQ(cuGraphDestroy(graph), 0);
  for (int i = 0; i < 3; ++i) CHECK_EQ(cuGraphLaunch(executable, stream), 0);
  CHECK_EQ(device.Download<float>(a, 32)[31], 3.0f);
  CHECK_EQ(cuGraphExecDestroy(executable), 0);
  CHECK_EQ(cuStreamDestroy_v2(stream), 0);
}

TEST(CubinsAreForAnotherDevice) {
  Device device(Kernel(""));
  void* module = nullptr;
  CHECK_EQ(cuModuleLoadData(&module, "\177ELF"), 209);
  CHECK_EQ(cuModuleLoadData(&module, ".version 8.7\n.target sm_90\n"), 209);
  CHECK_EQ(cuModuleLoadData(&module, "no PTX"), 218);
  CHECK_EQ(ptx_emulator_take_failures(), 1u);
  void* function = nullptr;
  CHECK_EQ(cuModuleGetFunction(&function, device.module(), "missing"), 500);
}

TEST(CopiesAndFreesAreChecked) {
  Device device(Kernel(""));
  uint64_t memory = device.Allocate(16);
  std::vector<char> data(32);
  CHECK_EQ(cuMemcpyHtoD_v2(memory, data.data(), 17), 1);
  CHECK_EQ(cuMemcpyDtoH_v2(data.data(), memory + 16, 1), 1);
  CHECK_EQ(cuMemFree_v2(memory + 1), 1);
  uint64_t other = device.Allocate(16);
  device.Free(other);
  CHECK_EQ(cuMemFree_v2(other), 1);
  CHECK_EQ(ptx_emulator_take_failures(), 4u);
  int ordinal = -1;
  CHECK_EQ(cuPointerGetAttribute(&ordinal, 9, memory), 0);
  CHECK_EQ(ordinal, 0);
}

TEST(LaunchesAreChecked) {
  Device device(Kernel(""));
  CHECK_EQ(device.Launch(1025, {}), 1);
  CHECK_EQ(device.Launch(0, {}), 1);
  CHECK_EQ(cuFuncSetAttribute(device.function(), 8, 166912), 0);
  CHECK_EQ(device.Launch(1, {}, 166912), 0);
  CHECK_EQ(cuFuncSetAttribute(device.function(), 8, 166913), 1);
  CHECK_EQ(ptx_emulator_take_failures(), 3u);
  void* unknown = nullptr;
  int status = 0;
  CHECK_EQ(cuGetProcAddress_v2("cuMemAlloc", &unknown, 12000, 0, &status), 0);
  CHECK_TRUE(unknown == reinterpret_cast<void*>(&cuMemAlloc_v2));
  CHECK_EQ(cuGetProcAddress_v2("cuNothing", &unknown, 12000, 0, &status), 500);
}

// The exit status of a process that does `body`, with leaks as errors.
template <typename Body>
int ExitStatus(Body body) {
  pid_t child = fork();
  if (child == 0) {
    setenv("PTX_EMULATOR_LEAKS", "1", 1);
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessesThatLeaveThingsFail) {
  CHECK_EQ(ExitStatus([] { Device device(Kernel("")); }), 0);
  CHECK_EQ(ExitStatus([] {
             Device device(Kernel(""));
             uint64_t memory = 0;
             cuMemAlloc_v2(&memory, 16);
           }),
           86);
  CHECK_EQ(ExitStatus([] {
             Device device(Kernel(""));
             void* stream = nullptr;
             cuStreamCreate(&stream, 0);
           }),
           86);
  CHECK_EQ(ExitStatus([] { new Device(Kernel("")); }), 86);
}

TEST(ProcessesThatWereRefusedSomethingFail) {
  CHECK_EQ(ExitStatus([] {
             Device device(Kernel("trap;"));
             device.Launch(1, {});
           }),
           86);
}

}  // namespace
}  // namespace ptx_emulator::testing

int main() { return aoti::testing::RunAllTests(); }
