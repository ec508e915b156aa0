#include "keys/keyring.h"

#include <sodium.h>

#include "base/check.h"

namespace firstseen {
namespace {

SipKey Derive(const SecretKey& key, std::string_view purpose) {
  static_assert(SecretKey::kBytes >= crypto_generichash_KEYBYTES_MIN);
  SipKey derived;
  static_assert(sizeof(derived) >= crypto_generichash_BYTES_MIN);
  const int failed = crypto_generichash(derived.data(), derived.size(),
                                        reinterpret_cast<const unsigned char*>(purpose.data()),
                                        purpose.size(), key.bytes().data(), key.bytes().size());
  FIRSTSEEN_CHECK(failed == 0);
  return derived;
}

std::string KeyCheckValue(const SecretKey& key) {
  const SipKey hash = Derive(key, "firstseen key check 1");
  constexpr size_t kCheckBytes = 8;
  char hex[2 * kCheckBytes + 1];
  sodium_bin2hex(hex, sizeof(hex), hash.data(), kCheckBytes);
  return hex;
}

}  // namespace

SecretKey SecretKey::Random() {
  FIRSTSEEN_CHECK(sodium_init() >= 0);
  SipKey bytes;
  randombytes_buf(bytes.data(), bytes.size());
  SecretKey key(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  return key;
}

SecretKey::~SecretKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

bool operator==(const SecretKey& a, const SecretKey& b) {
  return sodium_memcmp(a.bytes_.data(), b.bytes_.data(), a.bytes_.size()) == 0;
}

MemberHasher::MemberHasher(const SecretKey& key)
    : fingerprint_key_(Derive(key, "firstseen fingerprint 1")),
      owner_key_(Derive(key, "firstseen owner 1")),
      key_check_value_(KeyCheckValue(key)) {}

Keyring::Keyring(const std::vector<KeyEntry>& entries) {
  FIRSTSEEN_CHECK(!entries.empty());
  for (const KeyEntry& entry : entries) {
    FIRSTSEEN_CHECK(keys_.empty() || keys_.back().from_day < entry.from_day);
    keys_.push_back({entry.id, entry.from_day, MemberHasher(entry.key)});
  }
}

const MemberHasher& Keyring::ForWindow(WindowKind kind, WindowId window) const {
  const int32_t day = FirstDayOfWindow(kind, window);
  size_t i = keys_.size() - 1;
  while (i > 0 && keys_[i].from_day > day) --i;
  return keys_[i].hasher;
}

int32_t FirstDayOfWindow(WindowKind kind, WindowId window) {
  switch (kind) {
    case WindowKind::kNone:
      return 0;
    case WindowKind::kYear:
      return window * 10000 + 101;
    case WindowKind::kMonth:
      return window * 100 + 1;
    case WindowKind::kDay:
      return window;
  }
  return 0;
}

}  // namespace firstseen
