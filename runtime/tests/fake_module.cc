// A Python module over a fake program: MODULE is the module's name, SPEC the function in
// fake_program.h that returns its spec.

#include "runtime/python/module.h"
#include "runtime/tests/fake_program.h"

#define CONCATENATE2(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

namespace {

constexpr const char* kInputs[] = {INPUTS};
constexpr const char* kOutputs[] = {OUTPUTS};

}  // namespace

extern "C" __attribute__((visibility("default"))) _object* CONCATENATE(PyInit_, MODULE)() {
  static constexpr aoti::python::ModuleSpec kModule = {
      .name = TEXT(MODULE), .doc = "A fake.\n", .input_names = kInputs, .output_names = kOutputs};
  return aoti::python::InitModule(kModule, aoti::testing::SPEC());
}
