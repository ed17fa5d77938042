// Classes in C++ whose objects models have as members: see docs/custom_classes.md.
//
//   class Buckets {
//    public:
//     explicit Buckets(const torch::stable::Tensor& edges);
//     torch::stable::Tensor Find(const torch::stable::Tensor& x) const;
//   };
//
//   AOTI_CUSTOM_CLASS(example, Buckets) {
//     c.init<torch::stable::Tensor>("edges");
//     c.def<&Buckets::Find>("find", "x");
//   }
//
// In Python the class is torch.classes.example.Buckets. An object is what its constructor's
// arguments make of it: they are stored with the model, and the constructor is called with them
// where the model is loaded. Methods are const, and are called by several threads at once.

#ifndef AOTI_CUSTOM_CLASS_H_
#define AOTI_CUSTOM_CLASS_H_

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "aoti/custom_class_objects.h"
#include "aoti/custom_class_state.h"
#include "runtime/operators/signature.h"

// Makes torch.classes.<name_space>.<name>, whose methods are the operators with this name; on slim,
// which has no such classes, it does nothing.
extern "C" void aoti_custom_class_define(const char* name_space, const char* name, const char* file,
                                         std::uint32_t line);

namespace aoti {

namespace custom_class {

template <typename T>
inline constexpr bool kIsArgument =
    kIsField<T> || std::is_same_v<T, std::optional<torch::stable::Tensor>> ||
    std::is_same_v<T, std::optional<std::int64_t>> || std::is_same_v<T, std::optional<double>>;

template <typename T>
inline constexpr bool kIsResult =
    std::is_void_v<T> || std::is_same_v<T, torch::stable::Tensor> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool>;
template <typename... T>
inline constexpr bool kIsResult<std::tuple<T...>> =
    (std::is_same_v<T, torch::stable::Tensor> && ...);

// An int may be a size that varies.
template <typename T>
std::string ArgumentType() {
  const std::string type = operators::TypeName<T>::get();
  return type.compare(0, 3, "int") == 0 ? "SymInt" + type.substr(3) : type;
}

template <typename... T, typename... Names>
std::string Arguments(const Names&... names) {
  std::string text;
  ((text += ", " + ArgumentType<T>() + " " + names), ...);
  return text;
}

template <typename Result>
std::string ResultTypes() {
  const std::string types = operators::Results<Result>::get();
  return types.find(',') == std::string::npos && !types.empty() ? types : "(" + types + ")";
}

// A method as the function of an operator. object: the name of the model's member, for errors.
template <typename T, auto method, typename Type = decltype(method)>
struct Method {
  static_assert(std::is_member_function_pointer_v<Type> && !std::is_member_function_pointer_v<Type>,
                "def<&Class::Method>(): the method must be const. An object is shared by the "
                "threads that call a model; what changes from call to call belongs in a buffer of "
                "the model, which the method takes as a tensor");
};

template <typename T, auto method, typename Result, typename... A>
struct Method<T, method, Result (T::*)(A...) const> {
  static_assert((kIsArgument<std::remove_cvref_t<A>> && ...),
                "def<&Class::Method>(): an argument has a type that methods can't take. They take "
                "torch::stable::Tensor, int64_t, double, bool and std::string, vectors of these "
                "(but of bool), and std::optional of a tensor or a number");
  static_assert(kIsResult<Result>,
                "def<&Class::Method>(): the result has a type that methods can't return. They "
                "return torch::stable::Tensor, a std::tuple of them, int64_t, double, bool or "
                "nothing");
  static Result Call(const torch::stable::Tensor& state, const std::string& object,
                     std::remove_cvref_t<A>... arguments) {
    return (Objects<T>::Of(state, object).get()->*method)(arguments...);
  }
  static auto* Boxed() { return TORCH_BOX((&Method::Call)); }
  template <typename... Names>
  static std::string Schema(const Names&... names) {
    static_assert(sizeof...(Names) == sizeof...(A),
                  "def<&Class::Method>(\"name\", ...): one name for each of its arguments");
    return "(Tensor state, str object" + Arguments<std::remove_cvref_t<A>...>(names...) + ") -> " +
           ResultTypes<Result>();
  }
};

template <typename T, auto method, typename Result, typename... A>
struct Method<T, method, Result (T::*)(A...) const noexcept>
    : Method<T, static_cast<Result (T::*)(A...) const>(method)> {};

}  // namespace custom_class

// What AOTI_CUSTOM_CLASS declares about the class T.
template <typename T>
class CustomClass {
 public:
  // qualified: "example::Buckets"
  CustomClass(const char* qualified, const char* name_space, const char* name, const char* file,
              std::uint32_t line)
      : name_(name),
        schemas_(Library::Kind::FRAGMENT, name_space, nullptr, file, line),
        kernels_(Library::Kind::IMPL, name_space, "CPU", file, line) {
    custom_class::Objects<T>::name = qualified;
  }

  // The constructor, and the names of its arguments: torch::stable::Tensor, int64_t, double, bool,
  // std::string, and vectors of these but of bool.
  template <typename... Fields, typename... Names>
  void init(const Names&... names) {
    static_assert(sizeof...(Names) == sizeof...(Fields),
                  "init<Types...>(\"name\", ...): one name for each of its arguments");
    static_assert((custom_class::kIsField<Fields> && ...),
                  "init<Types...>(): the state of an object consists of torch::stable::Tensor, "
                  "int64_t, double, bool and std::string, and vectors of these (but of bool)");
    static_assert(std::is_constructible_v<T, Fields...>,
                  "init<Types...>(): the class has no constructor that takes these types");
    using State = custom_class::State<T, Fields...>;
    custom_class::Objects<T>::make = &State::Make;
    const std::string arguments = custom_class::Arguments<Fields...>(names...);
    State::signature() = arguments.empty() ? "" : arguments.substr(2);
    Add("aoti_new", "(Tensor state" + arguments + ") -> Tensor", TORCH_BOX((&State::New)));
    Add("aoti_load", "(Tensor state, str object) -> ()",
        TORCH_BOX((&custom_class::Objects<T>::Load)));
    Add("aoti_unload", "(Tensor state) -> ()", TORCH_BOX((&custom_class::Objects<T>::Unload)));
  }

  // A const method, its name in Python, and the names of its arguments.
  template <auto method, typename... Names>
  void def(const char* name, const Names&... names) {
    using Boxed = custom_class::Method<T, method>;
    Add(name, Boxed::Schema(names...), Boxed::Boxed());
  }

 private:
  using Library = torch::stable::detail::StableLibrary;
  using Kernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

  void Add(const std::string& method, const std::string& schema, Kernel kernel) {
    const std::string op = name_ + "." + method;
    schemas_.def((op + schema).c_str());
    kernels_.impl(op.c_str(), kernel);
  }

  const std::string name_;
  // The operators are registered as long as these exist.
  Library schemas_;
  Library kernels_;
};

namespace custom_class {

template <typename T>
class Registration {
 public:
  Registration(const char* qualified, const char* name_space, const char* name, const char* file,
               std::uint32_t line, void (*define)(CustomClass<T>&))
      : class_(qualified, name_space, name, file, line) {
    define(class_);
    aoti_custom_class_define(name_space, name, file, line);
  }

 private:
  CustomClass<T> class_;
};

}  // namespace custom_class
}  // namespace aoti

// Declares torch.classes.<name_space>.<name>; a body follows, in which `c` is the
// aoti::CustomClass<name>. Write it once, in a source.
#define AOTI_CUSTOM_CLASS(name_space, name)                                                       \
  static void aoti_define_class_##name(::aoti::CustomClass<name>& c);                             \
  static const ::aoti::custom_class::Registration<name> aoti_class_##name(                        \
      #name_space "::" #name, #name_space, #name, __FILE__, __LINE__, &aoti_define_class_##name); \
  static void aoti_define_class_##name(::aoti::CustomClass<name>& c)

#endif  // AOTI_CUSTOM_CLASS_H_
