#include "runtime/tests/fake_program.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/core/program.h"
#include "runtime/tests/fake_shim.h"

namespace aoti::testing {

std::string g_throw;
std::atomic<bool> g_no_memory = false;
std::atomic<int> g_instances = 0;
std::atomic<int> g_most_running = 0;
std::atomic<bool> g_hold = false;
std::atomic<int> g_microseconds = 0;

namespace {

using internal::ProgramCounts;

struct Instance {
  AtenTensorHandle constants[2] = {};
};

float* Floats(AtenTensorHandle handle) { return static_cast<float*>(Get(handle).data); }

// Generated code owns its inputs: it deletes them when it returns and when it throws.
class Stolen {
 public:
  Stolen(AtenTensorHandle* handles, std::size_t count) : handles_(handles, handles + count) {}
  ~Stolen() {
    for (AtenTensorHandle handle : handles_) FakeShim().delete_tensor_object(handle);
  }

 private:
  std::vector<AtenTensorHandle> handles_;
};

std::atomic<int> g_running = 0;

// Counts the calls that run, and takes the time of one.
void Spend() {
  const int running = ++g_running;
  int most = g_most_running;
  while (running > most && !g_most_running.compare_exchange_weak(most, running)) {
  }
  std::this_thread::sleep_for(std::chrono::microseconds(g_microseconds));
  while (g_hold && running == 1) std::this_thread::yield();
  --g_running;
}

void RunAdder(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*) {
  const Stolen stolen(inputs, 1);
  Spend();
  if (g_throw == "bad_alloc") throw std::bad_alloc();
  if (g_throw == "42") throw 42;
  if (!g_throw.empty()) throw std::runtime_error(g_throw);

  FakeTensor& x = Get(inputs[0]);
  const float* bias = Floats(static_cast<Instance*>(instance)->constants[0]);
  outputs[0] = NewTensor(DType::kFloat32, x.sizes);
  for (std::int64_t b = 0; b < x.sizes[0]; ++b) {
    for (std::int64_t i = 0; i < 2; ++i) {
      Floats(outputs[0])[b * 2 + i] =
          Floats(inputs[0])[b * x.strides[0] + i * x.strides[1]] + bias[i];
    }
  }
  outputs[1] = NewView(x.data, DType::kFloat32, {2, x.sizes[0]}, {x.strides[1], x.strides[0]});
}

// constants: count, total.
void RunCounter(void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*) {
  const Stolen stolen(inputs, 1);
  float* count = Floats(static_cast<Instance*>(instance)->constants[0]);
  float* total = Floats(static_cast<Instance*>(instance)->constants[1]);
  const float before = *count;
  Spend();
  *count = before + 1;  // lost if another call ran in between
  *total += 10;
  *Floats(inputs[0]) += 100;
  outputs[0] = NewView(count, DType::kFloat32, {1}, {1});
  outputs[1] = NewView(total, DType::kFloat32, {1}, {1});
}

// constants: total.
void RunReader(void* instance, AtenTensorHandle*, AtenTensorHandle* outputs, void*) {
  outputs[0] = NewTensor(DType::kFloat32, {1});
  *Floats(outputs[0]) = *Floats(static_cast<Instance*>(instance)->constants[0]);
}

void RunLocator(void*, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*) {
  const Stolen stolen(inputs, 1);
  outputs[0] = NewTensor(DType::kInt64, {1});
  *static_cast<std::int64_t*>(Get(outputs[0]).data) =
      static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(Get(inputs[0]).data));
}

void RunEcho(void*, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*) {
  const Stolen stolen(inputs, 1);
  const FakeTensor& x = Get(inputs[0]);
  outputs[0] = NewView(x.data, x.dtype, x.sizes, x.strides);
}

void RunTwins(void*, AtenTensorHandle* inputs, AtenTensorHandle* outputs, void*) {
  const Stolen stolen(inputs, 1);
  const FakeTensor& x = Get(inputs[0]);
  outputs[0] = NewTensor(DType::kFloat32, x.sizes);
  float* y = Floats(outputs[0]);
  for (std::int64_t i = 0; i < x.sizes[0] * 2; ++i) y[i] = Floats(inputs[0])[i] + 1;
  outputs[1] = outputs[0];
  outputs[2] = NewView(y + 2, DType::kFloat32, {x.sizes[0] - 1, 2}, {2, 1});
}

template <std::size_t kInputs, std::size_t kOutputs, std::size_t kConstants>
ProgramVTable Table(void (*run)(void*, AtenTensorHandle*, AtenTensorHandle*, void*)) {
  ProgramVTable table{};
  table.shim = FakeShim();
  table.create = [](std::int32_t) -> void* {
    ++g_instances;
    return new Instance;
  };
  table.destroy = [](void* instance) {
    --g_instances;
    delete static_cast<Instance*>(instance);
  };
  table.counts = [](const void*) -> ProgramCounts {
    if (g_no_memory) throw std::bad_alloc();
    return {kInputs, kOutputs, kConstants};
  };
  table.set_constants = [](void* instance, const AtenTensorHandle* handles) {
    std::copy_n(handles, kConstants, static_cast<Instance*>(instance)->constants);
  };
  table.run = run;
  return table;
}

Result<const ProgramVTable*> AdderProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<1, 2, 1>(&RunAdder);
  return &table;
}

Result<const ProgramVTable*> CounterProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<1, 2, 2>(&RunCounter);
  return &table;
}

Result<const ProgramVTable*> ReaderProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<0, 1, 1>(&RunReader);
  return &table;
}

Result<const ProgramVTable*> LocatorProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<1, 1, 0>(&RunLocator);
  return &table;
}

Result<const ProgramVTable*> EchoProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<1, 1, 0>(&RunEcho);
  return &table;
}

Result<const ProgramVTable*> TwinsProgram(const ProgramSpec&) {
  static const ProgramVTable table = Table<1, 3, 0>(&RunTwins);
  return &table;
}

constexpr std::int64_t kShapes[] = {2, 1};
constexpr std::span<const std::int64_t> kTwo{kShapes, 1};
constexpr std::span<const std::int64_t> kOne{kShapes + 1, 1};

constexpr DimSpec kDims[] = {{"batch", 1, 64}};
constexpr Extent kXSizes[] = {{1, 0, 0, "batch"}, {0, -1, 2, "2"}};
constexpr InputSpec kAdderInputs[] = {{.name = "x", .dtype = DType::kFloat32, .sizes = kXSizes}};
constexpr const char* kYSizes[] = {"batch", "2"};
constexpr const char* kTransposedSizes[] = {"2", "batch"};
constexpr OutputSpec kAdderOutputs[] = {{"y", DType::kFloat32, kYSizes},
                                        {"x_transposed", DType::kFloat32, kTransposedSizes}};
constexpr WeightSpec kAdderWeights[] = {{"bias", DType::kFloat32, kTwo}};
constexpr ConstantSpec kAdderConstants[] = {{0, DType::kFloat32, kTwo, kOne, 0}};
#if defined(__aarch64__)
constexpr const char* kIsa = "aarch64";
#else
constexpr const char* kIsa = "x86-64";
#endif
constexpr ProgramVariant kAdderVariants[] = {{kIsa, kAdderConstants, &AdderProgram}};
constexpr ProgramSpec kAdderSpec = {.name = "adder",
                                    .label = "//tests:adder",
                                    .torch_version = "2.13.0+cpu",
                                    .weights_runfile = "_main/tests/adder.safetensors",
                                    .dims = kDims,
                                    .inputs = kAdderInputs,
                                    .outputs = kAdderOutputs,
                                    .weights = kAdderWeights,
                                    .packed = {},
                                    .variants = kAdderVariants};

constexpr Extent kCacheSizes[] = {{0, -1, 1, "1"}};
constexpr InputSpec kCounterInputs[] = {
    {.name = "cache", .dtype = DType::kFloat32, .sizes = kCacheSizes, .mutated = true}};
constexpr const char* kCountSizes[] = {"1"};
constexpr OutputSpec kCounterOutputs[] = {{"count", DType::kFloat32, kCountSizes},
                                          {"total", DType::kFloat32, kCountSizes}};
constexpr WeightSpec kCounterWeights[] = {{"count", DType::kFloat32, kOne, true},
                                          {"total", DType::kFloat32, kOne, true}};
constexpr ConstantSpec kCounterConstants[] = {{0, DType::kFloat32, kOne, kOne, 0},
                                              {1, DType::kFloat32, kOne, kOne, 0}};
constexpr ProgramVariant kCounterVariants[] = {{kIsa, kCounterConstants, &CounterProgram}};
constexpr ProgramSpec kCounterSpec = {.name = "counter",
                                      .label = "//tests:counter",
                                      .torch_version = "2.13.0",
                                      .weights_runfile = "_main/tests/counter.safetensors",
                                      .dims = {},
                                      .inputs = kCounterInputs,
                                      .outputs = kCounterOutputs,
                                      .weights = kCounterWeights,
                                      .packed = {},
                                      .variants = kCounterVariants};

constexpr ConstantSpec kReaderConstants[] = {{1, DType::kFloat32, kOne, kOne, 0}};
constexpr OutputSpec kReaderOutputs[] = {{"total", DType::kFloat32, kCountSizes}};
constexpr ProgramVariant kReaderVariants[] = {{kIsa, kReaderConstants, &ReaderProgram}};
constexpr ProgramSpec kReaderSpec = {.name = "reader",
                                     .label = "//tests:counter",
                                     .torch_version = "2.13.0",
                                     .weights_runfile = "_main/tests/counter.safetensors",
                                     .dims = {},
                                     .inputs = {},
                                     .outputs = kReaderOutputs,
                                     .weights = kCounterWeights,
                                     .packed = {},
                                     .variants = kReaderVariants};

constexpr InputSpec kLocatorInputs[] = {
    {.name = "x", .dtype = DType::kFloat32, .sizes = kCacheSizes}};
constexpr OutputSpec kLocatorOutputs[] = {{"address", DType::kInt64, kCountSizes}};
constexpr ProgramVariant kLocatorVariants[] = {{kIsa, {}, &LocatorProgram}};
constexpr ProgramSpec kLocatorSpec = {.name = "locator",
                                      .label = "//tests:counter",
                                      .torch_version = "2.13.0",
                                      .weights_runfile = "_main/tests/counter.safetensors",
                                      .dims = {},
                                      .inputs = kLocatorInputs,
                                      .outputs = kLocatorOutputs,
                                      .weights = kCounterWeights,
                                      .packed = {},
                                      .variants = kLocatorVariants};

constexpr DimSpec kEchoDims[] = {{"count", 0, 64}};
constexpr Extent kEchoSizes[] = {{1, 0, 0, "count"}};
constexpr InputSpec kEchoInputs[] = {{.name = "x", .dtype = DType::kBFloat16, .sizes = kEchoSizes}};
constexpr const char* kEchoOutputSizes[] = {"count"};
constexpr OutputSpec kEchoOutputs[] = {{"y", DType::kBFloat16, kEchoOutputSizes}};
constexpr ProgramVariant kEchoVariants[] = {{kIsa, {}, &EchoProgram}};
constexpr ProgramSpec kEchoSpec = {.name = "echo",
                                   .label = "//tests:echo",
                                   .torch_version = "2.13.0",
                                   .weights_runfile = "",
                                   .dims = kEchoDims,
                                   .inputs = kEchoInputs,
                                   .outputs = kEchoOutputs,
                                   .weights = {},
                                   .packed = {},
                                   .variants = kEchoVariants};

constexpr const char* kLastRowsSizes[] = {"batch - 1", "2"};
constexpr OutputSpec kTwinsOutputs[] = {{"y", DType::kFloat32, kYSizes},
                                        {"again", DType::kFloat32, kYSizes},
                                        {"last_rows", DType::kFloat32, kLastRowsSizes}};
constexpr ProgramVariant kTwinsVariants[] = {{kIsa, {}, &TwinsProgram}};
constexpr ProgramSpec kTwinsSpec = {.name = "twins",
                                    .label = "//tests:twins",
                                    .torch_version = "2.13.0",
                                    .weights_runfile = "",
                                    .dims = kDims,
                                    .inputs = kAdderInputs,
                                    .outputs = kTwinsOutputs,
                                    .weights = {},
                                    .packed = {},
                                    .variants = kTwinsVariants};

}  // namespace

const ProgramSpec& AdderSpec() { return kAdderSpec; }
const ProgramSpec& CounterSpec() { return kCounterSpec; }
const ProgramSpec& ReaderSpec() { return kReaderSpec; }
const ProgramSpec& LocatorSpec() { return kLocatorSpec; }
const ProgramSpec& EchoSpec() { return kEchoSpec; }
const ProgramSpec& TwinsSpec() { return kTwinsSpec; }

}  // namespace aoti::testing
