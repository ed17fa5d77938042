// What a session remembers from call to call: the tensors that the model writes to.

#ifndef AOTI_RUNTIME_CORE_SESSION_STATE_H_
#define AOTI_RUNTIME_CORE_SESSION_STATE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "aoti/program_spec.h"
#include "aoti/result.h"
#include "runtime/core/buffer.h"
#include "runtime/core/device.h"
#include "runtime/core/fork.h"
#include "runtime/core/safetensors.h"
#include "runtime/core/weights.h"

namespace aoti::internal {

// Whether the methods that share this table of weights write to any of them.
bool HasState(const ProgramSpec& spec);

// The memory of all weights that are written to. It is on a device, or in the CPU's memory if
// `device` is null. The constructors may throw std::bad_alloc and DeviceError.
class State {
 public:
  // With the values of the weights file.
  State(const ProgramSpec& spec, const Weights& initial, Device* device);
  // With the values of another state, wherever that is.
  State(const State& other, Device* device);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // With the values that StoredTensors() had. `saved` may be of any alignment. Errors:
  // kWeightsMalformed, kWeightsMismatch.
  static Result<std::unique_ptr<State>> Parse(const ProgramSpec& spec, std::string_view saved);

  // A number that no other State of the process ever has; never 0.
  std::uint64_t id() const { return id_; }

  const Device* device() const { return device_; }

  // The memory of a weight that is written to, by its index in ProgramSpec::weights.
  void* data(std::size_t weight) const;

  // Whether `address` lies in this memory.
  bool Contains(const void* address) const;

  // Of a state in the CPU's memory.
  std::vector<StoredTensor> StoredTensors(const ProgramSpec& spec) const;

 private:
  friend class SessionState;

  struct Item {
    std::size_t weight;
    std::size_t bytes;
    Buffer buffer;        // of the CPU
    DeviceMemory memory;  // or of the device

    void* data() const { return memory == nullptr ? buffer.data() : memory.get(); }
  };

  explicit State(Device* device);

  // `from`: where the data is.
  void Add(std::size_t weight, const void* data, std::size_t bytes, Device* from);

  const std::uint64_t id_;
  Device* const device_;  // lives as long as the models that this session runs
  std::vector<Item> items_;
  // How many sessions have this memory. Only one that is alone may write to it.
  std::atomic<int> sessions_ = 1;
};

// The state of one session. It takes no memory until the first call; after a fork, both sessions
// have the same memory until one of them runs. Every function but Take() and Give() is called by
// the thread that has the turn. Free in a child of fork(); a session in whose call another thread
// was has unspecified values there.
class SessionState final : private ForkSafe {
 public:
  SessionState() { Register(); }
  ~SessionState();

  // Waits until no other thread has the turn.
  void Take();
  void Give();

  // The id of the state; 0 before the first call.
  std::uint64_t id() const { return state_ == nullptr ? 0 : state_->id(); }

  // The values, in the CPU's memory: those of the file before the first call.
  std::shared_ptr<const State> Read(const ProgramSpec& spec, const Weights& initial) const;

  // The memory for a call on the device, or on the CPU if it is null, which no other session has.
  State& Writable(const ProgramSpec& spec, const Weights& initial, Device* device);

  // Another session with the same values.
  std::shared_ptr<SessionState> Fork() const;

  // Replaces the values; null: by those of the file.
  void Replace(std::unique_ptr<State> state);

 private:
  void Set(std::shared_ptr<State> state);

  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  void UnlockInChild() override;

  // Also held while state_ changes, so that a child of fork() never sees half of a change.
  std::mutex mutex_;
  std::condition_variable given_;
  bool taken_ = false;  // guarded by mutex_
  std::shared_ptr<State> state_;
};

// Holds a session's turn.
class Turn {
 public:
  explicit Turn(SessionState& session) : session_(session) { session_.Take(); }
  ~Turn() { session_.Give(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  SessionState& session_;
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_SESSION_STATE_H_
