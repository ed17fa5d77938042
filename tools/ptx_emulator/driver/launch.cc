// cuLaunchKernel.

#include <cstring>

#include "tools/ptx_emulator/driver/state.h"

using namespace ptx_emulator;

namespace {

std::string Three(const std::array<uint32_t, 3>& sizes) {
  return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
}

// What is wrong with the sizes; empty if nothing is.
std::string CheckSizes(const Function& function, const Launch& launch) {
  const Kernel& kernel = *function.kernel;
  uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  if (blocks == 0 || launch.grid[0] > 2147483647 || launch.grid[1] > 65535 ||
      launch.grid[2] > 65535) {
    return "a grid of " + Three(launch.grid) + "; expected 1 to 2147483647x65535x65535";
  }
  if (threads == 0 || threads > 1024 || launch.block[2] > 64) {
    return "blocks of " + Three(launch.block) + " threads; expected 1 to 1024";
  }
  if (threads > kernel.most_threads) {
    return "blocks of " + Three(launch.block) + " threads; the kernel is compiled for at most " +
           std::to_string(kernel.most_threads);
  }
  if (kernel.required_threads[0] != 0 && kernel.required_threads != launch.block) {
    return "blocks of " + Three(launch.block) + " threads; the kernel is compiled for " +
           Three(kernel.required_threads);
  }
  if (launch.dynamic_shared_bytes > function.most_dynamic_shared) {
    return std::to_string(launch.dynamic_shared_bytes) +
           " bytes of dynamic shared memory; cuFuncSetAttribute allows " +
           std::to_string(function.most_dynamic_shared);
  }
  return {};
}

// The frame of the kernel's parameters; false if neither way of passing them is used.
bool CopyParameters(const Kernel& kernel, void** parameters, void** extra,
                    std::vector<uint8_t>& frame) {
  frame.assign(kernel.frame_bytes, 0);
  if (parameters != nullptr) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const Variable& parameter = kernel.parameters[i];
      if (parameters[i] == nullptr) return false;
      std::memcpy(frame.data() + parameter.offset, parameters[i], parameter.bytes);
    }
    return true;
  }
  if (extra == nullptr) return kernel.parameters.empty();
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != nullptr; extra += 2) {
    if (extra[0] == reinterpret_cast<void*>(1)) buffer = extra[1];
    if (extra[0] == reinterpret_cast<void*>(2)) bytes = *static_cast<size_t*>(extra[1]);
  }
  if (buffer == nullptr || bytes < kernel.parameter_bytes) return false;
  std::memcpy(frame.data(), buffer, kernel.parameter_bytes);
  return true;
}

}  // namespace

PTX_EMULATOR_API int cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z,
                                    unsigned shared_bytes, void* stream, void** parameters,
                                    void** extra) {
  return Call([=](State& state) {
    if (state.CurrentDevice() < 0) return kInvalidContext;
    auto function = state.Find<Function>(handle);
    if (function == nullptr) {
      return state.Fail(kInvalidHandle,
                        "the function to launch is unknown, or its module is unloaded");
    }
    std::string kernel = "kernel " + function->kernel->name + ": ";
    if (function->device != state.CurrentDevice()) {
      return state.Fail(kInvalidHandle, kernel + "its module is loaded on another device");
    }
    Launch launch;
    launch.kernel = function->kernel;
    launch.grid = {grid_x, grid_y, grid_z};
    launch.block = {block_x, block_y, block_z};
    launch.dynamic_shared_bytes = shared_bytes;
    launch.memory = &state.memory;
    launch.global_addresses = &function->module->addresses;
    launch.check_races = state.check_races;
    launch.most_instructions = state.most_instructions;
    launch.device = function->device;
    std::string problem = CheckSizes(*function, launch);
    if (!problem.empty()) return state.Fail(kInvalidValue, kernel + problem);
    if (!CopyParameters(*function->kernel, parameters, extra, launch.parameters)) {
      return state.Fail(kInvalidValue, kernel + "a parameter is missing");
    }
    // The function keeps its module alive in a graph.
    return state.Enqueue(stream, [&state, function, launch] {
      ++state.launches;
      try {
        state.instructions += RunGrid(launch);
      } catch (const Refusal& refusal) {
        return state.Break(refusal.code, refusal.what());
      }
      return kSuccess;
    });
  });
}
