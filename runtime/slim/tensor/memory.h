// Memory of tensors and of operators' scratch space: aligned, and kept for the next run.

#ifndef AOTI_RUNTIME_SLIM_TENSOR_MEMORY_H_
#define AOTI_RUNTIME_SLIM_TENSOR_MEMORY_H_

#include <cstddef>
#include <utility>

namespace aoti::slim {

inline constexpr std::size_t kAlignment = 64;

// A block of at least `bytes` bytes, aligned to kAlignment; contents unspecified. Blocks come from
// a pool, so that a program in its steady state asks the system for nothing. Thread safe. Throws
// std::bad_alloc.
void* Allocate(std::size_t bytes);

// Gives a block of Allocate() back. `bytes` as it was asked for.
void Release(void* block, std::size_t bytes) noexcept;

// Returns everything that the pool keeps to the system.
void TrimPool() noexcept;

// An array of plain values for an operator's own use, from the pool; contents unspecified.
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
