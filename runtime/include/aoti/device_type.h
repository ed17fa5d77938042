// The kinds of devices that models are compiled for.

#ifndef AOTI_DEVICE_TYPE_H_
#define AOTI_DEVICE_TYPE_H_

#include "aoti/cxx20.h"

namespace aoti {

enum class DeviceType { kCpu, kCuda };

// "cpu" or "cuda".
constexpr const char* to_string(DeviceType device) {
  return device == DeviceType::kCuda ? "cuda" : "cpu";
}

}  // namespace aoti

#endif  // AOTI_DEVICE_TYPE_H_
