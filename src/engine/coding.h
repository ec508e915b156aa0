// Reading and writing the numbers and strings of log records and snapshot sections.
//
// Everything is little-endian; fingerprints are big-endian and cut to their width, so that byte
// order is their order. A reader that runs over the end answers zeros and is no longer ok().
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "keys/fingerprint.h"

namespace firstseen {

class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out) {}

  template <typename Number>
  void Put(Number value) {
    AppendLittle(out_, value);
  }
  // A 32-bit length and the bytes.
  void String(std::string_view text) {
    FIRSTSEEN_CHECK(text.size() <= UINT32_MAX);
    Put(static_cast<uint32_t>(text.size()));
    out_->append(text);
  }
  // The first `size` bytes (10 to 16) of the big-endian form.
  void Print(const Fingerprint& fingerprint, size_t size) {
    const uint64_t big_endian[2] = {__builtin_bswap64(fingerprint.hi),
                                    __builtin_bswap64(fingerprint.lo)};
    out_->append(reinterpret_cast<const char*>(big_endian), size);
  }

 private:
  std::string* out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename Number>
  Number Get() {
    const std::string_view bytes = Bytes(sizeof(Number));
    return ok_ ? LoadLittle<Number>(bytes.data()) : 0;
  }
  std::string_view Bytes(size_t size) {
    if (rest_.size() < size) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::string_view String() { return Bytes(Get<uint32_t>()); }
  Fingerprint Print(size_t size) {
    if (size > sizeof(uint64_t[2])) ok_ = false;
    const std::string_view bytes = Bytes(size);
    uint64_t big_endian[2] = {0, 0};
    if (ok_) std::memcpy(big_endian, bytes.data(), size);
    return {__builtin_bswap64(big_endian[0]), __builtin_bswap64(big_endian[1])};
  }

  std::string_view rest() const { return rest_; }
  // For a value that cannot be.
  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  // Everything was there and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace firstseen
