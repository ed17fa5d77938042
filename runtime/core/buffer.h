// Memory for tensors.

#ifndef AOTI_RUNTIME_CORE_BUFFER_H_
#define AOTI_RUNTIME_CORE_BUFFER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <new>

namespace aoti::internal {

// Whether `address` lies in the `size` bytes from `begin` on.
inline bool Within(const void* address, const void* begin, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto* first = static_cast<const std::byte*>(begin);
  // std::less is also defined for pointers into different objects.
  return !std::less<>()(at, first) && std::less<>()(at, first + size);
}

// Uninitialised bytes, aligned for vector instructions. Throws std::bad_alloc.
class Buffer {
 public:
  static constexpr std::align_val_t kAlignment{64};

  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size), data_(::operator new(size, kAlignment)) {}

  void* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool Contains(const void* address) const { return Within(address, data(), size_); }
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
