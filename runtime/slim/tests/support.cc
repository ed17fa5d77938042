// What tests and benchmarks set up that the C ABI has no functions for.

#include "runtime/slim/tests/support.h"

#include "runtime/core/parallel.h"
#include "runtime/slim/tensor.h"

using aoti::slim::DType;
using aoti::slim::PackedWeight;
using aoti::slim::Storage;

void aoti_slim_test_set_threads(int threads) { aoti::internal::SetCpusForTesting(threads); }

AtenTensorHandle aoti_slim_test_packed_tensor(const char* kind, const void* packed,
                                              int64_t packed_bytes, int32_t dtype, int64_t rank,
                                              const int64_t* sizes, const int64_t* strides) {
  const auto* weight = new PackedWeight{kind, packed, static_cast<std::size_t>(packed_bytes)};
  const std::size_t dims = static_cast<std::size_t>(rank);
  // Of a weight that is packed nothing else is there.
  Storage* storage = Storage::Borrow(nullptr, 0);
  storage->packed = weight;
  return new AtenTensorOpaque(storage, static_cast<DType>(dtype), {sizes, dims}, {strides, dims}, 0);
}

void aoti_slim_test_delete_packed_tensor(AtenTensorHandle tensor) {
  const PackedWeight* weight = tensor->storage().packed;
  delete tensor;
  delete weight;
}
