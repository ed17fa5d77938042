#include "runtime/core/fork.h"

#include <pthread.h>

#include <mutex>

namespace aoti::internal {

// Never destroyed: models may be unloaded by destructors of static objects.
struct ForkRegistry {
  std::mutex mutex;
  ForkSafe* first = nullptr;

  static ForkRegistry& Get() {
    static ForkRegistry* const registry = [] {
      pthread_atfork(&Lock, &Unlock, &UnlockInChild);
      return new ForkRegistry;
    }();
    return *registry;
  }

  static void Lock() {
    Get().mutex.lock();
    for (ForkSafe* object = Get().first; object != nullptr; object = object->next_) object->Lock();
  }
  static void Unlock() {
    for (ForkSafe* object = Get().first; object != nullptr; object = object->next_) {
      object->Unlock();
    }
    Get().mutex.unlock();
  }
  static void UnlockInChild() {
    for (ForkSafe* object = Get().first; object != nullptr; object = object->next_) {
      object->UnlockInChild();
    }
    Get().mutex.unlock();
  }

  void Add(ForkSafe* object) {
    const std::lock_guard lock(mutex);
    object->next_ = first;
    if (first != nullptr) first->previous_ = object;
    first = object;
  }
  void Remove(ForkSafe* object) {
    const std::lock_guard lock(mutex);
    (object->previous_ != nullptr ? object->previous_->next_ : first) = object->next_;
    if (object->next_ != nullptr) object->next_->previous_ = object->previous_;
  }
};

void ForkSafe::Register() { ForkRegistry::Get().Add(this); }

void ForkSafe::Unregister() { ForkRegistry::Get().Remove(this); }

}  // namespace aoti::internal
