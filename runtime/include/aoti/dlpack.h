// The DLPack ABI, through which libraries share tensors without a copy.
//
// These structures have the layout that the DLPack specification (https://dmlc.github.io/dlpack)
// gives for versions 0.8 (unversioned) and 1.x. They may be converted with reinterpret_cast to and
// from another library's declarations.

#ifndef AOTI_DLPACK_H_
#define AOTI_DLPACK_H_

#include <cstdint>

#include "aoti/cxx20.h"

namespace aoti::dlpack {

inline constexpr std::int32_t kDLCPU = 1;
inline constexpr std::int32_t kDLCUDA = 2;

enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;  // DLDataTypeCode
  std::uint8_t bits;  // per lane
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: contiguous
  std::uint64_t byte_offset;
};

// Unversioned: capsules named "dltensor".
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr DLPackVersion kVersion = {1, 0};
inline constexpr std::uint64_t kFlagReadOnly = 1;
inline constexpr std::uint64_t kFlagIsCopied = 2;  // writes do not change the exporter's tensor

// Versioned: capsules named "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

}  // namespace aoti::dlpack

#endif  // AOTI_DLPACK_H_
