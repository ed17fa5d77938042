// The objects of a custom class in this process, which are found by the addresses of their states.

#ifndef AOTI_CUSTOM_CLASS_OBJECTS_H_
#define AOTI_CUSTOM_CLASS_OBJECTS_H_

#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace aoti::custom_class {

using torch::stable::Tensor;

template <typename T>
class [[gnu::visibility("hidden")]] Objects {
 public:
  using Maker = std::shared_ptr<const T> (*)(const Tensor& state);

  // Both are set where the class is declared; they have values before any constructor runs.
  static constinit inline const char* name = "";
  static constinit inline Maker make = nullptr;

  // Makes the object of a state. Until Unload() is called as often as this, the caller keeps the
  // state in memory.
  static void Load(const Tensor& state, const std::string& object) {
    const std::lock_guard lock(mutex());
    Loaded& loaded = objects()[state.data_ptr()];
    try {
      if (loaded.uses == 0) loaded.object = Make(state, object);
    } catch (...) {
      objects().erase(state.data_ptr());
      throw;
    }
    ++loaded.uses;
  }

  static void Unload(const Tensor& state) {
    const std::lock_guard lock(mutex());
    const auto found = objects().find(state.data_ptr());
    if (found != objects().end() && --found->second.uses == 0) objects().erase(found);
  }

  static std::shared_ptr<const T> Of(const Tensor& state, const std::string& object) {
    {
      const std::shared_lock lock(mutex());
      const auto found = objects().find(state.data_ptr());
      if (found != objects().end()) return found->second.object;
    }
    return Remembered(state, object);
  }

 private:
  struct Loaded {
    std::shared_ptr<const T> object;
    std::size_t uses = 0;
  };
  struct Copy {
    std::string state;
    std::shared_ptr<const T> object;
  };

  // How many states of programs that stock PyTorch has loaded are remembered.
  static constexpr std::size_t kRemembered = 8;

  // PyTorch's own loaders don't call Load(): objects are found by the bytes of their states.
  static std::shared_ptr<const T> Remembered(const Tensor& state, const std::string& object) {
    static std::mutex mutex;
    static std::deque<Copy> copies;
    const std::lock_guard lock(mutex);
    const std::string_view bytes(static_cast<const char*>(state.data_ptr()),
                                 static_cast<std::size_t>(state.numel()));
    for (const Copy& copy : copies) {
      if (copy.state == bytes) return copy.object;
    }
    copies.push_front({std::string(bytes), Make(state, object)});
    if (copies.size() > kRemembered) copies.pop_back();
    return copies.front().object;
  }

  static std::shared_ptr<const T> Make(const Tensor& state, const std::string& object) {
    try {
      return make(state);
    } catch (const std::exception& e) {
      const std::string which = object.empty() ? "an object" : "object \"" + object + "\"";
      throw std::runtime_error(which + " of the class " + name + " can't be made: " + e.what());
    }
  }

  static std::shared_mutex& mutex() {
    static std::shared_mutex mutex;
    return mutex;
  }
  static std::unordered_map<const void*, Loaded>& objects() {
    static auto* const objects = new std::unordered_map<const void*, Loaded>;
    return *objects;
  }
};

}  // namespace aoti::custom_class

#endif  // AOTI_CUSTOM_CLASS_OBJECTS_H_
