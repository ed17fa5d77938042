// Makes a class of torch.classes from the operators of a custom class, whose names are
// "<class>.<method>".
//
// An object in Python has its constructor's arguments, and the state that the operators take: these
// arguments as the bytes of a tensor.

#if __has_include(<torch/custom_class.h>)

#include <ATen/core/builtin_function.h>
#include <ATen/core/class_type.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <torch/custom_class.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/operators/recorded_problem.h"

namespace {

using c10::Argument;
using c10::IValue;
using torch::jit::Stack;

const std::string kNew = "aoti_new", kLoad = "aoti_load", kUnload = "aoti_unload";

// The operators "<class>.<method>".
class Operators {
 public:
  explicit Operators(std::string qualified) : name_(std::move(qualified)) {}

  std::vector<std::string> methods() const {
    std::vector<std::string> names;
    for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
      if (op.name == name_) names.push_back(op.overload_name);
    }
    return names;
  }

  bool has(const std::string& method) const {
    return c10::Dispatcher::singleton().findSchema({name_, method}).has_value();
  }

  c10::OperatorHandle find(const std::string& method) const {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name_.c_str(), method.c_str());
  }

 private:
  std::string name_;
};

// Whoever has the values may write to their tensors, and operators take the elements of lists over.
Stack Copied(const Stack& fields) {
  const at::NoGradGuard no_grad;
  Stack copies;
  for (const IValue& field : fields) copies.push_back(field.deepcopy());
  return copies;
}

// What an object has in its slot. The class of the C++ object itself is not known here.
struct State : torch::CustomClassHolder {
  State(const Operators& operators, const Stack& fields)
      : fields(Copied(fields)), bytes(Bytes(operators)), operators(operators) {
    Stack stack{bytes, std::string()};
    operators.find(kLoad).callBoxed(&stack);
  }
  ~State() override {
    Stack stack{bytes};
    operators.find(kUnload).callBoxed(&stack);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Stack fields;
  const at::Tensor bytes;
  const Operators operators;

 private:
  at::Tensor Bytes(const Operators& operators) const {
    Stack stack = Copied(fields);
    stack.insert(stack.begin(), at::empty({0}, at::kByte));
    operators.find(kNew).callBoxed(&stack);
    return stack[0].toTensor();
  }
};

const State& StateOf(const IValue& object) {
  return static_cast<const State&>(*object.toObject()->getSlot(0).toCapsule());
}

void SetState(const IValue& object, const Operators& operators, const Stack& fields) {
  object.toObject()->setSlot(0,
                             IValue::make_capsule(c10::make_intrusive<State>(operators, fields)));
}

// The last values of the stack, which are removed from it.
Stack Taken(Stack& stack, std::size_t count) {
  Stack taken(std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(count)),
              std::make_move_iterator(stack.end()));
  stack.resize(stack.size() - count);
  return taken;
}

void PushResult(Stack& stack, Stack results) {
  if (results.empty()) {
    stack.emplace_back();
  } else if (results.size() == 1) {
    stack.push_back(std::move(results[0]));
  } else {
    stack.emplace_back(c10::ivalue::Tuple::create(std::move(results)));
  }
}

c10::TypePtr ResultType(const std::vector<Argument>& results) {
  if (results.empty()) return c10::NoneType::get();
  if (results.size() == 1) return results[0].type();
  std::vector<c10::TypePtr> types;
  for (const Argument& result : results) types.push_back(result.type());
  return c10::TupleType::create(std::move(types));
}

class Definition {
 public:
  Definition(const std::string& name_space, const std::string& name)
      : operators_(name_space + "::" + name),
        type_(c10::ClassType::create(
            c10::QualifiedName("__torch__.torch.classes." + name_space + "." + name),
            std::weak_ptr<torch::jit::CompilationUnit>())) {
    if (!operators_.has(kNew)) {
      throw std::runtime_error("the class " + name + " has no c.init<...>()");
    }
    type_->addAttribute("capsule", c10::CapsuleType::get());
    torch::registerCustomClass(type_);
    for (const std::string& method : operators_.methods()) {
      if (method != kNew && method != kLoad && method != kUnload) AddMethod(method);
    }
    const auto constructor = operators_.find(kNew);
    const std::vector<Argument>& all = constructor.schema().arguments();
    const std::vector<Argument> fields(all.begin() + 1, all.end());
    AddConstructor(fields);
    AddState(fields);
    AddFlatten(fields);
  }

 private:
  void Add(const std::string& name, std::vector<Argument> arguments, c10::TypePtr result,
           std::function<void(Stack&)> function) {
    arguments.emplace(arguments.begin(), "self", type_);
    auto method = std::make_unique<torch::jit::BuiltinOpFunction>(
        c10::QualifiedName(*type_->name(), name),
        c10::FunctionSchema(name, "", std::move(arguments), {Argument("", std::move(result))}),
        std::move(function));
    type_->addMethod(method.get());
    torch::registerCustomClassMethod(std::move(method));
  }

  void AddMethod(const std::string& method) {
    const c10::OperatorHandle op = operators_.find(method);
    const std::vector<Argument>& all = op.schema().arguments();
    const std::size_t count = all.size() - 2;  // the state and the object's name
    Add(method, {all.begin() + 2, all.end()}, ResultType(op.schema().returns()),
        [op, count](Stack& stack) {
          Stack call = Taken(stack, count + 1);
          call[0] = StateOf(call[0]).bytes;
          call.insert(call.begin() + 1, std::string());
          op.callBoxed(&call);
          PushResult(stack, std::move(call));
        });
  }

  void AddConstructor(const std::vector<Argument>& fields) {
    Add("__init__", fields, c10::NoneType::get(),
        [count = fields.size(), operators = operators_](Stack& stack) {
          const Stack values = Taken(stack, count);
          SetState(stack.back(), operators, values);
          stack.back() = IValue();
        });
  }

  // For pickle and copy.deepcopy().
  void AddState(const std::vector<Argument>& fields) {
    std::vector<c10::TypePtr> types;
    for (const Argument& field : fields) types.push_back(field.type());
    const c10::TypePtr type = c10::TupleType::create(types);
    Add("__getstate__", {}, type, [](Stack& stack) {
      stack.back() = c10::ivalue::Tuple::create(StateOf(stack.back()).fields);
    });
    Add("__setstate__", {Argument("state", type)}, c10::NoneType::get(),
        [operators = operators_](Stack& stack) {
          const Stack values = Taken(stack, 1);
          const auto& elements = values[0].toTupleRef().elements();
          SetState(stack.back(), operators, Stack(elements.begin(), elements.end()));
          stack.back() = IValue();
        });
  }

  // For torch.export: what the fake class is made of.
  void AddFlatten(const std::vector<Argument>& fields) {
    std::vector<c10::TypePtr> types;
    std::vector<std::string> names;
    for (const Argument& field : fields) {
      types.push_back(c10::TupleType::create({c10::StringType::get(), field.type()}));
      names.push_back(field.name());
    }
    Add("__obj_flatten__", {}, c10::TupleType::create(types), [names](Stack& stack) {
      // torch.export refuses tensors that two of these calls return.
      const Stack values = Copied(StateOf(stack.back()).fields);
      Stack pairs;
      for (std::size_t i = 0; i < names.size(); ++i) {
        pairs.emplace_back(c10::ivalue::Tuple::create({names[i], values[i]}));
      }
      stack.back() = c10::ivalue::Tuple::create(std::move(pairs));
    });
  }

  const Operators operators_;
  const c10::ClassTypePtr type_;
};

}  // namespace

extern "C" void aoti_custom_class_define(const char* name_space, const char* name, const char* file,
                                         std::uint32_t line) {
  const std::string where = std::string(file) + ":" + std::to_string(line);
  try {
    Definition(name_space, name);
  } catch (const c10::Error& e) {
    aoti::operators::NoteProblem(where, e.what_without_backtrace());
  } catch (const std::exception& e) {
    aoti::operators::NoteProblem(where, e.what());
  }
}

#else  // the torch runtime toolchain has no cxx_headers

#include <cstdint>
#include <string>

#include "runtime/operators/recorded_problem.h"

extern "C" void aoti_custom_class_define(const char* name_space, const char* name, const char* file,
                                         std::uint32_t line) {
  aoti::operators::NoteProblem(
      std::string(file) + ":" + std::to_string(line),
      std::string("the class ") + name_space + "::" + name +
          " needs the headers of libtorch's C++ API: give the torch runtime toolchain its "
          "`cxx_headers`");
}

#endif
