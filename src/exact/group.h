// A group: two cache lines of slots, the unit that a lookup searches at once.
//
//   struct Group {                  // 128 bytes, K slots of W + 8 bits
//     bits  rest[K];                // W bits each, packed without gaps from byte 0
//     ...                           // unused bits
//     uint8 marks[0, 1, 2 or 4];    // before the tags, as many as the rests leave room for
//     uint8 tag[K];                 // bytes 127-K to 126: the low 8 bits of each remainder
//     uint8 meta;                   // byte 127: low 4 bits = slots in use (always the first ones),
//   };                              //   high 4 bits = the marks, when they have no byte
//
// The 128 bytes are read and written as sixteen atomic words, because readers look at groups
// without the shard's lock and afterwards find out whether somebody wrote meanwhile (shard.h).
// Acquire and release keep those looks between the two looks at the version; on x86 they are plain
// loads and stores. Writers hold the shard's lock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace firstseen {

using Uint128 = unsigned __int128;
static_assert(std::endian::native == std::endian::little, "groups are little-endian");

// The low `bits` bits set; 0 to 127.
inline constexpr Uint128 LowBits(int bits) { return (Uint128{1} << bits) - 1; }

// Shifts by 0 to 63: without the case that the amount is a word or more, which the built-in ones
// have to test for.
inline Uint128 ShiftRight(Uint128 value, int amount) {
  const auto high = static_cast<uint64_t>(value >> 64);
  const auto low = static_cast<uint64_t>(value);
  return (Uint128{high >> amount} << 64) | (low >> amount) | ((high << 1) << (63 - amount));
}
inline Uint128 ShiftLeft(Uint128 value, int amount) {
  const auto high = static_cast<uint64_t>(value >> 64);
  const auto low = static_cast<uint64_t>(value);
  return (Uint128{(high << amount) | ((low >> 1) >> (63 - amount))} << 64) | (low << amount);
}

// The slots of a group unpacked: whole remainders. For rebuilding.
struct alignas(64) UnpackedGroup {
  std::array<Uint128, 15> remainder;
  uint64_t count;
};

class alignas(64) Group {
 public:
  static constexpr int kBytes = 128;
  static constexpr int kWords = kBytes / 8;
  static constexpr int kSlotsMax = 15;
  static constexpr int kMetaByte = kBytes - 1;

  // Slots that fit when each needs `rest_bits` (at most 120) beside its tag.
  static constexpr int SlotsFor(int rest_bits) {
    for (int slots = kSlotsMax; slots > 1; --slots) {
      if ((slots * rest_bits + 7) / 8 + slots + 1 <= kBytes) return slots;
    }
    return 1;
  }

  int count() const { return static_cast<int>(Word(kWords - 1) >> 56) & 0x0f; }
  void set_count(int count) {
    Put(kWords - 1, (Word(kWords - 1) & ~(uint64_t{0x0f} << 56)) | (uint64_t(count) << 56));
  }

  // Bytes for overflow marks that `slots` rests leave free.
  static constexpr int MarkBytesFor(int slots, int rest_bits) {
    const int spare = kMetaByte - slots - (slots * rest_bits + 7) / 8;
    return spare >= 4 ? 4 : spare >= 2 ? 2 : spare;
  }
  // The overflow mark (shard.h) for the keys whose tag ends in the same 2, 3, 4 or 5 bits.
  bool marked(int slots, int mark_bytes, uint8_t tag) const {
    const int bit = MarkBit(slots, mark_bytes, tag);
    return ((Word(bit / 64) >> (bit % 64)) & 1) != 0;
  }
  void Mark(int slots, int mark_bytes, uint8_t tag) {
    const int bit = MarkBit(slots, mark_bytes, tag);
    Put(bit / 64, Word(bit / 64) | (uint64_t{1} << (bit % 64)));
  }

  uint8_t tag(int slots, int i) const {
    const int byte = kMetaByte - slots + i;
    return static_cast<uint8_t>(Word(byte / 8) >> (byte % 8 * 8));
  }

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
    const uint64_t last = Word(kWords - 1);
    const __m128i tags =
        _mm_set_epi64x(static_cast<int64_t>(last), static_cast<int64_t>(Word(kWords - 2)));
    const __m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(wanted)));
    const uint32_t mask = static_cast<uint32_t>(_mm_movemask_epi8(equal)) >> (15 - slots);
    return mask & ((1u << ((last >> 56) & 0x0f)) - 1);
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
    return Extract([this](int k) { return Word(k); }, rest_bits, i);
  }
  void Prefetch() const {
    __builtin_prefetch(&words_[0]);
    __builtin_prefetch(&words_[kWords / 2]);
  }
  // Fetches the line in which the rest of slot i begins.
  void PrefetchRest(int rest_bits, int i) const { __builtin_prefetch(&words_[i * rest_bits / 64]); }

  // Index of the slot that holds (rest, tag), which is one of `mask`; -1 when none does.
  int FindIn(uint32_t mask, int rest_bits, Uint128 wanted_rest) const {
    for (; mask != 0; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      if (rest(rest_bits, i) == wanted_rest) return i;
    }
    return -1;
  }
  int Find(int slots, int rest_bits, uint8_t wanted, Uint128 wanted_rest) const {
    return FindIn(Match(slots, wanted), rest_bits, wanted_rest);
  }

  void Set(int slots, int rest_bits, int i, uint8_t new_tag, Uint128 new_rest) {
    const Uint128 old_rest = rest(rest_bits, i);
    Insert([this](int k, uint64_t bits) { Put(k, Word(k) ^ bits); }, rest_bits, i,
           old_rest ^ new_rest);
    const int byte = kMetaByte - slots + i;
    const int shift = byte % 8 * 8;
    Put(byte / 8, (Word(byte / 8) & ~(uint64_t{0xff} << shift)) | (uint64_t{new_tag} << shift));
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

  // Calls f(first, tag, rest) for all slots in use of two groups in turn; `first` says of which.
  // Alternating gives the processor two independent streams of work.
  template <typename F>
  static void ForEachOfTwo(const Group* first, const Group* second, int slots, int rest_bits, F f) {
    const Reader a(*first, slots);
    const Reader b(*second, slots);
    const Uint128 mask = LowBits(rest_bits);
    const unsigned used = a.used > b.used ? a.used : b.used;
    unsigned bit = 0;
    for (unsigned i = 0; i < used; ++i, bit += static_cast<unsigned>(rest_bits)) {
      if (i < a.used) f(true, a.tags[i], a.rest(bit, rest_bits) & mask);
      if (i < b.used) f(false, b.tags[i], b.rest(bit, rest_bits) & mask);
    }
  }
  template <typename F>
  void ForEach(int slots, int rest_bits, F f) const {
    const Reader reader(*this, slots);
    const Uint128 mask = LowBits(rest_bits);
    unsigned bit = 0;
    for (unsigned i = 0; i < reader.used; ++i, bit += static_cast<unsigned>(rest_bits)) {
      f(reader.tags[i], reader.rest(bit, rest_bits) & mask);
    }
  }
  // Replaces the content; no overflow marks, no flags.
  void Pack(int slots, int rest_bits, const UnpackedGroup& unpacked) {
    std::array<uint64_t, kWords + 2> words;
#pragma GCC unroll 18
    for (size_t k = 0; k < words.size(); ++k) words[k] = 0;  // without a call to memset
    alignas(16) std::array<uint64_t, 2> tags = {0, unpacked.count << 56};
    auto* const tag = reinterpret_cast<uint8_t*>(tags.data()) + 15 - slots;
    unsigned bit = 0;
    for (unsigned i = 0; i < unpacked.count; ++i, bit += static_cast<unsigned>(rest_bits)) {
      const Uint128 remainder = unpacked.remainder[i];
      const Uint128 rest = remainder >> 8;
      uint64_t* const word = &words[bit / 64];
      const int shift = static_cast<int>(bit % 64);
      const Uint128 low = ShiftLeft(rest, shift);
      word[0] |= static_cast<uint64_t>(low);
      word[1] |= static_cast<uint64_t>(low >> 64);
      if (shift + rest_bits > 128) [[unlikely]] {
        word[2] |= static_cast<uint64_t>(rest >> (128 - shift));
      }
      tag[i] = static_cast<uint8_t>(remainder);
    }
    for (int k = 0; k < kWords - 2; ++k) Put(k, words[size_t(k)]);
    Put(kWords - 2, words[kWords - 2] | tags[0]);
    Put(kWords - 1, words[kWords - 1] | tags[1]);
  }

 private:
  // A copy of a group to read all of it.
  struct Reader {
    Reader(const Group& group, int slots) {
      for (int k = 0; k < kWords; ++k) words[size_t(k)] = group.Word(k);
      used = static_cast<unsigned>(words[kWords - 1] >> 56) & 0x0f;
      tags = reinterpret_cast<const uint8_t*>(words.data()) + kMetaByte - slots;
    }
    Uint128 rest(unsigned bit, int rest_bits) const {
      const uint64_t* const word = &words[bit / 64];
      const int shift = static_cast<int>(bit % 64);
      Uint128 packed = ShiftRight((Uint128{word[1]} << 64) | word[0], shift);
      if (shift + rest_bits > 128) [[unlikely]]
        packed |= Uint128{word[2]} << (128 - shift);
      return packed;
    }
    std::array<uint64_t, kWords + 2> words;
    const uint8_t* tags;
    unsigned used;
  };

  static int MarkBit(int slots, int mark_bytes, uint8_t tag) {
    if (mark_bytes == 0) return kMetaByte * 8 + 4 + (tag & 3);
    return (kMetaByte - slots - mark_bytes) * 8 + (tag & (8 * mark_bytes - 1));
  }
  uint64_t Word(int k) const { return words_[k].load(std::memory_order_acquire); }
  void Put(int k, uint64_t word) { words_[k].store(word, std::memory_order_release); }

  // A rest begins in word k at bit `shift` and reaches into the next word or, rarely, two.
  template <typename Words>
  static Uint128 Extract(Words words, int rest_bits, int i) {
    const unsigned bit = static_cast<unsigned>(i * rest_bits);
    const int k = static_cast<int>(bit / 64);
    const int shift = static_cast<int>(bit % 64);
    Uint128 packed = ShiftRight((Uint128{words(k + 1)} << 64) | words(k), shift);
    if (shift + rest_bits > 128) [[unlikely]]
      packed |= Uint128{words(k + 2)} << (128 - shift);
    return packed & LowBits(rest_bits);
  }
  template <typename Change>
  static void Insert(Change change, int rest_bits, int i, Uint128 value) {
    const unsigned bit = static_cast<unsigned>(i * rest_bits);
    const int k = static_cast<int>(bit / 64);
    const int shift = static_cast<int>(bit % 64);
    const Uint128 low = ShiftLeft(value, shift);
    change(k, static_cast<uint64_t>(low));
    change(k + 1, static_cast<uint64_t>(low >> 64));
    if (shift + rest_bits > 128) [[unlikely]] {
      change(k + 2, static_cast<uint64_t>(value >> (128 - shift)));
    }
  }

  std::atomic<uint64_t> words_[kWords];
};
static_assert(sizeof(Group) == Group::kBytes);

}  // namespace firstseen
