// Makes a ProgramVTable for a class that torch's code generator wrote. Only generated code includes
// this:
//
//   #include "runtime/core/program_impl.h"
//   namespace aoti_programs {
//   extern const ::aoti::ProgramVTable models_encoder;
//   const ::aoti::ProgramVTable models_encoder =
//       ::aoti::internal::MakeProgramVTable<AOTInductorModel_models_encoder>();
//   }
//
// The class is that of runtime/core/generated_program.h or, for GPUs, of torch's headers, one of
// which must be included before. Of the latter, nothing here calls what loads constants: those
// members read `_binary_constants_bin_start` and are templates that are never instantiated, so
// a program does not need that symbol, and several programs can be linked together.

#ifndef AOTI_RUNTIME_CORE_PROGRAM_IMPL_H_
#define AOTI_RUNTIME_CORE_PROGRAM_IMPL_H_

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/core/program.h"

// Not every library defines this function.
extern "C" __attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
extern "C" __attribute__((weak)) AOTITorchError aoti_slim_set_packed(AtenTensorHandle tensor,
                                                                     const char* kind,
                                                                     const void* data,
                                                                     std::size_t bytes);

extern "C" __attribute__((weak)) void aoti_slim_manual_seed(std::uint64_t seed);

namespace aoti::internal {

constexpr ShimFunctions LinkedShim() {
  return {
      .abi_version = &aoti_torch_abi_version,
      .create_tensor_from_blob = &aoti_torch_create_tensor_from_blob,
      .delete_tensor_object = &aoti_torch_delete_tensor_object,
      .get_data_ptr = &aoti_torch_get_data_ptr,
      .get_dtype = &aoti_torch_get_dtype,
      .get_dim = &aoti_torch_get_dim,
      .get_sizes = &aoti_torch_get_sizes,
      .get_strides = &aoti_torch_get_strides,
      .get_device_type = &aoti_torch_get_device_type,
      .grad_mode_is_enabled = &aoti_torch_grad_mode_is_enabled,
      .grad_mode_set_enabled = &aoti_torch_grad_mode_set_enabled,
      .release =
          [](void* tensor) {
            aoti_torch_delete_tensor_object(static_cast<AtenTensorHandle>(tensor));
          },
      .last_error = &torch_exception_get_what_without_backtrace,
      .set_packed = &aoti_slim_set_packed,
      .manual_seed = &aoti_slim_manual_seed,
  };
}

template <class GeneratedModel>
void* CreateOnCpu(std::int32_t) {
  return new GeneratedModel();
}

template <class GeneratedModel>
constexpr ProgramVTable MakeProgramVTable(
    void* (*create)(std::int32_t device) = &CreateOnCpu<GeneratedModel>) {
  namespace aot = ::torch::aot_inductor;
  ProgramVTable table{};
  table.shim = LinkedShim();
  table.create = create;
  table.destroy = [](void* instance) { delete static_cast<GeneratedModel*>(instance); };
  table.counts = [](const void* instance) -> ProgramCounts {
    const auto* model = static_cast<const GeneratedModel*>(instance);
    return {model->num_inputs(), model->num_outputs(), model->num_constants()};
  };
  table.set_constants = [](void* instance, const AtenTensorHandle* handles) {
    auto* model = static_cast<GeneratedModel*>(instance);
    auto constants = std::make_shared<std::vector<aot::ConstantHandle>>();
    constants->reserve(model->num_constants());
    for (std::size_t i = 0; i < model->num_constants(); ++i) constants->emplace_back(handles[i]);
    model->update_constants_array(std::move(constants));
  };
  table.run = [](void* instance, AtenTensorHandle* inputs, AtenTensorHandle* outputs,
                 void* stream) {
    static_cast<GeneratedModel*>(instance)->run_single_threaded(inputs, outputs, stream,
                                                                /*proxy_executor=*/nullptr);
  };
  return table;
}

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_PROGRAM_IMPL_H_
