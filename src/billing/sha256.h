// SHA-256 (FIPS 180-4), from libsodium, piece by piece and of whole files.
#pragma once

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file.h"

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

// What a file holds, told by its size and hash.
struct FileDigest {
  uint64_t bytes = 0;
  std::string sha256;
  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};
// Of the file's bytes as they are.
absl::StatusOr<FileDigest> DigestFile(FileSystem* files, const std::string& path);

}  // namespace firstseen
