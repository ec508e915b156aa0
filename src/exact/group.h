// A group: two cache lines of slots, the unit that a lookup searches at once.
//
//   struct Group {                  // 128 bytes, K slots of W + 8 bits
//     bits  rest[K];                // W bits each, packed without gaps from byte 0
//     ...                           // unused bits
//     uint8 tag[K];                 // bytes 127-K to 126: the low 8 bits of each remainder
//     uint8 meta;                   // byte 127: low 4 bits = slots in use (always the first ones),
//   };                              //   high 4 bits = overflow marks, see shard.h
//
// W is at most 120 bits, so that a rest is always read by one unaligned 16-byte load and a shift,
// and that load stays inside the group. Nothing here is thread-safe: the shard's lock covers it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace firstseen {

using Uint128 = unsigned __int128;
static_assert(std::endian::native == std::endian::little, "groups are packed little-endian");

// The low `bits` bits set; 0 to 127.
inline constexpr Uint128 LowBits(int bits) { return (Uint128{1} << bits) - 1; }

struct alignas(64) Group {
  static constexpr int kBytes = 128;
  static constexpr int kSlotsMax = 15;
  static constexpr int kMetaByte = kBytes - 1;
  static constexpr int kRestBitsMax = 120;

  // Slots that fit when each needs `rest_bits` beside its tag.
  static constexpr int SlotsFor(int rest_bits) {
    for (int slots = kSlotsMax; slots > 1; --slots) {
      if ((slots * rest_bits + 7) / 8 + slots + 1 <= kBytes) return slots;
    }
    return 1;
  }

  void Clear() { bytes[kMetaByte] = 0; }

  int count() const { return bytes[kMetaByte] & 0x0f; }
  void set_count(int count) {
    bytes[kMetaByte] = static_cast<uint8_t>((bytes[kMetaByte] & 0xf0) | count);
  }

  // Overflow mark for the keys whose tag has these two low bits.
  bool marked(uint8_t tag) const { return ((bytes[kMetaByte] >> (4 + (tag & 3))) & 1) != 0; }
  void Mark(uint8_t tag) { bytes[kMetaByte] |= static_cast<uint8_t>(0x10 << (tag & 3)); }

  uint8_t tag(int slots, int i) const { return bytes[kMetaByte - slots + i]; }

  // Bit i is set when slot i is in use and holds `wanted` as its tag.
  uint32_t Match(int slots, uint8_t wanted) const {
#if defined(__SSE2__)
    return MatchSse2(slots, wanted);
#else
    return MatchPortable(slots, wanted);
#endif
  }

#if defined(__SSE2__)
  uint32_t MatchSse2(int slots, uint8_t wanted) const {
    const __m128i tags = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + kBytes - 16));
    const __m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(wanted)));
    const uint32_t mask = static_cast<uint32_t>(_mm_movemask_epi8(equal)) >> (15 - slots);
    return mask & ((1u << count()) - 1);
  }
#endif

  uint32_t MatchPortable(int slots, uint8_t wanted) const {
    uint32_t mask = 0;
    for (int i = 0, used = count(); i < used; ++i) {
      mask |= static_cast<uint32_t>(tag(slots, i) == wanted) << i;
    }
    return mask;
  }

  Uint128 rest(int rest_bits, int i) const {
    const unsigned bit = static_cast<unsigned>(i * rest_bits);
    Uint128 word;
    std::memcpy(&word, bytes + bit / 8, sizeof word);
    return (word >> (bit % 8)) & LowBits(rest_bits);
  }

  // Index of the slot that holds (rest, tag); -1 when none does.
  int Find(int slots, int rest_bits, uint8_t wanted, Uint128 wanted_rest) const {
    for (uint32_t mask = Match(slots, wanted); mask != 0; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      if (rest(rest_bits, i) == wanted_rest) return i;
    }
    return -1;
  }

  void Set(int slots, int rest_bits, int i, uint8_t new_tag, Uint128 new_rest) {
    const unsigned bit = static_cast<unsigned>(i * rest_bits);
    Uint128 word;
    std::memcpy(&word, bytes + bit / 8, sizeof word);
    word &= ~(LowBits(rest_bits) << (bit % 8));
    word |= new_rest << (bit % 8);
    std::memcpy(bytes + bit / 8, &word, sizeof word);
    bytes[kMetaByte - slots + i] = new_tag;
  }

  // Precondition: count() < slots.
  void Append(int slots, int rest_bits, uint8_t new_tag, Uint128 new_rest) {
    const int i = count();
    Set(slots, rest_bits, i, new_tag, new_rest);
    set_count(i + 1);
  }

  // Moves the last entry into slot i and shortens the group by one.
  void Erase(int slots, int rest_bits, int i) {
    const int last = count() - 1;
    if (i != last) Set(slots, rest_bits, i, tag(slots, last), rest(rest_bits, last));
    set_count(last);
  }

  uint8_t bytes[kBytes];
};
static_assert(sizeof(Group) == Group::kBytes);

}  // namespace firstseen
