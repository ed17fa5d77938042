// Variables that tests set.

#ifndef PTX_EMULATOR_DRIVER_ENVIRONMENT_H_
#define PTX_EMULATOR_DRIVER_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace ptx_emulator {

// The number that the variable has, or `otherwise`. Ends the process if it is no number.
inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return otherwise;
  char* end = nullptr;
  uint64_t value = std::strtoull(text, &end, 10);
  if (*end != 0) {
    std::cerr << "ptx_emulator: " << name << "=" << text << " is no number" << std::endl;
    std::_Exit(2);
  }
  return value;
}

}  // namespace ptx_emulator

#endif  // PTX_EMULATOR_DRIVER_ENVIRONMENT_H_
