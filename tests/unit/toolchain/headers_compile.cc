// The headers that the target side offers compile on their own, and the C ABI links.
#include <torch/csrc/inductor/aoti_include/cpu.h>
#include <torch/csrc/inductor/aoti_runtime/model_container.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

int main() { return aoti_torch_device_type_cpu() == 0 ? 0 : 1; }
