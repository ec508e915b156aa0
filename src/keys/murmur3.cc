#include "keys/murmur3.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace firstseen {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kC1 = 0x87c37b91114253d5;
constexpr uint64_t kC2 = 0x4cf5ad432745937f;

uint64_t MixK1(uint64_t k1) { return std::rotl(k1 * kC1, 31) * kC2; }
uint64_t MixK2(uint64_t k2) { return std::rotl(k2 * kC2, 33) * kC1; }

uint64_t Finish(uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

}  // namespace

Murmur3 Murmur3_128(std::string_view bytes, uint32_t seed) {
  uint64_t h1 = seed;
  uint64_t h2 = seed;
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 16; p += 16, left -= 16) {
    uint64_t k[2];
    std::memcpy(k, p, 16);
    h1 = (std::rotl(h1 ^ MixK1(k[0]), 27) + h2) * 5 + 0x52dce729;
    h2 = (std::rotl(h2 ^ MixK2(k[1]), 31) + h1) * 5 + 0x38495ab5;
  }
  // A tail shorter than a block is padded with zeros, which the mixing maps to zero.
  uint64_t tail[2] = {0, 0};
  if (left > 0) std::memcpy(tail, p, left);
  h1 ^= MixK1(tail[0]) ^ bytes.size();
  h2 ^= MixK2(tail[1]) ^ bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = Finish(h1);
  h2 = Finish(h2);
  h1 += h2;
  return {h1, h2 + h1};
}

int64_t GuavaAsLong(std::string_view text) { return static_cast<int64_t>(Murmur3_128(text).h1); }

uint64_t GuavaBucket(std::string_view text, uint64_t buckets) {
  FIRSTSEEN_CHECK(buckets > 0);
  return Murmur3_128(text).h1 % buckets;
}

}  // namespace firstseen
