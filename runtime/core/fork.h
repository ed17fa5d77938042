// Locks in a child of fork(), which has of all threads the one that called it.

#ifndef AOTI_RUNTIME_CORE_FORK_H_
#define AOTI_RUNTIME_CORE_FORK_H_

namespace aoti::internal {

// An object that other threads may be changing when this one calls fork(): it is locked before and
// unlocked after, in the parent and in the child, so that the child has it in one piece.
class ForkSafe {
 public:
  ForkSafe(const ForkSafe&) = delete;
  ForkSafe& operator=(const ForkSafe&) = delete;

 protected:
  ForkSafe() = default;
  ~ForkSafe() = default;

  // From now on until Unregister(), which a destructor must call first.
  void Register();
  void Unregister();

 private:
  friend struct ForkRegistry;

  virtual void Lock() = 0;
  virtual void Unlock() = 0;
  // Instead of Unlock(), in the child: what other threads had taken will never be given back.
  virtual void UnlockInChild() = 0;

  ForkSafe* previous_ = nullptr;
  ForkSafe* next_ = nullptr;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_FORK_H_
