// The stated chance of a false duplicate, checked where false duplicates are frequent: at widths
// far below those that the product offers. What holds for 32 and 40 bits holds for 96, because the
// width only says how many bits of the same keyed function are kept.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "exact/exact_set.h"
#include "keys/siphash.h"

namespace firstseen {
namespace {

// Adds `members` different members, fingerprinted under key number `key`, to an empty set and
// counts those that it takes for duplicates. Keys and members are fixed, so a run is like any
// other.
uint64_t FalseDuplicates(int bits, uint64_t members, uint64_t key) {
  SipKey sip_key{};
  std::memcpy(sip_key.data(), &key, sizeof(key));
  Arena arena{Arena::Options{}};
  ExactSet set(&arena, {.bits = bits});
  constexpr uint64_t kBatch = 4096;
  std::vector<Fingerprint> fingerprints;
  std::vector<AddOutcome> outcomes(kBatch);
  uint64_t duplicates = 0;
  for (uint64_t first = 0; first < members; first += kBatch) {
    fingerprints.clear();
    for (uint64_t i = first; i < std::min(members, first + kBatch); ++i) {
      std::string member = "member 0000000000000000";
      std::memcpy(member.data() + 7, &i, sizeof(i));
      fingerprints.push_back(SipHash128(sip_key, member).Truncated(bits));
    }
    const std::span<AddOutcome> part(outcomes.data(), fingerprints.size());
    set.AddBatch(fingerprints, part);
    for (const AddOutcome outcome : part) duplicates += outcome == AddOutcome::kPresent ? 1 : 0;
  }
  return duplicates;
}

// Of n members nearly n^2 / 2^(bits + 1) are false duplicates: a Poisson count.
void ExpectWithin3Sigma(int bits, uint64_t members, uint64_t keys) {
  const double one = std::pow(static_cast<double>(members), 2) / std::pow(2.0, bits + 1);
  const double expected = one * static_cast<double>(keys);
  uint64_t found = 0;
  for (uint64_t key = 1; key <= keys; ++key) found += FalseDuplicates(bits, members, key);
  EXPECT_NEAR(static_cast<double>(found), expected, 3 * std::sqrt(expected))
      << bits << " bits, " << members << " members, " << keys << " keys";
}

TEST(FalseDuplicateTest, AsManyAsTheFormulaSaysAt32Bits) { ExpectWithin3Sigma(32, 500'000, 4); }

TEST(FalseDuplicateTestLong, AsManyAsTheFormulaSaysAt32Bits) {
  ExpectWithin3Sigma(32, 3'000'000, 8);
}

TEST(FalseDuplicateTestLong, AsManyAsTheFormulaSaysAt40Bits) {
  ExpectWithin3Sigma(40, 10'000'000, 6);
}

// What `stats` prints is a bound on the chance of any: 1 - exp(-n^2 / 2^(bits + 1)) of all sets
// have one.
TEST(FalseDuplicateTestLong, AsManySetsHaveAnyAsTheFormulaSays) {
  constexpr uint64_t kSets = 400;
  constexpr uint64_t kMembers = 65'536;
  const double stated = FalseDuplicateProbability(kMembers, 32);
  const double chance = -std::expm1(-stated);
  uint64_t with_any = 0;
  for (uint64_t key = 1; key <= kSets; ++key) {
    with_any += FalseDuplicates(32, kMembers, key) != 0 ? 1 : 0;
  }
  const double measured = static_cast<double>(with_any) / kSets;
  EXPECT_NEAR(measured, chance, 3 * std::sqrt(chance * (1 - chance) / kSets));
  EXPECT_LT(measured, stated);
}

}  // namespace
}  // namespace firstseen
