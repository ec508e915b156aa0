// How a fingerprint becomes a place in a shard and a remainder, and back.
//
// Inside a shard only the `value_bits` = bits - depth bits below the shard's prefix matter: the
// fingerprint's local value y. With t = its top M = min(47, value_bits) bits and G groups,
//
//   home group  g = (t * G) >> M                  any G, no power of two needed, monotonic in y
//   lower bound L(g) = (g * step) >> 16           step = floor(2^(M+16) / G)
//   remainder   r = y - L(g) * 2^(value_bits-M)   the part that the position does not say
//
// L(g) is the smallest t of group g, or one or two below it, so that r needs about
// value_bits - log2(G) bits and y = r + L(g) * 2^(value_bits-M) exactly. Leaving out of a slot what
// its position says is quotienting (Cleary, "Compact Hash Tables Using Bidirectional Linear
// Probing", 1984; Knuth 6.4 ex. 13); range reduction by multiplication is Lemire, "Fast Random
// Integer Generation in an Interval", 2019.
#pragma once

#include <bit>
#include <cstdint>

#include "exact/group.h"
#include "keys/fingerprint.h"

namespace firstseen {

inline Uint128 ToUint128(const Fingerprint& fingerprint) {
  return (Uint128{fingerprint.hi} << 64) | fingerprint.lo;
}
inline Fingerprint ToFingerprint(Uint128 value) {
  return {static_cast<uint64_t>(value >> 64), static_cast<uint64_t>(value)};
}

class Geometry {
 public:
  static constexpr int kTopBitsMax = 47;    // t * G and g * step stay below 2^63
  static constexpr int kGroupsMax = 65535;  // within that limit

  Geometry() = default;  // no groups
  Geometry(int value_bits, int groups) {
    const int top_bits = value_bits < kTopBitsMax ? value_bits : kTopBitsMax;
    const uint64_t span = uint64_t{1} << top_bits;
    groups_ = static_cast<uint16_t>(groups);
    top_bits_ = static_cast<uint8_t>(top_bits);
    low_bits_ = static_cast<uint8_t>(value_bits - top_bits);
    if (groups == 0) return;
    step_ = (span << 16) / static_cast<uint64_t>(groups);
    const uint64_t width =
        (span + static_cast<uint64_t>(groups) - 1) / static_cast<uint64_t>(groups);
    const int range_bits = std::has_single_bit(static_cast<unsigned>(groups))
                               ? std::bit_width(width - 1)
                               : std::bit_width(width + 1);
    const int remainder_bits = range_bits + low_bits_;
    flag_shift_ = static_cast<uint8_t>(remainder_bits > 8 ? remainder_bits - 8 : 0);
    rest_bits_ = static_cast<uint8_t>(flag_shift_ + (groups > 1 ? 1 : 0));
    slots_ = static_cast<uint8_t>(Group::SlotsFor(rest_bits_));
  }

  int groups() const { return groups_; }
  int slots() const { return slots_; }          // in a group
  int rest_bits() const { return rest_bits_; }  // of a slot, beside its 8-bit tag
  int value_bits() const { return top_bits_ + low_bits_; }
  uint64_t slot_count() const { return uint64_t{groups_} * slots_; }

  uint32_t HomeOf(Uint128 y) const {
    return static_cast<uint32_t>((static_cast<uint64_t>(y >> low_bits_) * groups_) >> top_bits_);
  }
  Uint128 LowerBound(uint32_t group) const { return Uint128{(group * step_) >> 16} << low_bits_; }
  // The other group in which a key may lie, at a distance that only its remainder decides, so that
  // it can be undone. Precondition: groups() > 1.
  uint32_t Distance(Uint128 remainder) const {
    const uint64_t folded =
        (static_cast<uint64_t>(remainder) ^ static_cast<uint64_t>(remainder >> 64)) *
        0x9e3779b97f4a7c15u;
    return 1 + static_cast<uint32_t>(((folded >> 32) * (groups_ - 1u)) >> 32);
  }
  uint32_t Alternate(uint32_t home, Uint128 remainder) const {
    const uint32_t sum = home + Distance(remainder);
    return sum >= groups_ ? sum - groups_ : sum;
  }
  uint32_t HomeOfAlternate(uint32_t alternate, Uint128 remainder) const {
    const uint32_t distance = Distance(remainder);
    return alternate >= distance ? alternate - distance : alternate + groups_ - distance;
  }

  // Set in the rest of a key that lies in its alternate group.
  Uint128 alternate_flag() const { return Uint128{groups_ > 1 ? 1u : 0u} << flag_shift_; }
  Uint128 RemainderOf(Uint128 rest, uint8_t tag) const {
    return ((rest & ~alternate_flag()) << 8) | tag;
  }

  // What an unlocked reader needs to guess a home group, in one word.
  uint32_t Hint() const { return uint32_t{groups_} | (uint32_t{top_bits_} << 16); }

 private:
  uint64_t step_ = 0;
  uint16_t groups_ = 0;
  uint8_t top_bits_ = 0;    // M
  uint8_t low_bits_ = 0;    // value_bits - M
  uint8_t flag_shift_ = 0;  // position of the alternate flag in a rest
  uint8_t rest_bits_ = 0;   // W
  uint8_t slots_ = 0;       // K
};
static_assert(sizeof(Geometry) == 16);

}  // namespace firstseen
