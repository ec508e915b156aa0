#include "keys/siphash.h"

#include <sodium.h>

#include <bit>
#include <cstring>

namespace firstseen {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(SipKey) == crypto_shorthash_siphashx24_KEYBYTES);
static_assert(sizeof(Fingerprint) == crypto_shorthash_siphashx24_BYTES);

Fingerprint SipHash128(const SipKey& key, std::string_view bytes) {
  unsigned char out[crypto_shorthash_siphashx24_BYTES];
  crypto_shorthash_siphashx24(out, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size(), key.data());
  Fingerprint result;
  std::memcpy(&result.hi, out, 8);
  std::memcpy(&result.lo, out + 8, 8);
  return result;
}

}  // namespace firstseen
