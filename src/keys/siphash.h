// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012; the 128-bit variant of their reference code), from libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "keys/fingerprint.h"

namespace firstseen {

using SipKey = std::array<unsigned char, 16>;

// `hi` holds output bytes 0 to 7 and `lo` bytes 8 to 15, each read as a little-endian number.
// O(bytes), no allocation, thread-safe.
Fingerprint SipHash128(const SipKey& key, std::string_view bytes);

}  // namespace firstseen
