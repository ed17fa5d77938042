#include "runtime/cuda/measuring.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <type_traits>

#include "runtime/cuda/driver.h"

namespace aoti::cuda {
namespace {

struct CuEventTag;
using CuEvent = CuEventTag*;

// Launches that a time is the mean of: the events' resolution is half a microsecond.
constexpr int kLaunches = 20;

// What nothing but measuring needs of the driver.
struct EventApi {
  CuResult (*Create)(CuEvent* event, unsigned flags) = nullptr;
  CuResult (*Record)(CuEvent event, CuStream stream) = nullptr;
  CuResult (*ElapsedTime)(float* milliseconds, CuEvent start, CuEvent end) = nullptr;
  CuResult (*Destroy)(CuEvent event) = nullptr;
  CuResult (*CtxGetDevice)(CuDevice* device) = nullptr;
};

const EventApi& Events() {
  static const EventApi api = [] {
    Driver();  // has opened the library
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    EventApi found;
    const auto find = [&](auto& function, const char* symbol) {
      void* address = library == nullptr ? nullptr : dlsym(library, symbol);
      if (address == nullptr) {
        throw DeviceError(ErrorCode::kUnsupportedGpu,
                          StrCat("the driver has no function ", symbol));
      }
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
    find(found.Create, "cuEventCreate");
    find(found.Record, "cuEventRecord");
    find(found.ElapsedTime, "cuEventElapsedTime");
    find(found.Destroy, "cuEventDestroy_v2");
    find(found.CtxGetDevice, "cuCtxGetDevice");
    return found;
  }();
  return api;
}

class Event {
 public:
  Event() { Check(Events().Create(&event_, 0), "creating an event"); }
  ~Event() { Events().Destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Record(CuStream stream) { Check(Events().Record(event_, stream), "recording an event"); }
  double MicrosecondsSince(const Event& start) const {
    float milliseconds = 0;
    Check(Events().ElapsedTime(&milliseconds, start.event_, event_), "reading an event's time");
    return 1e3 * milliseconds;
  }

 private:
  CuEvent event_ = nullptr;
};

std::string DeviceLine() {
  CuDevice device = 0;
  int major = 0;
  int minor = 0;
  char name[256] = {};
  const auto check = [](CuResult result) { Check(result, "asking for the current device"); };
  check(Events().CtxGetDevice(&device));
  check(Driver().DeviceGetAttribute(&major, kComputeCapabilityMajor, device));
  check(Driver().DeviceGetAttribute(&minor, kComputeCapabilityMinor, device));
  check(Driver().DeviceGetName(name, sizeof name, device));
  return StrCat("sm_", major, minor, " ", static_cast<const char*>(name));
}

// Appends to the file of times, if there is one.
void Write(std::uint32_t product, std::int64_t rows, double microseconds) {
  static std::mutex mutex;
  static std::FILE* const file = [] {
    const char* path = std::getenv("AOTI_CUDA_TIMES");
    std::FILE* opened = path == nullptr ? nullptr : std::fopen(path, "w");
    if (opened != nullptr) std::fprintf(opened, "%s\n", DeviceLine().c_str());
    return opened;
  }();
  if (file == nullptr) return;
  const std::lock_guard lock(mutex);
  std::fprintf(file, "%u %lld %.3f\n", product, static_cast<long long>(rows), microseconds);
  std::fflush(file);
}

}  // namespace

std::uint32_t MeasuredOf(std::uint32_t count) {
  static const std::uint32_t chosen = [] {
    const char* text = std::getenv("AOTI_CUDA_CANDIDATE");
    return text == nullptr ? 0U : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  }();
  return std::min(chosen, count - 1);
}

void LaunchMeasured(const KernelTable& table, std::uint32_t kernel, std::uint32_t product,
                    std::int64_t rows, bool repeats, std::uint32_t grid_x, std::uint32_t grid_y,
                    std::uint32_t grid_z, void** arguments, void* stream) {
  const auto launch = [&] { Launch(table, kernel, grid_x, grid_y, grid_z, arguments, stream); };
  auto* const queue = static_cast<CuStream>(stream);
  if (repeats) launch();  // the first one loads the kernel, and fills the caches
  Event start;
  Event end;
  start.Record(queue);
  const int launches = repeats ? kLaunches : 1;
  for (int i = 0; i < launches; ++i) launch();
  end.Record(queue);
  Check(Driver().StreamSynchronize(queue), "waiting for a kernel that is measured");
  Write(product, rows, end.MicrosecondsSince(start) / launches);
}

}  // namespace aoti::cuda
