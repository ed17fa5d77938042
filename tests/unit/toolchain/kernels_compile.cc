// What generated kernels include.
#include <torch/csrc/inductor/cpp_prefix.h>

int main() { return 0; }
