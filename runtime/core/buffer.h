// Memory for tensors.

#ifndef AOTI_RUNTIME_CORE_BUFFER_H_
#define AOTI_RUNTIME_CORE_BUFFER_H_

#include <cstddef>
#include <memory>
#include <new>

namespace aoti::internal {

// Uninitialised bytes, aligned for vector instructions. Throws std::bad_alloc.
class Buffer {
 public:
  static constexpr std::align_val_t kAlignment{64};

  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size), data_(::operator new(size, kAlignment)) {}

  void* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  // Hands the memory over to the caller, who returns it with Free().
  void* release() {
    size_ = 0;
    return data_.release();
  }
  static void Free(void* data) { ::operator delete(data, kAlignment); }

 private:
  struct Deleter {
    void operator()(void* data) const { Free(data); }
  };

  std::size_t size_ = 0;
  std::unique_ptr<void, Deleter> data_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_BUFFER_H_
