// Locks that stay usable in the child of a fork(), in which only the thread that called it exists.

#ifndef AOTI_RUNTIME_CORE_FORK_H_
#define AOTI_RUNTIME_CORE_FORK_H_

namespace aoti::internal {

// An object that other threads may be changing when this one calls fork(). It is locked before the
// fork and unlocked after it, in the parent and in the child, so that the child has a consistent
// copy.
class ForkSafe {
 public:
  ForkSafe(const ForkSafe&) = delete;
  ForkSafe& operator=(const ForkSafe&) = delete;

 protected:
  ForkSafe() = default;
  ~ForkSafe() = default;

  // Registers the object until Unregister(), which the destructor must call first.
  void Register();
  void Unregister();

 private:
  friend struct ForkRegistry;

  virtual void Lock() = 0;
  virtual void Unlock() = 0;
  // Called instead of Unlock() in the child, where nothing that other threads hold is ever
  // returned.
  virtual void UnlockInChild() = 0;

  ForkSafe* previous_ = nullptr;
  ForkSafe* next_ = nullptr;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_FORK_H_
