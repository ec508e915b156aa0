// SHA-256 (FIPS 180-4), from libsodium, piece by piece.
#pragma once

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <string>
#include <string_view>

namespace firstseen {

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void Add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  // 64 hexadecimal digits; once.
  std::string Finish() {
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
    crypto_hash_sha256_final(&state_, hash.data());
    return fmt::format("{:02x}", fmt::join(hash, ""));
  }

 private:
  crypto_hash_sha256_state state_;
};

}  // namespace firstseen
