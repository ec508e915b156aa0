// Random numbers for tests. The seed is printed when a test fails and taken from the environment
// variable FIRSTSEEN_SEED, so that every failure can be repeated.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace firstseen {

class Random {
 public:
  Random() : Random(SeedFromEnvironment()) {}
  explicit Random(uint64_t seed)
      : trace_(__FILE__, __LINE__, "FIRSTSEEN_SEED=" + std::to_string(seed)), engine_(seed) {}

  uint64_t Next() { return engine_(); }
  // 0 to n - 1; n > 0.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(Below(256));
    return bytes;
  }

 private:
  static uint64_t SeedFromEnvironment() {
    const char* const text = std::getenv("FIRSTSEEN_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  }

  const testing::ScopedTrace trace_;  // names the seed in every failure while this lives
  std::mt19937_64 engine_;
};

}  // namespace firstseen
