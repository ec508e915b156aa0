#include "engine/elias_fano.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/random.h"

namespace firstseen {
namespace {

// `n` different fingerprints of `bits` bits whose first `depth` bits are those of `prefix`.
std::vector<Fingerprint> Draw(Random* random, size_t n, int bits, int depth, Fingerprint prefix) {
  const Fingerprint ones = Fingerprint{~uint64_t{0}, ~uint64_t{0}}.Truncated(depth);
  std::vector<Fingerprint> prints;
  while (prints.size() < n) {
    while (prints.size() < n) {
      Fingerprint print = Fingerprint{random->Next(), random->Next()}.Truncated(bits);
      print.hi = (print.hi & ~ones.hi) | (prefix.hi & ones.hi);
      print.lo = (print.lo & ~ones.lo) | (prefix.lo & ones.lo);
      prints.push_back(print);
    }
    std::sort(prints.begin(), prints.end());
    prints.erase(std::unique(prints.begin(), prints.end()), prints.end());
  }
  return prints;
}

TEST(EliasFanoTest, EveryWidthDepthAndCountComesBack) {
  Random random;
  for (const int bits : {32, 64, 65, 80, 88, 96, 112, 127, 128}) {
    for (const int depth : {0, 1, 7, 13, 30}) {
      for (const size_t n : {0, 1, 2, 3, 7, 64, 1000}) {
        if (bits - depth < 12 && n > 3) continue;  // not so many are different
        const Fingerprint prefix = Fingerprint{random.Next(), random.Next()}.Truncated(depth);
        const std::vector<Fingerprint> prints = Draw(&random, n, bits, depth, prefix);
        std::string bytes;
        EncodeEliasFano(prints, bits, depth, &bytes);
        const auto decoded = DecodeEliasFano(bytes, n, bits, depth, prefix);
        ASSERT_TRUE(decoded.ok()) << bits << " " << depth << " " << n << ": " << decoded.status();
        ASSERT_EQ(*decoded, prints) << bits << " " << depth << " " << n;
      }
    }
  }
}

TEST(EliasFanoTest, EndsOfTheRangeComeBack) {
  const std::vector<Fingerprint> prints = {{0, 0}, {0, 1ull << 32}, {~0ull, ~0ull << 32}};
  std::string bytes;
  EncodeEliasFano(prints, 96, 0, &bytes);
  EXPECT_EQ(DecodeEliasFano(bytes, 3, 96, 0, {}).value(), prints);
}

TEST(EliasFanoTest, StaysNearTheInformationBound) {
  Random random;
  for (const size_t n : {5000, 8192, 10000, 12000}) {
    const std::vector<Fingerprint> prints = Draw(&random, n, 96, 12, {});
    std::string bytes;
    EncodeEliasFano(prints, 96, 12, &bytes);
    const double bound = 84 - std::log2(static_cast<double>(n)) + 1.44;
    EXPECT_LT(static_cast<double>(bytes.size()) * 8 / static_cast<double>(n), 1.01 * bound);
  }
}

TEST(EliasFanoTest, OtherBytesAreRefused) {
  Random random;
  const std::vector<Fingerprint> prints = Draw(&random, 100, 96, 8, {});
  std::string bytes;
  EncodeEliasFano(prints, 96, 8, &bytes);
  EXPECT_FALSE(DecodeEliasFano(bytes, 99, 96, 8, {}).ok());
  EXPECT_FALSE(DecodeEliasFano(bytes, 101, 96, 8, {}).ok());
  EXPECT_FALSE(DecodeEliasFano(bytes, 1'000'000'000, 96, 8, {}).ok());
  EXPECT_FALSE(DecodeEliasFano("", 1, 96, 8, {}).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeEliasFano(bytes.substr(0, size), 100, 96, 8, {}).ok());
  }
  // Whatever the bytes are, nothing outside them is touched and the answer is in range.
  for (int i = 0; i < 2000; ++i) {
    const size_t n = random.Below(50);
    const auto decoded = DecodeEliasFano(random.Bytes(random.Below(200)), n, 96, 8, {});
    if (decoded.ok()) {
      EXPECT_EQ(decoded->size(), n);
    }
  }
}

}  // namespace
}  // namespace firstseen
