// What a program of the slim runtime owns, in the binary of one of libtorch.

#define AOTI_SLIM
#define AOTInductorModel AOTInductorModel_on_slim
// clang-format off
#include "runtime/slim/names.h"
#include "runtime/core/generated_program.h"
// clang-format on

#include "runtime/tests/generated_program_slim.h"

namespace aoti::testing {

void OwnOnSlim(AtenTensorHandle tensor) {
  torch::aot_inductor::RAIIAtenTensorHandle owner(tensor);
  torch::aot_inductor::RAIIAtenTensorHandle next(std::move(owner));
}

}  // namespace aoti::testing
