#include "runtime/cuda/context.h"

#include <algorithm>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/graph_memory.h"
#include "runtime/cuda/queue.h"

namespace aoti::cuda {
namespace {

CuDevice FindDevice(int index) {
  int count = 0;
  Check(Driver().DeviceGetCount(&count), "counting the CUDA devices");
  if (index < 0 || index >= count) {
    throw DeviceError(ErrorCode::kUnsupportedGpu,
                      StrCat("cuda_device is ", index, ", but this machine has ", count,
                             count == 1 ? " CUDA device" : " CUDA devices",
                             count == 0 ? "" : StrCat("; it must be in 0..", count - 1)));
  }
  CuDevice device = 0;
  Check(Driver().DeviceGet(&device, index), "opening a CUDA device");
  return device;
}

}  // namespace

std::shared_ptr<Context> Context::Open(int index) {
  // Never freed: programs may be unloaded by destructors of static objects.
  static auto* const mutex = new std::mutex;
  static auto* const contexts = new std::map<int, std::weak_ptr<Context>>;
  const CuDevice device = FindDevice(index);
  const std::lock_guard lock(*mutex);
  auto& known = (*contexts)[index];
  auto context = known.lock();
  if (context == nullptr) {
    context.reset(new Context(index, device));
    known = context;
  }
  return context;
}

Context::Context(int index, CuDevice device) : index_(index), device_(device) {
  char name[256] = {};
  Check(Driver().DeviceGetName(name, sizeof(name), device), "naming a CUDA device");
  name_ = name;
  int major = 0;
  int minor = 0;
  const auto asking = [&] { return StrCat("asking for the compute capability of ", Text()); };
  Check(Driver().DeviceGetAttribute(&major, kComputeCapabilityMajor, device), asking);
  Check(Driver().DeviceGetAttribute(&minor, kComputeCapabilityMinor, device), asking);
  arch_ = static_cast<std::uint32_t>(major * 10 + minor);
  Check(Driver().PrimaryCtxRetain(&context_, device),
        [&] { return StrCat("making a context on ", Text()); });
  try {
    const Current current(*this);
    Check(Driver().StreamCreate(&stream_, kStreamNonBlocking),
          [&] { return StrCat("making a stream on ", Text()); });
  } catch (...) {
    Driver().PrimaryCtxRelease(device_);
    throw;
  }
}

Context::~Context() {
  if (IsForkedChild()) return;
  if (Driver().CtxPushCurrent(context_) == kSuccess) {
    pool_.Trim(nullptr);
    Driver().StreamDestroy(stream_);
    Leave();
  }
  Driver().PrimaryCtxRelease(device_);
}

std::string Context::Text() const { return StrCat("device ", index_, " (", name_, ")"); }

Context::Current::Current(const Context& context) { context.Enter(); }

Context::Current::~Current() { Leave(); }

void Context::Enter() const {
  Check(Driver().CtxPushCurrent(context_), [this] { return StrCat("using ", Text()); });
}

void Context::Leave() noexcept {
  CuContext popped = nullptr;
  Driver().CtxPopCurrent(&popped);
}

std::shared_ptr<const Modules> Context::Load(const KernelTable& kernels) {
  const std::lock_guard lock(mutex_);
  auto& known = modules_[&kernels];
  auto modules = known.lock();
  if (modules == nullptr) {
    const Current current(*this);
    modules = std::make_shared<const Modules>(*this, kernels);
    known = modules;
  }
  return modules;
}

std::shared_ptr<const Modules> Context::Find(const KernelTable& kernels) {
  const std::lock_guard lock(mutex_);
  const auto found = modules_.find(&kernels);
  return found == modules_.end() ? nullptr : found->second.lock();
}

Block* Context::AllocateBlock(std::size_t bytes, CuStream stream) {
  Block* block = nullptr;
  Check(pool_.Allocate(bytes, stream, block),
        [&] { return StrCat("allocating ", bytes, " bytes on ", Text()); });
  block->context = shared_from_this();
  return block;
}

void Context::Release(Block* block) noexcept {
  if (IsForkedChild()) return;
  if (block->graph != nullptr) {
    const std::shared_ptr<GraphMemory> graph = std::move(block->graph);
    graph->Take(block);
    return;
  }
  // May be the last reference to the pool, too.
  const std::shared_ptr<Context> context = std::move(block->context);
  context->pool_.Release(block);
}

void Context::Destroy(CuStream stream) noexcept {
  if (IsForkedChild() || Driver().CtxPushCurrent(context_) != kSuccess) return;
  Driver().StreamSynchronize(stream);
  pool_.Trim(stream);
  Driver().StreamDestroy(stream);
  Leave();
}

void Context::WaitForAll() {
  const std::lock_guard lock(recording_);
  Check(Driver().CtxSynchronize(), [this] { return StrCat("waiting for ", Text()); });
}

internal::DeviceMemory Context::Allocate(std::size_t bytes) {
  const Current current(*this);
  CuPointer memory = 0;
  CuResult result = Driver().MemAlloc(&memory, std::max<std::size_t>(bytes, 1));
  if (result == kErrorOutOfMemory) {
    pool_.Trim(nullptr);
    result = Driver().MemAlloc(&memory, std::max<std::size_t>(bytes, 1));
  }
  Check(result, [&] { return StrCat("allocating ", bytes, " bytes on ", Text()); });
  return {FromPointer(memory), [context = shared_from_this()](void* address) mutable {
            // Not kept in the deleter, which lives as long as weak references do, as in `shared_`.
            const std::shared_ptr<Context> last = std::move(context);
            if (IsForkedChild() || Driver().CtxPushCurrent(last->context_) != kSuccess) return;
            Driver().MemFree(ToPointer(address));
            Leave();
          }};
}

internal::DeviceMemory Context::Share(const void* host, std::size_t bytes) {
  Driver();  // in a child of fork(), the lock may be held for ever
  const std::lock_guard lock(mutex_);
  std::erase_if(shared_, [](const auto& item) { return item.second.expired(); });
  auto& known = shared_[{host, bytes}];
  auto memory = known.lock();
  if (memory == nullptr) {
    memory = Allocate(bytes);
    Copy(memory.get(), host, bytes, internal::CopyKind::kUpload);
    known = memory;
  }
  return memory;
}

void Context::Copy(void* to, const void* from, std::size_t bytes, internal::CopyKind kind) {
  if (bytes == 0) return;
  const Current current(*this);
  CopyOn(stream_, to, from, bytes, kind, *this);
  Check(Driver().StreamSynchronize(stream_),
        [&] { return StrCat("copying ", bytes, " bytes on ", Text()); });
}

std::unique_ptr<internal::DeviceQueue> Context::NewQueue() {
  return std::make_unique<Queue>(shared_from_this());
}

}  // namespace aoti::cuda
