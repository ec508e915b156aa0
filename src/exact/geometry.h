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

#include <algorithm>
#include <array>
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

// How many groups a shard has, and what can be computed from that beforehand.
struct alignas(16) GroupCount {
  uint64_t step = 0;           // floor(2^64 / G); 0 for one group and none
  uint32_t inverse = 0;        // of per_chunk, in 2^-32, rounded up
  uint32_t groups : 12 = 0;    // G
  uint32_t bits : 4 = 0;       // floor(log2 G)
  uint32_t per_chunk : 8 = 0;  // groups of a chunk; 0 = not in chunks
  uint32_t lines : 8 = 2;      // of 64 bytes, of a group

  constexpr GroupCount() = default;
  constexpr GroupCount(int count, int group_lines, int groups_per_chunk = 0)
      : groups(static_cast<uint32_t>(count)),
        bits(count == 0 ? 0 : static_cast<uint32_t>(std::bit_width(unsigned(count)) - 1)),
        per_chunk(static_cast<uint32_t>(groups_per_chunk)),
        lines(static_cast<uint32_t>(group_lines)) {
    const auto wide = static_cast<uint64_t>(count);
    if (count > 1) step = ~uint64_t{0} / wide + (std::has_single_bit(wide) ? 1 : 0);
    if (groups_per_chunk > 1) {
      inverse =
          static_cast<uint32_t>((uint64_t{1} << 32) / static_cast<uint64_t>(groups_per_chunk) + 1);
    }
  }
  // The home group of a value with this upper word.
  uint32_t HomeOfUpper(uint64_t upper) const {
    return static_cast<uint32_t>((Uint128{upper} * groups) >> 64);
  }
  // The chunk that a group lies in, without dividing.
  uint32_t ChunkOf(uint32_t group) const {
    return static_cast<uint32_t>(uint64_t{group} * inverse >> 32);
  }
};

// Layouts by lines and bits of a rest, looked up by every operation.
struct GroupLayouts {
  static constexpr int kLinesMax = 4;
  std::array<std::array<GroupLayout, 121>, kLinesMax + 1> layout{};
  constexpr GroupLayouts() {
    for (int lines = 2; lines <= kLinesMax; ++lines) {
      for (int bits = 0; bits <= 120; ++bits) {
        layout[static_cast<size_t>(lines)][static_cast<size_t>(bits)] = GroupLayout(lines, bits);
      }
    }
  }
};
inline constexpr GroupLayouts kGroupLayouts;

class Geometry {
 public:
  using Layout = GroupLayout;

  Geometry() = default;
  Geometry(int bits, int depth, const GroupCount& count)
      : count_(count),
        value_bits_(static_cast<uint8_t>(bits - depth)),
        depth_(static_cast<uint8_t>(depth)) {
    const int rest_bits = count.groups == 0 ? 0 : std::max(RemainderBits() - 8, 0);
    layout_ = kGroupLayouts.layout[count.lines][static_cast<size_t>(rest_bits)];
  }

  int depth() const { return depth_; }
  const GroupCount& count() const { return count_; }
  int groups() const { return static_cast<int>(count_.groups); }
  int lines() const { return static_cast<int>(count_.lines); }
  const Layout& layout() const { return layout_; }
  int slots() const { return layout_.slots; }  // in a group
  int value_bits() const { return value_bits_; }
  uint64_t slot_count() const { return uint64_t{count_.groups} * layout_.slots; }
  size_t bytes() const { return size_t{count_.groups} * count_.lines * 64; }

  // The local value of a fingerprint.
  Uint128 ValueOf(const Fingerprint& fingerprint) const {
    return ShiftLeft(ToUint128(fingerprint), depth_);
  }
  uint32_t HomeOf(Uint128 value) const { return HomeOfUpper(static_cast<uint64_t>(value >> 64)); }
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

  // The same place in units of the last of the N bits, for moving many keys. Precondition: N < 128.
  Uint128 LowestOf(uint32_t group) const {
    return value_bits_ >= 64 ? Uint128{LowerBound(group)} << (value_bits_ - 64)
                             : LowerBound(group) >> (64 - value_bits_);
  }
  uint64_t UpperOf(Uint128 units) const {
    const auto low = static_cast<uint64_t>(units);
    if (value_bits_ < 64) return low << (64 - value_bits_);
    return static_cast<uint64_t>(ShiftRight(units, value_bits_ - 64));
  }
  uint32_t HomeOfUpper(uint64_t upper) const { return count_.HomeOfUpper(upper); }

  // The other group in which a key may lie, at a distance that only its remainder decides, so that
  // it can be undone. Precondition: groups() > 1.
  uint32_t Distance(Uint128 remainder) const {
    const uint64_t folded =
        (static_cast<uint64_t>(remainder) ^ static_cast<uint64_t>(remainder >> 64)) *
        0x9e3779b97f4a7c15u;
    return 1 + static_cast<uint32_t>(((folded >> 32) * (count_.groups - 1u)) >> 32);
  }
  uint32_t Alternate(uint32_t home, Uint128 remainder) const {
    const uint32_t sum = home + Distance(remainder);
    return sum >= count_.groups ? sum - count_.groups : sum;
  }
  uint32_t HomeOfAlternate(uint32_t alternate, Uint128 remainder) const {
    const uint32_t distance = Distance(remainder);
    return alternate >= distance ? alternate - distance : alternate + count_.groups - distance;
  }

 private:
  uint64_t LowerBound(uint32_t group) const {
    const uint64_t bound = group * count_.step;
    return value_bits_ >= 64 ? bound : bound & ~(~uint64_t{0} >> value_bits_);
  }
  // Of the largest remainder. Rounding L down costs less than two units; that matters only where
  // the groups are narrow.
  int RemainderBits() const {
    const int bits = static_cast<int>(count_.bits);
    if (value_bits_ >= 2 * bits + 4) [[likely]]
      return value_bits_ - bits;
    const uint64_t groups = count_.groups;
    if (std::has_single_bit(groups)) return value_bits_ - bits;
    const uint64_t span = uint64_t{1} << value_bits_;
    return std::bit_width((span + groups - 1) / groups + 1);
  }

  GroupCount count_;
  Layout layout_;
  uint8_t value_bits_ = 0;  // N
  uint8_t depth_ = 0;
};

}  // namespace firstseen
