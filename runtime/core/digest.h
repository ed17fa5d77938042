// A fast digest of bytes, which notices that data was changed. It does not protect against forgery.

#ifndef AOTI_RUNTIME_CORE_DIGEST_H_
#define AOTI_RUNTIME_CORE_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace aoti::internal {

// The same number as aoti_driver.packing.packed_format.digest(). A change within one aligned word
// of eight bytes always changes the digest; any other change does with a probability of 1 - 2^-64.
std::uint64_t Digest(std::span<const std::byte> bytes);

}  // namespace aoti::internal

#endif  // AOTI_RUNTIME_CORE_DIGEST_H_
