// A fingerprint: a keyed pseudo-random function of a member, all that an exact set stores.
#pragma once

#include <compare>
#include <cstdint>

namespace firstseen {

// The leading `bits` bits of a 128-bit value, left-aligned: bit 127 is the top bit of `hi`. Bits
// beyond the width are zero, so that equality and order need no width.
struct Fingerprint {
  uint64_t hi = 0;
  uint64_t lo = 0;

  // Keeps the first `bits` bits (1 to 128) and clears the rest.
  Fingerprint Truncated(int bits) const {
    if (bits >= 128) return *this;
    if (bits > 64) return {hi, lo & ~(~uint64_t{0} >> (bits - 64))};
    if (bits == 64) return {hi, 0};
    return {hi & ~(~uint64_t{0} >> bits), 0};
  }

  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

}  // namespace firstseen
