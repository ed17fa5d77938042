// Classes of which Python code can't make objects that hold nothing.

#ifndef AOTI_RUNTIME_PYTHON_SEAL_H_
#define AOTI_RUNTIME_PYTHON_SEAL_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace aoti::python {

// Takes from a class whose objects come from C++ alone every other way to them: a call, __new__(),
// copy, pickle, and the assignment of __class__. They raise a TypeError with `message`, which must
// have static lifetime, or with Python's own. The class can't be changed afterwards.
void Seal(const pybind11::object& type, const char* message);

// A method for def(). A member function's own `this` is null where Python code passes None.
template <typename Class, typename Returned, typename... Args>
auto Method(Returned (Class::*method)(Args...) const) {
  return [method](const Class& self, Args... args) -> Returned {
    return (self.*method)(std::forward<Args>(args)...);
  };
}

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_SEAL_H_
