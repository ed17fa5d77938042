// Prevents Python code from making objects of a C++ class without its C++ part.

#ifndef AOTI_RUNTIME_PYTHON_SEAL_H_
#define AOTI_RUNTIME_PYTHON_SEAL_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace aoti::python {

// Disables, for a class whose objects only C++ makes, all other ways to make them: a call of the
// class, __new__(), copy, pickle, and the assignment of __class__. They raise a TypeError with
// `message`, which must have static lifetime, or with Python's own message. The class can't be
// changed afterwards.
void Seal(const pybind11::object& type, const char* message);

// Turns a member function into a method for def(). Without this, `this` is null if Python code
// passes None.
template <typename Class, typename Returned, typename... Args>
auto Method(Returned (Class::*method)(Args...) const) {
  return [method](const Class& self, Args... args) -> Returned {
    return (self.*method)(std::forward<Args>(args)...);
  };
}

}  // namespace aoti::python

#endif  // AOTI_RUNTIME_PYTHON_SEAL_H_
