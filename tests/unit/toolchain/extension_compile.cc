// The generated Python modules include pybind11 and Python's headers.
#include <pybind11/pybind11.h>

PYBIND11_MODULE(extension_compile, module) { module.attr("answer") = 42; }
