// MurmurHash3_x64_128 (Austin Appleby, public domain), as Guava's `Hashing.murmur3_128()` gives it:
// for buckets that an existing Java system has chosen. Not keyed and not a defence against anybody.
#pragma once

#include <cstdint>
#include <string_view>

namespace firstseen {

struct Murmur3 {
  uint64_t h1 = 0;  // output bytes 0 to 7, little-endian
  uint64_t h2 = 0;  // output bytes 8 to 15
  friend bool operator==(const Murmur3&, const Murmur3&) = default;
};

// Guava: murmur3_128(seed).hashString(text, UTF_8) for valid UTF-8. O(bytes), thread-safe.
Murmur3 Murmur3_128(std::string_view bytes, uint32_t seed = 0);

// Guava: murmur3_128().hashString(text, UTF_8).asLong().
int64_t GuavaAsLong(std::string_view text);

// GuavaAsLong read as an unsigned number, modulo `buckets` (> 0): Long.remainderUnsigned.
uint64_t GuavaBucket(std::string_view text, uint64_t buckets);

}  // namespace firstseen
