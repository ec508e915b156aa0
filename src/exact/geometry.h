// How a fingerprint becomes a place in a shard and a remainder, and back.
//
// Inside a shard only the N = bits - depth bits below the shard's prefix matter. The local value x
// is the fingerprint shifted left by the depth: N bits, left-aligned in 128. With G groups and the
// upper word X of x,
//
//   home group  g = (X * G) >> 64                 any G, no power of two needed, monotonic in x
//   lower bound L(g) = g * floor(2^64 / G)        rounded down to a multiple of 2^(64-N) if N < 64
//   remainder   r = (x - L(g) * 2^64) >> (128-N)  the part that the position does not say
//
// L(g) is the smallest X of group g or a little below it, so that r needs N - floor(log2 G) bits
// and x is got back exactly. Leaving out of a slot what its position says is quotienting (Cleary,
// "Compact Hash Tables Using Bidirectional Linear Probing", 1984); range reduction by
// multiplication is Lemire, "Fast Random Integer Generation in an Interval", 2019.
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

// Sixteen bytes, so that a shard can publish it as two words. Two words of different moments give
// wrong places but never ones outside the groups that the second word tells.
class Geometry {
 public:
  Geometry() = default;
  Geometry(int bits, int depth, int groups) {
    value_bits_ = static_cast<uint8_t>(bits - depth);
    depth_ = static_cast<uint8_t>(depth);
    groups_ = static_cast<uint16_t>(groups);
    if (groups == 0) return;
    const uint64_t count = static_cast<uint64_t>(groups);
    if (groups > 1) {
      step_ = ~uint64_t{0} / count;
      if (std::has_single_bit(count)) ++step_;
    }
    const int remainder_bits = RemainderBits(count);
    flag_shift_ = static_cast<uint8_t>(remainder_bits > 8 ? remainder_bits - 8 : 0);
    rest_bits_ = static_cast<uint8_t>(flag_shift_ + (groups > 1 ? 1 : 0));
    slots_ = static_cast<uint8_t>(Group::SlotsFor(rest_bits_));
    mark_bytes_ = static_cast<uint8_t>(Group::MarkBytesFor(slots_, rest_bits_));
  }

  int depth() const { return depth_; }
  int groups() const { return groups_; }
  int slots() const { return slots_; }          // in a group
  int rest_bits() const { return rest_bits_; }  // of a slot, beside its 8-bit tag
  int mark_bytes() const { return mark_bytes_; }
  int value_bits() const { return value_bits_; }
  uint64_t slot_count() const { return uint64_t{groups_} * slots_; }

  // The local value of a fingerprint.
  Uint128 ValueOf(const Fingerprint& fingerprint) const {
    return ShiftLeft(ToUint128(fingerprint), depth_);
  }
  uint32_t HomeOf(Uint128 value) const {
    return static_cast<uint32_t>((Uint128{static_cast<uint64_t>(value >> 64)} * groups_) >> 64);
  }
  Uint128 RemainderOf(uint32_t home, Uint128 value) const {
    const Uint128 above = value - (Uint128{LowerBound(home)} << 64);
    return value_bits_ > 64 ? ShiftRight(above, 128 - value_bits_)
                            : (above >> 64) >> (64 - value_bits_);
  }
  Uint128 ValueFrom(uint32_t home, Uint128 remainder) const {
    const Uint128 above = value_bits_ > 64 ? ShiftLeft(remainder, 128 - value_bits_)
                                           : (remainder << 64) << (64 - value_bits_);
    return above + (Uint128{LowerBound(home)} << 64);
  }

  bool CanRehome() const { return value_bits_ > 64 && value_bits_ < 128; }
  // The place under this geometry of what lay in group `old_home` under `old`, of the same depth,
  // both of more than one group; changes *remainder accordingly. Precondition: CanRehome().
  uint32_t Rehome(const Geometry& old, uint32_t old_home, Uint128* remainder) const {
    const int low_bits = value_bits_ - 64;
    const uint64_t top =
        static_cast<uint64_t>(ShiftRight(*remainder, low_bits)) + old_home * old.step_;
    const auto home = static_cast<uint32_t>((Uint128{top} * groups_) >> 64);
    // Negative when the new group begins later; at most one group wide, so 64 bits hold it.
    const auto change = static_cast<int64_t>(old_home * old.step_ - home * step_);
    *remainder += ShiftLeft(static_cast<Uint128>(__int128{change}), low_bits);
    return home;
  }

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
  Uint128 RemainderFrom(Uint128 rest, uint8_t tag) const {
    return ((rest & ~alternate_flag()) << 8) | tag;
  }

 private:
  uint64_t LowerBound(uint32_t group) const {
    const uint64_t bound = group * step_;
    return value_bits_ >= 64 ? bound : bound & ~(~uint64_t{0} >> value_bits_);
  }
  // Of the largest remainder. Rounding L down costs less than two units; that matters only where
  // the groups are narrow.
  int RemainderBits(uint64_t groups) const {
    if (std::has_single_bit(groups)) return value_bits_ - std::countr_zero(groups);
    if (value_bits_ >= 64) return value_bits_ - std::bit_width(groups) + 1;
    const uint64_t span = uint64_t{1} << value_bits_;
    return std::bit_width((span + groups - 1) / groups + 1);
  }

  uint64_t step_ = 0;  // floor(2^64 / G); 0 for one group
  uint16_t groups_ = 0;
  uint8_t value_bits_ = 0;  // N
  uint8_t flag_shift_ = 0;  // position of the alternate flag in a rest
  uint8_t rest_bits_ = 0;   // W
  uint8_t slots_ = 0;       // K
  uint8_t depth_ = 0;
  uint8_t mark_bytes_ = 0;
};
static_assert(sizeof(Geometry) == 16);

}  // namespace firstseen
