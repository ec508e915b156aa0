// A group: two to four cache lines of slots, the unit that a lookup searches at once.
//
//   struct Group {                  // 128, 192 or 256 bytes, K <= 28 slots of W + 8 bits
//     bits  rest[K];                // W bits each, packed without gaps from byte 0
//     bits  marks[0 or 6 to 32];    // overflow marks, as many as there is room for
//     ...                           // at most a few unused bits
//     uint8 tag[K];                 // just before meta: the low 8 bits of each remainder
//     uint16 meta;                  // the last two bytes: 5 bits = keys at home here,
//   };                              //   5 bits = keys from elsewhere, 6 bits = marks if not above
//
// Keys whose home this is fill the slots from the last downwards, so that most of them lie in the
// line of the tags; keys that found their own home full fill them from the first upwards. So a slot
// need not say which it is.
//
// Groups are read and written as atomic words, because readers look at them without the shard's
// lock and afterwards find out whether somebody wrote meanwhile (shard.h). Acquire and release keep
// those looks between the two looks at the version; on x86 they are plain loads and stores. Writers
// hold the shard's lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// How a group is divided; follows from its size and the width of a rest.
struct alignas(8) GroupLayout {  // so that it is copied as one word
  uint8_t words = 16;            // of 8 bytes
  uint8_t slots = 0;             // K
  uint8_t rest_bits = 0;         // W, at most 120
  uint8_t marks = 0;
  uint16_t mark_bit = 0;  // where the first mark is

  static constexpr int kSlotsMax = 28;
  static constexpr int kMarksInMeta = 6;
  static constexpr int kMarksMax = 32;

  constexpr GroupLayout() = default;
  constexpr GroupLayout(int lines, int bits)
      : words(static_cast<uint8_t>(8 * lines)), rest_bits(static_cast<uint8_t>(bits)) {
    const int room = 512 * lines - 16;
    slots = static_cast<uint8_t>(std::clamp(room / (bits + 8), 1, kSlotsMax));
    const int spare = room - slots * (bits + 8);
    marks = static_cast<uint8_t>(std::clamp(spare, kMarksInMeta, kMarksMax));
    mark_bit = static_cast<uint16_t>(spare >= kMarksInMeta ? slots * bits : room + 10);
  }
  constexpr int bytes() const { return words * 8; }
  constexpr int first_tag() const { return bytes() - 2 - slots; }  // byte
};
static_assert(sizeof(GroupLayout) == 8);

class alignas(64) Group {
 public:
  using Layout = GroupLayout;
  static constexpr int kBytesMin = 128;
  static constexpr int kWordsMax = 32;

  // Slots in use: by keys that are at home here, by others, and both.
  int home_count(const Layout& layout) const { return Meta(layout) & 0x1f; }
  int foreign_count(const Layout& layout) const { return Meta(layout) >> 5 & 0x1f; }
  int count(const Layout& layout) const {
    const int meta = Meta(layout);
    return (meta & 0x1f) + (meta >> 5 & 0x1f);
  }
  bool full(const Layout& layout) const { return count(layout) == layout.slots; }
  // The slot that the next key at home takes. Precondition: not full.
  int next_home_slot(const Layout& layout) const { return layout.slots - 1 - home_count(layout); }

  // The overflow mark (shard.h) of the keys with tags near this one.
  bool marked(const Layout& layout, uint8_t tag) const {
    const unsigned bit = MarkBit(layout, tag);
    return ((Word(bit / 64) >> (bit % 64)) & 1) != 0;
  }
  void Mark(const Layout& layout, uint8_t tag) {
    const unsigned bit = MarkBit(layout, tag);
    Put(bit / 64, Word(bit / 64) | (uint64_t{1} << (bit % 64)));
  }

  uint8_t tag(const Layout& layout, int i) const {
    const auto byte = static_cast<unsigned>(layout.first_tag() + i);
    return static_cast<uint8_t>(Word(byte / 8) >> (byte % 8 * 8));
  }

  // The slots of keys at home here, or from elsewhere, that hold `wanted` as their tag: bit i for
  // slot i.
  uint32_t MatchHome(const Layout& layout, uint8_t wanted) const {
    return AtHome(layout, EqualTags(layout, wanted));
  }
  uint32_t MatchForeign(const Layout& layout, uint8_t wanted) const {
    return EqualTags(layout, wanted) & ((1u << foreign_count(layout)) - 1);
  }
  uint32_t MatchHomePortable(const Layout& layout, uint8_t wanted) const {
    return AtHome(layout, EqualTagsPortable(layout, wanted));
  }

  Uint128 rest(const Layout& layout, int i) const {
    const unsigned bit = static_cast<unsigned>(i) * layout.rest_bits;
    const unsigned k = bit / 64;
    const int shift = static_cast<int>(bit % 64);
    Uint128 packed = ShiftRight((Uint128{Word(k + 1)} << 64) | Word(k), shift);
    if (shift + layout.rest_bits > 128) [[unlikely]]
      packed |= Uint128{Word(k + 2)} << (128 - shift);
    return packed & LowBits(layout.rest_bits);
  }
  // Fetches the line of the tags; the line in which the rest of slot i begins; all lines.
  void PrefetchTags(const Layout& layout) const { __builtin_prefetch(&words_[layout.words - 1]); }
  void PrefetchRest(const Layout& layout, int i) const {
    __builtin_prefetch(&words_[static_cast<unsigned>(i) * layout.rest_bits / 64]);
  }
  void Prefetch(const Layout& layout) const {
    for (unsigned k = 0; k < layout.words; k += 8) __builtin_prefetch(&words_[k]);
  }

  // Index of the slot that holds `wanted`, which is one of `mask`; -1 when none does.
  int FindIn(uint32_t mask, const Layout& layout, Uint128 wanted) const {
    for (; mask != 0; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      if (rest(layout, i) == wanted) return i;
    }
    return -1;
  }

  // Preconditions: not full.
  void AppendHome(const Layout& layout, uint8_t new_tag, Uint128 new_rest) {
    Set(layout, next_home_slot(layout), new_tag, new_rest);
    AddToMeta(layout, 1);
  }
  void AppendForeign(const Layout& layout, uint8_t new_tag, Uint128 new_rest) {
    Set(layout, foreign_count(layout), new_tag, new_rest);
    AddToMeta(layout, uint64_t{1} << 5);
  }
  // Frees slot i, which the last key of its kind moves into.
  void Erase(const Layout& layout, int i) {
    const int foreign = foreign_count(layout);
    const int last = i < foreign ? foreign - 1 : next_home_slot(layout) + 1;
    if (i != last) Set(layout, i, tag(layout, last), rest(layout, last));
    AddToMeta(layout, i < foreign ? ~uint64_t{0} << 5 : ~uint64_t{0});
  }
  void Clear(const Layout& layout) {
    for (unsigned k = 0; k < layout.words; ++k) Put(k, 0);
  }

  // Calls f(remainder) for the slots from `first` up to `end`. With the lock.
  template <typename F>
  void ForEach(const Layout& layout, int first, int end, F f) const {
    if (layout.rest_bits > 113) {
      for (int i = first; i < end; ++i) f(rest(layout, i) << 8 | tag(layout, i));
      return;
    }
    // A rest, read at the byte it begins in, is the low 56 bits of one unaligned word and, seven
    // bytes on, the rest of another.
    const auto* const bytes = reinterpret_cast<const char*>(words_);
    const auto* const tags = bytes + layout.first_tag();
    const int high_bits = std::max(layout.rest_bits - 56, 0);
    const uint64_t high_mask = (uint64_t{1} << high_bits) - 1;
    const uint64_t low_mask =
        layout.rest_bits >= 56 ? ~uint64_t{0} : (uint64_t{1} << (layout.rest_bits + 8)) - 1;
    unsigned bit = static_cast<unsigned>(first) * layout.rest_bits;
    for (int i = first; i < end; ++i, bit += layout.rest_bits) {
      const uint64_t low = Unaligned(bytes + bit / 8) >> (bit % 8) << 8 & low_mask;
      const uint64_t high = Unaligned(bytes + bit / 8 + 7) >> (bit % 8) & high_mask;
      f(Uint128{high} << 64 | low | static_cast<uint8_t>(tags[i]));
    }
  }

  // Replaces the content by `count` keys at home here, given by their remainders; no marks.
  void Pack(const Layout& layout, const Uint128* remainders, int count) {
    std::array<uint64_t, 4> tags{};
    auto* const tag_bytes = reinterpret_cast<uint8_t*>(tags.data()) + 32 - 2 - layout.slots;
    const int first = layout.slots - count;
    const unsigned bits = layout.rest_bits;
    unsigned fill = static_cast<unsigned>(first) * bits;  // of the word in hand
    unsigned k = fill / 64;
    for (unsigned j = 0; j < k; ++j) Put(j, 0);
    fill %= 64;
    uint64_t word = 0;
    const auto push = [&](uint64_t value, unsigned width) {  // less than 64 bits
      word |= value << fill;
      fill += width;
      if (fill >= 64) {
        Put(k++, word);
        fill -= 64;
        word = value >> (width - fill);
      }
    };
    for (int i = 0; i < count; ++i) {
      const auto low = static_cast<uint64_t>(remainders[i]);
      const auto high = static_cast<uint64_t>(remainders[i] >> 64);
      if (bits > 56) {
        push(low >> 8, 56);
        if (bits < 120) {
          push(high, bits - 56);
        } else {
          push(high & 0xffffffff, 32);
          push(high >> 32, 32);
        }
      } else if (bits > 0) {
        push(low >> 8, bits);
      }
      tag_bytes[first + i] = static_cast<uint8_t>(low);
    }
    tags[3] |= static_cast<uint64_t>(count) << 48;
    const unsigned body = layout.words - 4u;
    for (; k < layout.words; ++k, word = 0) {
      Put(k, k < body ? word : word | tags[k - body]);
    }
  }

 private:
  static uint64_t Unaligned(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  uint64_t Word(unsigned k) const { return words_[k].load(std::memory_order_acquire); }
  void Put(unsigned k, uint64_t word) { words_[k].store(word, std::memory_order_release); }

  int Meta(const Layout& layout) const { return static_cast<int>(Word(layout.words - 1u) >> 48); }
  void AddToMeta(const Layout& layout, uint64_t amount) {
    Put(layout.words - 1u, Word(layout.words - 1u) + (amount << 48));
  }
  static unsigned MarkBit(const Layout& layout, uint8_t tag) {
    return layout.mark_bit + (unsigned{tag} * layout.marks >> 8);
  }
  uint32_t AtHome(const Layout& layout, uint32_t equal) const {
    return equal & (~0u << (layout.slots - home_count(layout)));
  }

  uint32_t EqualTags(const Layout& layout, uint8_t wanted) const {
#if defined(__SSE2__)
    const auto load = [&](unsigned k) {
      return _mm_set_epi64x(static_cast<int64_t>(Word(k + 1)), static_cast<int64_t>(Word(k)));
    };
    const __m128i all = _mm_set1_epi8(static_cast<char>(wanted));
    auto equal =
        static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(layout.words - 2u), all)))
        << 16;
    if (layout.slots > 14) {  // the tags begin before the last 16 bytes
      equal |=
          static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(layout.words - 4u), all)));
    }
    return equal << 2 >> (32 - layout.slots);
#else
    return EqualTagsPortable(layout, wanted);
#endif
  }
  uint32_t EqualTagsPortable(const Layout& layout, uint8_t wanted) const {
    uint32_t mask = 0;
    for (int i = 0; i < layout.slots; ++i) {
      mask |= static_cast<uint32_t>(tag(layout, i) == wanted) << i;
    }
    return mask;
  }

  void Set(const Layout& layout, int i, uint8_t new_tag, Uint128 new_rest) {
    const Uint128 change = rest(layout, i) ^ new_rest;
    const unsigned bit = static_cast<unsigned>(i) * layout.rest_bits;
    const unsigned k = bit / 64;
    const int shift = static_cast<int>(bit % 64);
    const Uint128 low = ShiftLeft(change, shift);
    Put(k, Word(k) ^ static_cast<uint64_t>(low));
    Put(k + 1, Word(k + 1) ^ static_cast<uint64_t>(low >> 64));
    if (shift + layout.rest_bits > 128) [[unlikely]] {
      Put(k + 2, Word(k + 2) ^ static_cast<uint64_t>(change >> (128 - shift)));
    }
    const auto byte = static_cast<unsigned>(layout.first_tag() + i);
    const unsigned in_word = byte % 8 * 8;
    Put(byte / 8, (Word(byte / 8) & ~(uint64_t{0xff} << in_word)) | (uint64_t{new_tag} << in_word));
  }

  std::atomic<uint64_t> words_[kWordsMax];  // of which the layout says how many there are
};

}  // namespace firstseen
