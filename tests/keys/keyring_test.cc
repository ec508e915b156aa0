#include "keys/keyring.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <bit>
#include <set>

#include "support/random.h"

namespace firstseen {
namespace {

SecretKey Key(unsigned char first) { return SecretKey(SipKey{first}); }

TEST(FingerprintTest, TruncatedKeepsTheLeadingBits) {
  const Fingerprint all{~uint64_t{0}, ~uint64_t{0}};
  for (int bits = 1; bits <= 128; ++bits) {
    const Fingerprint cut = all.Truncated(bits);
    EXPECT_EQ(std::popcount(cut.hi) + std::popcount(cut.lo), bits);
    EXPECT_EQ(std::countl_one(cut.hi) + (bits > 64 ? std::countl_one(cut.lo) : 0), bits);
  }
}

TEST(MemberHasherTest, FollowsTheDocumentedDerivation) {
  const SipKey key = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const auto derive = [&](std::string_view purpose) {
    SipKey out;
    crypto_generichash_blake2b(out.data(), 16,
                               reinterpret_cast<const unsigned char*>(purpose.data()),
                               purpose.size(), key.data(), 16);
    return out;
  };
  const MemberHasher hasher{SecretKey(key)};
  EXPECT_EQ(hasher.MemberFingerprint("member"),
            SipHash128(derive("firstseen fingerprint 1"), "member"));
  EXPECT_EQ(hasher.Owner("token"), SipHash128(derive("firstseen owner 1"), "token").hi);
  // Written down once and for all: a change of any of these makes every data directory unreadable.
  EXPECT_EQ(hasher.key_check_value(), "819854046a4a252f");
  EXPECT_EQ(hasher.MemberFingerprint("member"), (Fingerprint{0x54178c0ee73c9a8e, 0x0377bfa6b5baf7f1}));
  EXPECT_EQ(hasher.Owner("token"), 14741897024097748283u);
}

TEST(MemberHasherTest, FingerprintsOwnersAndCheckValuesDifferByKey) {
  const MemberHasher a(Key(1));
  const MemberHasher b(Key(2));
  EXPECT_NE(a.MemberFingerprint("张三"), b.MemberFingerprint("张三"));
  EXPECT_NE(a.Owner("serial"), b.Owner("serial"));
  EXPECT_NE(a.key_check_value(), b.key_check_value());
  EXPECT_NE(a.MemberFingerprint("same").hi, a.Owner("same"));
  EXPECT_EQ(a.key_check_value().size(), 16u);
  EXPECT_EQ(a.key_check_value(), MemberHasher(Key(1)).key_check_value());
}

TEST(MemberHasherTest, OnlyTheEmptyTokenHasNoOwner) {
  const MemberHasher hasher(Key(1));
  EXPECT_EQ(hasher.Owner(""), 0u);
  Random random;
  for (int i = 0; i < 1000; ++i) EXPECT_NE(hasher.Owner(random.Bytes(1 + random.Below(30))), 0u);
}

TEST(SecretKeyTest, RandomKeysDiffer) {
  std::set<SipKey> keys;
  for (int i = 0; i < 100; ++i) keys.insert(SecretKey::Random().bytes());
  EXPECT_EQ(keys.size(), 100u);
  EXPECT_TRUE(Key(1) == Key(1));
  EXPECT_FALSE(Key(1) == Key(2));
}

TEST(KeyringTest, AWindowUsesTheNewestKeyOfItsFirstDay) {
  const Keyring ring({{1, 0, Key(1)}, {2, 20240101, Key(2)}, {5, 20240615, Key(5)}});
  const auto id = [&](WindowKind kind, WindowId window) {
    const MemberHasher* const hasher = &ring.ForWindow(kind, window);
    for (const Keyring::Key& key : ring.keys()) {
      if (&key.hasher == hasher) return key.id;
    }
    return 0u;
  };
  EXPECT_EQ(id(WindowKind::kNone, 0), 1u);
  EXPECT_EQ(id(WindowKind::kYear, 2023), 1u);
  EXPECT_EQ(id(WindowKind::kYear, 2024), 2u);
  EXPECT_EQ(id(WindowKind::kYear, 2025), 5u);
  EXPECT_EQ(id(WindowKind::kMonth, 202312), 1u);
  EXPECT_EQ(id(WindowKind::kMonth, 202401), 2u);
  EXPECT_EQ(id(WindowKind::kMonth, 202406), 2u) << "it began before the key's day";
  EXPECT_EQ(id(WindowKind::kMonth, 202407), 5u);
  EXPECT_EQ(id(WindowKind::kDay, 20231231), 1u);
  EXPECT_EQ(id(WindowKind::kDay, 20240101), 2u);
  EXPECT_EQ(id(WindowKind::kDay, 20240614), 2u);
  EXPECT_EQ(id(WindowKind::kDay, 20240615), 5u);
}

}  // namespace
}  // namespace firstseen
