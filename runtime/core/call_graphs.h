// The graphs that a runner keeps: each is for calls that are alike in all that a graph can't
// change.

#ifndef AOTI_RUNTIME_CORE_CALL_GRAPHS_H_
#define AOTI_RUNTIME_CORE_CALL_GRAPHS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/core/device.h"
#include "runtime/core/shim.h"

namespace aoti::internal {

struct CallGraph {
  std::vector<std::uint64_t> key;
  bool recordable = true;              // until it was tried in vain
  std::unique_ptr<DeviceGraph> graph;  // null until it is recorded
  std::vector<OwnedHandle> outputs;    // in the graph's memory, or views of inputs and weights
  std::vector<AtenTensorHandle> raw;   // the same, with those that are returned twice
};

class CallGraphs {
 public:
  // Each graph has memory of its own for the intermediate results of a call.
  static constexpr std::size_t kMax = 16;

  // The calls with this key, if there was one before; null at the first one.
  CallGraph* Find(const std::vector<std::uint64_t>& key) {
    const auto found =
        std::ranges::find_if(calls_, [&](const auto& call) { return call->key == key; });
    if (found != calls_.end()) {
      std::rotate(calls_.begin(), found, found + 1);
      return calls_.front().get();
    }
    if (calls_.size() == kMax) calls_.pop_back();
    auto call = std::make_unique<CallGraph>();
    call->key = key;
    calls_.insert(calls_.begin(), std::move(call));
    return nullptr;
  }

 private:
  std::vector<std::unique_ptr<CallGraph>> calls_;  // the last one first
};

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_CALL_GRAPHS_H_
