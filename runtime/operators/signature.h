// The compiler's first include for the sources of a `torch_custom_ops` target.
//
// It says which target the file's operators are of: a program may have several. And TORCH_BOX also
// says which types its C++ function has. PyTorch does not compare them with the operator's schema,
// and an argument of another type would be read as bits without a meaning.

#ifndef AOTI_RUNTIME_OPERATORS_SIGNATURE_H_
#define AOTI_RUNTIME_OPERATORS_SIGNATURE_H_

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

// Notes the types of a boxed function: "Tensor,float->Tensor", with the schema's names for them.
extern "C" void aoti_operator_note_types(void (*boxed)(StableIValue*, uint64_t, uint64_t),
                                         const char* types);

// Names the target of the operators that register themselves from here on, until the next call.
extern "C" void aoti_operators_begin(const char* target);

namespace {

// Initialized before what follows in this file.
[[maybe_unused]] const bool aoti_operators_begun = [] {
  aoti_operators_begin(AOTI_OPERATORS_TARGET);
  return true;
}();

}  // namespace

namespace aoti::operators {

template <typename T>
struct TypeName {
  // What the schema has no name for, or several: it is not compared.
  static std::string get() { return std::is_same_v<T, float> ? "C++'s float" : "?"; }
};

#define AOTI_TYPE_NAME(type, name)            \
  template <>                                 \
  struct TypeName<type> {                     \
    static std::string get() { return name; } \
  };
AOTI_TYPE_NAME(torch::stable::Tensor, "Tensor")
AOTI_TYPE_NAME(std::int64_t, "int")
AOTI_TYPE_NAME(double, "float")
AOTI_TYPE_NAME(bool, "bool")
AOTI_TYPE_NAME(std::string, "str")
AOTI_TYPE_NAME(std::string_view, "str")
AOTI_TYPE_NAME(torch::headeronly::ScalarType, "ScalarType")
AOTI_TYPE_NAME(torch::headeronly::Layout, "Layout")
AOTI_TYPE_NAME(torch::headeronly::MemoryFormat, "MemoryFormat")
AOTI_TYPE_NAME(torch::stable::Device, "Device")
#undef AOTI_TYPE_NAME

template <typename T>
struct TypeName<std::optional<T>> {
  static std::string get() { return TypeName<T>::get() + "?"; }
};
template <typename T>
struct TypeName<std::vector<T>> {
  static std::string get() { return TypeName<T>::get() + "[]"; }
};
template <typename T>
struct TypeName<torch::headeronly::HeaderOnlyArrayRef<T>> {
  static std::string get() { return TypeName<T>::get() + "[]"; }
};

template <typename... T>
std::string Join() {
  std::string text;
  ((text += (text.empty() ? "" : ",") + TypeName<std::remove_cvref_t<T>>::get()), ...);
  return text;
}

template <typename T>
struct Results {
  static std::string get() { return Join<T>(); }
};
template <>
struct Results<void> {
  static std::string get() { return ""; }
};
template <typename... T>
struct Results<std::tuple<T...>> {
  static std::string get() { return Join<T...>(); }
};

template <typename Function>
struct Types;
template <typename Result, typename... Arguments>
struct Types<Result(Arguments...)> {
  static std::string get() {
    return Join<Arguments...>() + "->" + Results<std::remove_cvref_t<Result>>::get();
  }
};

template <typename Function, Function* function>
auto* Box() {
  auto* boxed = &torch::stable::detail::boxer<Function, function>::boxed_fn;
  aoti_operator_note_types(boxed, Types<Function>::get().c_str());
  return boxed;
}

}  // namespace aoti::operators

#undef TORCH_BOX
#define TORCH_BOX(func) \
  (::aoti::operators::Box<std::remove_pointer_t<std::remove_reference_t<decltype(func)>>, (func)>())

#endif  // AOTI_RUNTIME_OPERATORS_SIGNATURE_H_
