// The functions of the C ABI with which STABLE_TORCH_LIBRARY registers operators.

#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/slim/abi/declarations.h"
#include "runtime/slim/abi/guarded.h"
#include "runtime/slim/abi/operators.h"
#include "runtime/slim/tensor/error.h"

struct TorchLibraryOpaque {
  std::string name_space;
  std::string where;  // the target and the macro's place in the source
  bool for_cpu;       // whether kernels that it adds run on tensors in the CPU's memory
};

namespace {

// Kernels for autograd, for other devices, and for shapes alone are of no use in a compiled model.
bool IsForCpu(const char* key) {
  for (const char* one : {"CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd",
                          "CompositeExplicitAutogradNonFunctional"}) {
    if (std::strcmp(key, one) == 0) return true;
  }
  return false;
}

AOTITorchError Make(const char* ns, const char* file, std::uint32_t line, bool for_cpu,
                    TorchLibraryHandle* result) {
  return aoti::slim::Guarded([&] {
    *result = new TorchLibraryOpaque{ns, aoti::slim::PlaceOfOperator(file, line), for_cpu};
  });
}

}  // namespace

extern "C" {

AOTITorchError aoti_torch_library_init_def(const char* ns, const char* file, uint32_t line,
                                           TorchLibraryHandle* ret_new_torch_lib) {
  return Make(ns, file, line, /*for_cpu=*/true, ret_new_torch_lib);
}

AOTITorchError aoti_torch_library_init_fragment(const char* ns, const char* file, uint32_t line,
                                                TorchLibraryHandle* ret_new_torch_lib) {
  return Make(ns, file, line, /*for_cpu=*/true, ret_new_torch_lib);
}

AOTITorchError aoti_torch_library_init_impl(const char* ns, const char* k, const char* file,
                                            uint32_t line, TorchLibraryHandle* ret_new_torch_lib) {
  return Make(ns, file, line, IsForCpu(k), ret_new_torch_lib);
}

AOTITorchError aoti_torch_library_def(TorchLibraryHandle self, const char* schema) {
  return aoti::slim::Guarded(
      [&] { aoti::slim::DeclareOperator(self->name_space, schema, self->where); });
}

AOTITorchError torch_library_def_with_tags(TorchLibraryHandle self, const char* schema,
                                           const int32_t*, int32_t) {
  return aoti_torch_library_def(self, schema);
}

AOTITorchError torch_library_impl(TorchLibraryHandle self, const char* name,
                                  void (*fn)(StableIValue*, uint64_t, uint64_t), uint64_t) {
  return aoti::slim::Guarded([&] {
    if (self->for_cpu) {
      aoti::slim::ImplementOperator(self->name_space, name, fn, self->where);
    }
  });
}

AOTITorchError aoti_torch_library_impl(TorchLibraryHandle self, const char* name,
                                       void (*fn)(StableIValue*, uint64_t, uint64_t)) {
  return torch_library_impl(self, name, fn, 0);
}

AOTITorchError torch_library_set_python_module(TorchLibraryHandle, const char*, const char*) {
  return AOTI_TORCH_SUCCESS;
}

// Operators stay until the process ends: other threads may still run models then.
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle tlh) {
  delete tlh;
  return AOTI_TORCH_SUCCESS;
}

}  // extern "C"
