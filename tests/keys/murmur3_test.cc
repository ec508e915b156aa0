#include "keys/murmur3.h"

#include <gtest/gtest.h>

#include <string>

#include "support/random.h"

namespace firstseen {
namespace {

// Known answers of Guava's own test of murmur3_128, where each line's number is the seed.
TEST(Murmur3Test, GivesGuavasKnownValues) {
  EXPECT_EQ(Murmur3_128("hell", 0), (Murmur3{0x629942693e10f867, 0x92db0b82baeb5347}));
  EXPECT_EQ(Murmur3_128("hello", 1), (Murmur3{0xa78ddff5adae8d10, 0x128900ef20900135}));
  EXPECT_EQ(Murmur3_128("hello ", 2), (Murmur3{0x8a486b23f422e826, 0xf962a2c58947765f}));
  EXPECT_EQ(Murmur3_128("hello w", 3), (Murmur3{0x2ea59f466f6bed8c, 0xc610990acc428a17}));
  EXPECT_EQ(Murmur3_128("hello wo", 4), (Murmur3{0x79f6305a386c572c, 0x46305aed3483b94e}));
  EXPECT_EQ(Murmur3_128("hello wor", 5), (Murmur3{0xc2219d213ec1f1b5, 0xa1d8e2e0a52785bd}));
  EXPECT_EQ(Murmur3_128("The quick brown fox jumps over the lazy dog"),
            (Murmur3{0xe34bbc7bbc071b6c, 0x7a433ca9c49a9347}));
  EXPECT_EQ(Murmur3_128("The quick brown fox jumps over the lazy cog"),
            (Murmur3{0x658ca970ff85269a, 0x43fee3eaa68e5c3e}));
  EXPECT_EQ(Murmur3_128(""), (Murmur3{0, 0}));
}

// The reference algorithm as its author lays it out: a switch over the tail's bytes.
Murmur3 PlainMurmur3(const std::string& s, uint32_t seed) {
  const auto rotl = [](uint64_t x, int r) { return (x << r) | (x >> (64 - r)); };
  const auto fmix = [](uint64_t k) {
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccd;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53;
    return k ^ (k >> 33);
  };
  const uint64_t c1 = 0x87c37b91114253d5;
  const uint64_t c2 = 0x4cf5ad432745937f;
  const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(s[i])}; };
  uint64_t h1 = seed;
  uint64_t h2 = seed;
  const size_t blocks = s.size() / 16;
  for (size_t b = 0; b < blocks; ++b) {
    uint64_t k1 = 0;
    uint64_t k2 = 0;
    for (int i = 7; i >= 0; --i) k1 = k1 << 8 | byte(b * 16 + i);
    for (int i = 7; i >= 0; --i) k2 = k2 << 8 | byte(b * 16 + 8 + i);
    h1 ^= rotl(k1 * c1, 31) * c2;
    h1 = (rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= rotl(k2 * c2, 33) * c1;
    h2 = (rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  const size_t rest = s.size() % 16;
  uint64_t k1 = 0;
  uint64_t k2 = 0;
  for (size_t i = rest; i > 8; --i) k2 ^= byte(blocks * 16 + i - 1) << (8 * (i - 9));
  if (rest > 8) h2 ^= rotl(k2 * c2, 33) * c1;
  for (size_t i = rest < 8 ? rest : 8; i > 0; --i) {
    k1 ^= byte(blocks * 16 + i - 1) << (8 * (i - 1));
  }
  if (rest > 0) h1 ^= rotl(k1 * c1, 31) * c2;
  h1 ^= s.size();
  h2 ^= s.size();
  h1 += h2;
  h2 += h1;
  h1 = fmix(h1);
  h2 = fmix(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

TEST(Murmur3Test, AgreesWithAnIndependentImplementationOnEveryLength) {
  Random random;
  for (size_t size = 0; size < 300; ++size) {
    const std::string bytes = random.Bytes(size);
    const auto seed = static_cast<uint32_t>(random.Below(1u << 31));
    EXPECT_EQ(Murmur3_128(bytes, seed), PlainMurmur3(bytes, seed)) << size << " bytes";
  }
}

TEST(Murmur3Test, AsLongIsTheFirstHalfSigned) {
  EXPECT_EQ(GuavaAsLong("hell"), 0x629942693e10f867);
  EXPECT_LT(GuavaAsLong("The quick brown fox jumps over the lazy dog"), 0);
}

TEST(Murmur3Test, BucketIsTheUnsignedRemainder) {
  EXPECT_EQ(GuavaBucket("The quick brown fox jumps over the lazy dog", 1000),
            0xe34bbc7bbc071b6cu % 1000);
  EXPECT_EQ(GuavaBucket("", 1000), 0u);
}

TEST(Murmur3Test, SpreadsIdNumbersEvenlyOverAThousandBuckets) {
  std::vector<int> counts(1000);
  for (int i = 0; i < 100'000; ++i) {
    ++counts[GuavaBucket("33010219900101" + std::to_string(1000 + i), 1000)];
  }
  for (const int count : counts) {  // 100 expected; eight standard deviations
    EXPECT_GT(count, 20);
    EXPECT_LT(count, 180);
  }
}

}  // namespace
}  // namespace firstseen
