// Reproducible random numbers (SplitMix64, Steele, Lea, Flood 2014): the same seed gives the same
// sample on every machine, which the standard library's distributions do not promise.
#pragma once

#include <cstdint>

namespace firstseen::sample {

// SplitMix64's output function: a bijection of 64-bit numbers that looks random.
inline uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15ull); }

  // 0 to n - 1; n > 0.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

  // True with probability parts / 1'000'000.
  bool Chance(uint32_t parts_per_million) { return Below(1'000'000) < parts_per_million; }

 private:
  uint64_t state_;
};

}  // namespace firstseen::sample
