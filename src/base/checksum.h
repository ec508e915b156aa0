// XXH3-64 of a byte range: every checksum in firstseen's files. Not a defence against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace firstseen {

uint64_t Checksum(std::string_view bytes, uint64_t seed = 0);

}  // namespace firstseen
