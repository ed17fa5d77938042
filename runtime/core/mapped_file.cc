#include "runtime/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "runtime/core/fork.h"
#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

// Closes a file descriptor.
class ScopedFd {
 public:
  ScopedFd() = default;
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  void reset(int fd) { fd_ = fd; }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Identifies one version of one file.
using FileKey = std::tuple<dev_t, ino_t, off_t, time_t, long>;

struct Registry final : ForkSafe {
  Registry() { Register(); }

  std::mutex mutex;
  std::map<FileKey, std::weak_ptr<const MappedFile>> files;

 private:
  void Lock() override { mutex.lock(); }
  void Unlock() override { mutex.unlock(); }
  void UnlockInChild() override { mutex.unlock(); }
};

// Never destroyed: models may be unloaded by destructors of static objects.
Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

Error SystemError(ErrorCode code, const std::string& path) {
  return {code, StrCat(path, ": ", std::strerror(errno))};
}

// Opens a regular file. Anything else is refused, because opening it may block (a pipe without a
// writer).
std::optional<Error> OpenRegular(const std::string& path, ScopedFd& fd, struct stat& status) {
  if (const std::size_t nul = path.find('\0'); nul != std::string::npos) {
    return Error(ErrorCode::kInvalidArgument,
                 StrCat(path.substr(0, nul), ": the path has a NUL character here; remove it"));
  }
  fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return SystemError(absent ? ErrorCode::kWeightsNotFound : ErrorCode::kIoError, path);
  }
  if (fstat(fd.get(), &status) != 0) return SystemError(ErrorCode::kIoError, path);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kIoError, StrCat(path, ": not a regular file"));
  }
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  ScopedFd fd;
  struct stat status{};
  if (auto error = OpenRegular(path, fd, status)) return *std::move(error);
  const FileKey key(status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec);

  Registry& registry = GetRegistry();
  const std::lock_guard lock(registry.mutex);
  std::erase_if(registry.files, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const MappedFile>& known = registry.files[key];
  if (auto file = known.lock()) return file;

  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) return SystemError(ErrorCode::kIoError, path);
  }
  auto file = std::make_shared<const MappedFile>(static_cast<const std::byte*>(data), size);
  known = file;
  return file;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Read(const std::string& path) {
  ScopedFd fd;
  struct stat status{};
  if (auto error = OpenRegular(path, fd, status)) return *std::move(error);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::make_shared<const MappedFile>(nullptr, 0);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return SystemError(ErrorCode::kOutOfMemory, path);
  // Weights that are read from one end to the other need few of the processor's page entries so. A
  // system without large pages refuses, which is fine.
  madvise(data, size, MADV_HUGEPAGE);
  auto file = std::make_shared<const MappedFile>(static_cast<const std::byte*>(data), size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = read(fd.get(), static_cast<char*>(data) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(ErrorCode::kIoError, path);
    if (count == 0) {
      return Error(ErrorCode::kIoError, StrCat(path, ": became shorter while it was read"));
    }
    done += static_cast<std::size_t>(count);
  }
  mprotect(data, size, PROT_READ);
  return file;
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace aoti::internal
