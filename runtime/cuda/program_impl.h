// Makes the ProgramVTable of a program that runs on CUDA; see runtime/core/program_impl.h. Only
// generated code includes this:
//
//   #include "runtime/cuda/program_impl.h"
//   ...
//   const ::aoti::ProgramVTable models_encoder =
//       ::aoti::cuda::MakeProgramVTable<AOTInductorModel_models_encoder>(kKernelTable);

#ifndef AOTI_RUNTIME_CUDA_PROGRAM_IMPL_H_
#define AOTI_RUNTIME_CUDA_PROGRAM_IMPL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/program_impl.h"
#include "runtime/cuda/open.h"

// Only the slim runtime has it.
extern "C" void aoti_slim_set_device_functions(const aoti::internal::DeviceFunctions* functions);

namespace aoti::cuda {

// `kernels` must have static storage.
template <class GeneratedModel>
constexpr ProgramVTable MakeProgramVTable(const KernelTable& kernels) {
  namespace aot = ::torch::aot_inductor;
  ProgramVTable table =
      internal::MakeProgramVTable<GeneratedModel>([](std::int32_t device) -> void* {
        return new GeneratedModel(std::make_shared<aot::ConstantMap>(),
                                  std::make_shared<std::vector<aot::ConstantHandle>>(),
                                  "cuda:" + std::to_string(device), std::nullopt);
      });
  table.cuda = &kernels;
  table.open_device = [](const KernelTable& of, std::int32_t device) {
    aoti_slim_set_device_functions(&TensorFunctions());
    return Open(of, device);
  };
  return table;
}

}  // namespace aoti::cuda

#endif  // AOTI_RUNTIME_CUDA_PROGRAM_IMPL_H_
