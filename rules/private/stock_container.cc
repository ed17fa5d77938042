// torch's container of a compiled program, for libraries that stock PyTorch loads.

// As in generated code: without it a base of the program's class has one member less.
#define USE_MMAP_EXTERNAL
#include <torch/_inductor/codegen/aoti_runtime/interface.cpp>
