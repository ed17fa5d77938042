// A Python module of a model with methods, over the fake programs that share weights: `forward`
// counts, `read` and `read_all` return what it counted,
// and `locate` returns where its input is.

#include <span>

#include "runtime/python/module.h"
#include "runtime/tests/fake_program.h"

namespace {

using aoti::ProgramSpec;
using aoti::python::MethodSpec;
using aoti::python::ResultKind;
using aoti::python::ResultNode;

constexpr const char* kForwardInputs[] = {"cache"};
constexpr const char* kForwardOutputs[] = {"count", "total"};
constexpr const char* kLocateInputs[] = {"x"};
constexpr const char* kLocateOutputs[] = {"address"};
constexpr const char* kReadOutputs[] = {"total"};
constexpr ResultNode kRead[] = {{ResultKind::kObject, 1, "Total"},
                                {ResultKind::kTensor, 0, "", "total"}};
constexpr ResultNode kReadAll[] = {{ResultKind::kDict, 2},
                                   {ResultKind::kObject, 1, "Total", "all"},
                                   {ResultKind::kTensor, 0, "", "total"},
                                   {ResultKind::kInt, 0, "7", "seven"}};
constexpr MethodSpec kMethods[] = {
    {.name = "forward",
     .doc = "Counts.\n",
     .input_names = kForwardInputs,
     .output_names = kForwardOutputs,
     .outputs_class = "ForwardOutputs"},
    {.name = "read", .input_names = {}, .output_names = kReadOutputs, .result = kRead},
    {.name = "read_all", .input_names = {}, .output_names = kReadOutputs, .result = kReadAll},
    {.name = "locate",
     .input_names = kLocateInputs,
     .output_names = kLocateOutputs,
     .outputs_class = "LocateOutputs"},
};

const ProgramSpec* Renamed(const ProgramSpec& spec, const char* name) {
  auto* const renamed = new ProgramSpec(spec);
  renamed->name = name;
  return renamed;
}

std::span<const ProgramSpec* const> Specs() {
  static const ProgramSpec* const specs[] = {
      Renamed(aoti::testing::CounterSpec(), "fake_methods.forward"),
      Renamed(aoti::testing::ReaderSpec(), "fake_methods.read"),
      Renamed(aoti::testing::ReaderSpec(), "fake_methods.read_all"),
      Renamed(aoti::testing::LocatorSpec(), "fake_methods.locate")};
  return specs;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) _object* PyInit_fake_methods() {
  static constexpr aoti::python::MethodsModuleSpec kModule = {.name = "fake_methods",
                                                              .label = "//tests:fake_methods",
                                                              .doc = "Fakes.\n",
                                                              .methods = kMethods};
  return aoti::python::InitModule(kModule, Specs());
}
