// The secret keys of a data directory and what is computed with them.
//
// From each 128-bit key K of the key file three values are derived with keyed BLAKE2b-128, so that
// none of them tells anything of the others:
//   fingerprint key  BLAKE2b(key = K, "firstseen fingerprint 1")
//   owner key        BLAKE2b(key = K, "firstseen owner 1")
//   key check value  BLAKE2b(key = K, "firstseen key check 1"), its first 8 bytes as hexadecimal
//
// A member's fingerprint is SipHash-2-4-128 of the encoded member (keys/member.h) under the
// fingerprint key; an owner is the first 64 bits of SipHash-2-4-128 of the token under the owner
// key, with 0 replaced by 1, because 0 stands for "no token".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "firstseen/types.h"
#include "keys/fingerprint.h"
#include "keys/siphash.h"

namespace firstseen {

// Wiped from memory when it goes.
class SecretKey {
 public:
  static constexpr size_t kBytes = 16;

  // From the operating system's random number generator.
  static SecretKey Random();

  explicit SecretKey(const SipKey& bytes) : bytes_(bytes) {}
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  const SipKey& bytes() const { return bytes_; }
  // Constant time.
  friend bool operator==(const SecretKey& a, const SecretKey& b);

 private:
  SipKey bytes_;
};

// What one key computes. Thread-safe; nothing allocates.
class MemberHasher {
 public:
  explicit MemberHasher(const SecretKey& key);

  // All 128 bits; the set keeps the first `bits` of them (Fingerprint::Truncated).
  Fingerprint MemberFingerprint(std::string_view member) const {
    return SipHash128(fingerprint_key_.bytes(), member);
  }
  // Never 0, but for the empty token.
  uint64_t Owner(std::string_view token) const {
    if (token.empty()) return 0;
    const uint64_t hash = SipHash128(owner_key_.bytes(), token).hi;
    return hash == 0 ? 1 : hash;
  }
  // 16 hexadecimal digits; tells two keys apart without telling the key.
  const std::string& key_check_value() const { return key_check_value_; }

 private:
  SecretKey fingerprint_key_;
  SecretKey owner_key_;
  std::string key_check_value_;
};

// One key of a key file.
struct KeyEntry {
  uint32_t id = 1;
  // First day, as yyyymmdd, of the windows that use this key instead of the one before it; 0 for
  // the first key.
  int32_t from_day = 0;
  SecretKey key;
};

// All keys, oldest first. A window uses the newest key whose from_day is not after the window's
// first day, so a new key starts with a new window and no window ever changes its key.
class Keyring {
 public:
  struct Key {
    uint32_t id;
    int32_t from_day;
    MemberHasher hasher;
  };

  // `entries` as ParseKeyFile gives them: at least one, from_day ascending.
  explicit Keyring(const std::vector<KeyEntry>& entries);

  const MemberHasher& ForWindow(WindowKind kind, WindowId window) const;
  const std::vector<Key>& keys() const { return keys_; }

 private:
  std::vector<Key> keys_;
};

// First day of a window as yyyymmdd; 0 for kind none.
int32_t FirstDayOfWindow(WindowKind kind, WindowId window);

}  // namespace firstseen
