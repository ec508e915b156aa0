#include "base/checksum.h"

#include <xxhash.h>

namespace firstseen {

uint64_t Checksum(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace firstseen
