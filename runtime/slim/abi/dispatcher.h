// Operators that the C ABI calls by name, because they have no C function of their own.
//
// A file in ops/ implements an operator as a function on the "stack", PyTorch's array of 64-bit
// values: the arguments are in the order of the operator's schema, and the results replace them.
//
//   void Bincount(StableIValue* stack) {
//     const TensorPtr self = TakeTensor(stack[0]);  // the function owns its arguments
//     const TensorPtr weights = TakeOptionalTensor(stack[1]);
//     const std::int64_t minlength = TakeInt(stack[2]);
//     stack[0] = Give(Bincount(*self, weights.get(), minlength));
//   }
//   AOTI_SLIM_DISPATCHER_OP(aten_bincount, "aten::bincount", "", Bincount)
//
// Take all arguments before anything can fail, so that none of them leaks.

#ifndef AOTI_RUNTIME_SLIM_ABI_DISPATCHER_H_
#define AOTI_RUNTIME_SLIM_ABI_DISPATCHER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/tensor/memory.h"
#include "runtime/slim/tensor/tensor.h"

namespace aoti::slim {

struct DispatcherOp {
  const char* name;      // "aten::bincount"
  const char* overload;  // "", "Tensor"
  void (*call)(StableIValue* stack);
};

// An entry of the table of operators, which stays until the program ends.
class DispatcherEntry {
 public:
  explicit DispatcherEntry(const DispatcherOp& op) noexcept;
  const DispatcherOp& op;
  const DispatcherEntry* const next;
};

}  // namespace aoti::slim

// Adds an operator to the table. `unique` is the name with underscores for "::", followed by the
// overload if there is one: aten_bincount, aten_isin_Tensor_Tensor. A program that links slim from
// an archive names the symbol aoti_slim_op_<unique> (-u, or a reference) to link the operator.
#define AOTI_SLIM_DISPATCHER_OP(unique, name, overload, function)                      \
  extern "C" {                                                                         \
  extern const ::aoti::slim::DispatcherOp aoti_slim_op_##unique;                       \
  const ::aoti::slim::DispatcherOp aoti_slim_op_##unique = {name, overload, function}; \
  }                                                                                    \
  namespace {                                                                          \
  const ::aoti::slim::DispatcherEntry g_entry_##unique(aoti_slim_op_##unique);         \
  }

// A growing array of values, in memory from the pool.
struct StableListOpaque {
 public:
  StableListOpaque() = default;
  ~StableListOpaque() { aoti::slim::Release(values_, capacity_ * sizeof(StableIValue)); }
  StableListOpaque(const StableListOpaque&) = delete;
  StableListOpaque& operator=(const StableListOpaque&) = delete;
  static void* operator new(std::size_t bytes) { return aoti::slim::Allocate(bytes); }
  static void operator delete(void* list, std::size_t bytes) { aoti::slim::Release(list, bytes); }

  void Reserve(std::size_t capacity);
  void PushBack(StableIValue value);
  std::size_t size() const { return size_; }
  StableIValue& at(std::size_t i);  // throws OpError

 private:
  StableIValue* values_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

namespace aoti::slim {

// Functions that read arguments. Those that return objects own them.
inline std::int64_t TakeInt(StableIValue value) { return static_cast<std::int64_t>(value); }
inline bool TakeBool(StableIValue value) { return (value & 0xff) != 0; }
inline double TakeFloat(StableIValue value) { return std::bit_cast<double>(value); }
inline ScalarType TakeDType(StableIValue value) {
  return static_cast<ScalarType>(static_cast<std::int32_t>(value));
}
inline TensorPtr TakeTensor(StableIValue value) {
  return TensorPtr(reinterpret_cast<Tensor*>(value));
}

// The value of an optional argument, to be passed to one of the functions here; nullopt if it is
// None.
std::optional<StableIValue> TakeOptional(StableIValue value);
TensorPtr TakeOptionalTensor(StableIValue value);  // null: none
std::optional<std::int64_t> TakeOptionalInt(StableIValue value);
std::optional<bool> TakeOptionalBool(StableIValue value);
std::optional<double> TakeOptionalFloat(StableIValue value);
std::optional<ScalarType> TakeOptionalDType(StableIValue value);

// A list of plain values.
class TakenList {
 public:
  explicit TakenList(StableIValue value) : list_(reinterpret_cast<StableListOpaque*>(value)) {}
  std::size_t size() const { return list_->size(); }
  StableIValue operator[](std::size_t i) const { return list_->at(i); }
  std::int64_t Int(std::size_t i) const { return TakeInt(list_->at(i)); }
  Ints ints() const;  // the whole list; valid as long as this object exists

 private:
  std::unique_ptr<StableListOpaque> list_;
};

// A list of tensors, or of optional ones.
class TakenTensors {
 public:
  enum class Elements { kTensors, kOptionalTensors };
  explicit TakenTensors(StableIValue value, Elements elements = Elements::kTensors);
  ~TakenTensors();
  TakenTensors(const TakenTensors&) = delete;
  TakenTensors& operator=(const TakenTensors&) = delete;
  std::size_t size() const { return tensors_.size(); }
  const Tensor* operator[](std::size_t i) const { return tensors_[i]; }  // null: none
  // The pointer that functions of the C ABI take for a list.
  Tensor* const* data() const { return tensors_.data(); }

 private:
  Scratch<Tensor*> tensors_;
};

class TakenText {
 public:
  explicit TakenText(StableIValue value) : text_(reinterpret_cast<StringHandle>(value)) {}
  ~TakenText();
  TakenText(const TakenText&) = delete;
  TakenText& operator=(const TakenText&) = delete;
  std::string_view view() const;

 private:
  StringHandle text_;
};

// Functions that return results.
inline StableIValue Give(TensorPtr tensor) {
  return reinterpret_cast<StableIValue>(tensor.release());
}
StableIValue GiveList(TensorPtr* tensors, std::size_t count);

}  // namespace aoti::slim

#endif  // AOTI_RUNTIME_SLIM_ABI_DISPATCHER_H_
