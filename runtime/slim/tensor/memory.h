// Memory for tensors and for operators' scratch space: aligned, and kept for the next call.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_MEMORY_H_
#define AOTI_RUNTIME_SLIM_TENSOR_MEMORY_H_

#include <cstddef>
#include <utility>

namespace aoti::slim {

inline constexpr std::size_t kAlignment = 64;

// A block of at least `bytes` bytes, aligned to kAlignment; the contents are unspecified. Blocks
// come from a pool, so that calls after the first ones allocate nothing from the system. Thread
// safe. Throws std::bad_alloc.
void* Allocate(std::size_t bytes);

// Returns a block of Allocate() to the pool. `bytes` must be the requested size.
void Release(void* block, std::size_t bytes) noexcept;

// Returns all free blocks of the pool to the system.
void TrimPool() noexcept;

// An array of plain values for an operator's own use, from the pool; the contents are unspecified.
template <typename T>
class Scratch {
 public:
  explicit Scratch(std::size_t size)
      : data_(static_cast<T*>(Allocate(size * sizeof(T)))), size_(size) {}
  ~Scratch() { Release(data_, size_ * sizeof(T)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  T* data_;
  std::size_t size_;
};

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_TENSOR_MEMORY_H_
