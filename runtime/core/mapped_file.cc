#include "runtime/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/core/text.h"

namespace aoti::internal {
namespace {

// Closes a file descriptor.
class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// What tells one state of one file from all others.
using FileKey = std::tuple<dev_t, ino_t, off_t, time_t, long>;

struct Registry {
  std::mutex mutex;
  std::map<FileKey, std::weak_ptr<const MappedFile>> files;
};

// Never destroyed: models may be unloaded by destructors of static objects.
Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

Error SystemError(ErrorCode code, const std::string& path) {
  return {code, StrCat(path, ": ", std::strerror(errno))};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return SystemError(absent ? ErrorCode::kWeightsNotFound : ErrorCode::kIoError, path);
  }
  struct stat status{};
  if (fstat(fd.get(), &status) != 0) return SystemError(ErrorCode::kIoError, path);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kIoError, StrCat(path, ": not a regular file"));
  }
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

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace aoti::internal
