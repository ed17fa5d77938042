"""The C++ functions that generated code uses to call PyTorch's dispatcher; see dispatch.py."""

from __future__ import annotations

# Inserted before a wrapper that calls the dispatcher.
CPP_HELPERS = """\
#include <torch/csrc/stable/c/shim.h>

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace aoti_dispatch {
namespace {

using ::torch::aot_inductor::RAIIAtenTensorHandle;

template <class Pointer>
StableIValue Pack(Pointer* pointer) {
  return reinterpret_cast<StableIValue>(pointer);
}

// The dispatcher takes what it is given: tensors, lists, strings are handed over as new references.
[[maybe_unused]] StableIValue Tensor(AtenTensorHandle tensor) {
  AtenTensorHandle reference = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(tensor, &reference));
  return Pack(reference);
}

[[maybe_unused]] StableIValue UndefinedTensor() {
  AtenTensorHandle tensor = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&tensor));
  return Pack(tensor);
}

[[maybe_unused]] StableIValue Int(int64_t value) { return static_cast<StableIValue>(value); }

[[maybe_unused]] StableIValue Bool(bool value) { return value ? 1 : 0; }

// A dtype, a layout, a memory format.
[[maybe_unused]] StableIValue Enum(int32_t value) { return static_cast<uint32_t>(value); }

[[maybe_unused]] StableIValue Float(double value) {
  StableIValue result = 0;
  static_assert(sizeof(result) == sizeof(value));
  std::memcpy(&result, &value, sizeof(value));
  return result;
}

[[maybe_unused]] StableIValue Device(int32_t type, int32_t index) {
  return static_cast<StableIValue>(static_cast<uint32_t>(type)) << 32 |
         static_cast<uint32_t>(index);
}

[[maybe_unused]] StableIValue Text(std::string_view text) {
  StringHandle handle = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(torch_new_string_handle(text.data(), text.size(), &handle));
  return Pack(handle);
}

[[maybe_unused]] StableIValue List(std::initializer_list<StableIValue> items) {
  StableListHandle list = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(items.size(), &list));
  for (StableIValue item : items) AOTI_TORCH_ERROR_CODE_CHECK(torch_list_push_back(list, item));
  return Pack(list);
}

[[maybe_unused]] StableIValue None() { return 0; }

[[maybe_unused]] StableIValue Some(StableIValue value) {
  StableIValue* boxed = nullptr;
  AOTI_TORCH_ERROR_CODE_CHECK(torch_new_stable_ivalue(&boxed));
  *boxed = value;
  return Pack(boxed);
}

void Call(const char* name, const char* overload, StableIValue* stack) {
  if (aoti_torch_call_dispatcher(name, overload, stack) != AOTI_TORCH_SUCCESS) {
    throw std::runtime_error(std::string(name) + ": " +
                             torch_exception_get_what_without_backtrace());
  }
}

[[maybe_unused]] RAIIAtenTensorHandle TakeTensor(StableIValue value) {
  return RAIIAtenTensorHandle(reinterpret_cast<AtenTensorHandle>(value));
}

[[maybe_unused]] RAIIAtenTensorHandle TakeOptionalTensor(StableIValue value) {
  if (value == None()) return RAIIAtenTensorHandle();
  auto* boxed = reinterpret_cast<StableIValue*>(value);
  RAIIAtenTensorHandle tensor = TakeTensor(*boxed);
  AOTI_TORCH_ERROR_CODE_CHECK(torch_delete_stable_ivalue(boxed));
  return tensor;
}

[[maybe_unused]] std::vector<RAIIAtenTensorHandle> TakeTensors(const char* name, StableIValue value,
                                                               size_t count) {
  auto list = reinterpret_cast<StableListHandle>(value);
  size_t size = 0;
  AOTI_TORCH_ERROR_CODE_CHECK(torch_list_size(list, &size));
  std::vector<RAIIAtenTensorHandle> tensors;
  for (size_t i = 0; i < size; ++i) {
    StableIValue item = 0;
    AOTI_TORCH_ERROR_CODE_CHECK(torch_list_get_item(list, i, &item));
    tensors.push_back(TakeTensor(item));
  }
  AOTI_TORCH_ERROR_CODE_CHECK(torch_delete_list(list));
  if (size != count) {
    throw std::runtime_error(std::string(name) + ": returned " + std::to_string(size) +
                             " tensors, expected " + std::to_string(count));
  }
  return tensors;
}

}  // namespace
}  // namespace aoti_dispatch

"""
