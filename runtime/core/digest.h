// A fast digest of bytes, to notice that data was changed; no protection against forgery.

#ifndef AOTI_RUNTIME_CORE_DIGEST_H_
#define AOTI_RUNTIME_CORE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace aoti::internal {

// The same number as aoti_driver.packing.packed_format.digest(). Any change of eight bytes that
// begin at a multiple of eight changes it; of others, all but one in 2^64.
std::uint64_t Digest(std::span<const std::byte> bytes);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_DIGEST_H_
