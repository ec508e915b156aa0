// Fixed-width little-endian numbers in byte strings: every number in firstseen's files.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>

namespace firstseen {

static_assert(std::endian::native == std::endian::little,
              "firstseen's files are little-endian; a big-endian machine needs byte swaps here");

template <std::integral T>
void StoreLittle(char* out, T value) {
  std::memcpy(out, &value, sizeof(value));
}

template <std::integral T>
T LoadLittle(const char* in) {
  T value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

template <std::integral T>
void AppendLittle(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace firstseen
