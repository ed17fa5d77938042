#include "runtime/slim/abi/dispatcher.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/abi/operators.h"
#include "runtime/slim/tensor/error.h"

void StableListOpaque::Reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  auto* values = static_cast<StableIValue*>(aoti::slim::Allocate(capacity * sizeof(StableIValue)));
  std::copy_n(values_, size_, values);
  aoti::slim::Release(values_, capacity_ * sizeof(StableIValue));
  values_ = values;
  capacity_ = capacity;
}

void StableListOpaque::PushBack(StableIValue value) {
  if (size_ == capacity_) Reserve(std::max<std::size_t>(8, 2 * capacity_));
  values_[size_++] = value;
}

StableIValue& StableListOpaque::at(std::size_t i) {
  aoti::slim::Require(i < size_, "index ", i, " is out of range of a list of ", size_);
  return values_[i];
}

// The characters follow the object in memory.
struct StringOpaque {
  explicit StringOpaque(std::size_t size) : length(size) {}
  static StringOpaque* New(const char* data, std::size_t length) {
    void* memory = aoti::slim::Allocate(sizeof(StringOpaque) + length + 1);
    auto* text = new (memory) StringOpaque(length);
    std::copy_n(data, length, text->data());
    text->data()[length] = '\0';
    return text;
  }
  static void Delete(StringOpaque* text) {
    if (text != nullptr) aoti::slim::Release(text, sizeof(StringOpaque) + text->length + 1);
  }
  char* data() { return reinterpret_cast<char*>(this + 1); }

  const std::size_t length;
};

namespace aoti::slim {
namespace {

// constinit: entries in other files are constructed in any order, and this must exist before them.
constinit const DispatcherEntry* g_first = nullptr;

const DispatcherOp* Find(const char* name, const char* overload) {
  for (const DispatcherEntry* entry = g_first; entry != nullptr; entry = entry->next) {
    if (std::strcmp(entry->op.name, name) == 0 && std::strcmp(entry->op.overload, overload) == 0) {
      return &entry->op;
    }
  }
  return nullptr;
}

void Call(const char* name, const char* overload, StableIValue* stack) {
  if (const DispatcherOp* op = Find(name, overload)) return op->call(stack);
  const ProgramOperator* op = FindOperator(name, overload);
  // The arguments leak, because the types of an unknown operator's arguments are not known.
  Require(op != nullptr && op->kernel != nullptr, "operator ", name, *overload != '\0' ? "." : "",
          overload, " is not in this program");
  op->kernel(stack, op->schema.arguments.size(), op->schema.results.size());
}

}  // namespace

DispatcherEntry::DispatcherEntry(const DispatcherOp& op) noexcept : op(op), next(g_first) {
  g_first = this;
}

std::optional<StableIValue> TakeOptional(StableIValue value) {
  auto* boxed = reinterpret_cast<StableIValue*>(value);
  if (boxed == nullptr) return std::nullopt;
  const StableIValue inner = *boxed;
  Release(boxed, sizeof(StableIValue));
  return inner;
}

TensorPtr TakeOptionalTensor(StableIValue value) {
  const std::optional<StableIValue> inner = TakeOptional(value);
  return inner ? TakeTensor(*inner) : nullptr;
}

std::optional<std::int64_t> TakeOptionalInt(StableIValue value) {
  const std::optional<StableIValue> inner = TakeOptional(value);
  return inner ? std::optional(TakeInt(*inner)) : std::nullopt;
}

std::optional<bool> TakeOptionalBool(StableIValue value) {
  const std::optional<StableIValue> inner = TakeOptional(value);
  return inner ? std::optional(TakeBool(*inner)) : std::nullopt;
}

std::optional<double> TakeOptionalFloat(StableIValue value) {
  const std::optional<StableIValue> inner = TakeOptional(value);
  return inner ? std::optional(TakeFloat(*inner)) : std::nullopt;
}

std::optional<ScalarType> TakeOptionalDType(StableIValue value) {
  const std::optional<StableIValue> inner = TakeOptional(value);
  return inner ? std::optional(TakeDType(*inner)) : std::nullopt;
}

Ints TakenList::ints() const {
  // A list that was written as uint64 may be read as int64.
  if (size() == 0) return {};
  return {reinterpret_cast<const std::int64_t*>(&list_->at(0)), size()};
}

TakenTensors::TakenTensors(StableIValue value, Elements elements)
    : tensors_(reinterpret_cast<StableListOpaque*>(value)->size()) {
  const TakenList list(value);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i] = elements == Elements::kTensors ? TakeTensor(list[i]).release()
                                                 : TakeOptionalTensor(list[i]).release();
  }
}

TakenTensors::~TakenTensors() {
  for (Tensor* tensor : tensors_) delete tensor;
}

TakenText::~TakenText() { StringOpaque::Delete(text_); }
std::string_view TakenText::view() const { return {text_->data(), text_->length}; }

StableIValue GiveList(TensorPtr* tensors, std::size_t count) {
  auto list = std::make_unique<StableListOpaque>();
  list->Reserve(count);
  for (std::size_t i = 0; i < count; ++i) list->PushBack(Give(std::move(tensors[i])));
  return reinterpret_cast<StableIValue>(list.release());
}

}  // namespace aoti::slim

using aoti::slim::Guarded;

extern "C" {

AOTITorchError aoti_torch_call_dispatcher(const char* opName, const char* overloadName,
                                          StableIValue* stack) {
  return Guarded([&] { aoti::slim::Call(opName, overloadName, stack); });
}

AOTITorchError torch_call_dispatcher(const char* opName, const char* overloadName,
                                     StableIValue* stack, uint64_t) {
  return aoti_torch_call_dispatcher(opName, overloadName, stack);
}

AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* ret) {
  return Guarded([&] {
    auto list = std::make_unique<StableListOpaque>();
    list->Reserve(size);
    *ret = list.release();
  });
}

AOTITorchError torch_list_size(StableListHandle list_handle, size_t* size) {
  return Guarded([&] { *size = list_handle->size(); });
}

AOTITorchError torch_list_get_item(StableListHandle list_handle, size_t index,
                                   StableIValue* element) {
  return Guarded([&] { *element = list_handle->at(index); });
}

AOTITorchError torch_list_set_item(StableListHandle list_handle, size_t index,
                                   StableIValue element) {
  return Guarded([&] { list_handle->at(index) = element; });
}

AOTITorchError torch_list_push_back(StableListHandle list_handle, StableIValue element) {
  return Guarded([&] { list_handle->PushBack(element); });
}

AOTITorchError torch_delete_list(StableListHandle list_handle) {
  return Guarded([&] { delete list_handle; });
}

AOTITorchError torch_new_string_handle(const char* data, size_t length, StringHandle* handle) {
  return Guarded([&] { *handle = StringOpaque::New(data, length); });
}

AOTITorchError torch_delete_string(StringHandle handle) {
  return Guarded([&] { StringOpaque::Delete(handle); });
}

AOTITorchError torch_string_length(StringHandle handle, size_t* length) {
  return Guarded([&] { *length = handle->length; });
}

AOTITorchError torch_string_c_str(StringHandle handle, const char** data) {
  return Guarded([&] { *data = handle->data(); });
}

AOTITorchError torch_new_stable_ivalue(StableIValue** ret_value) {
  return Guarded(
      [&] { *ret_value = new (aoti::slim::Allocate(sizeof(StableIValue))) StableIValue(0); });
}

AOTITorchError torch_delete_stable_ivalue(StableIValue* value) {
  return Guarded([&] { aoti::slim::Release(value, sizeof(StableIValue)); });
}

}  // extern "C"
