// Rows for bench/scale.sh: 56 characters each, all different, in no order, the same for a seed.
//
//   scale_rows COUNT [FIRST [PREFIX]]     rows number FIRST (default 0) to FIRST + COUNT - 1,
//                                         each after PREFIX
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// SplitMix64's output function (Steele, Lea, Flood, 2014): a permutation of the 64-bit numbers.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::array<std::array<char, 2>, 256> MakePairs() {
  std::array<std::array<char, 2>, 256> pairs{};
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = {kDigits[i / 16], kDigits[i % 16]};
  return pairs;
}
constexpr auto kPairs = MakePairs();

char* PutHex(uint64_t value, int bytes, char* out) {
  for (int i = 0; i < bytes; ++i, value >>= 8) {
    *out++ = kPairs[value & 0xff][0];
    *out++ = kPairs[value & 0xff][1];
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: scale_rows COUNT [FIRST [PREFIX]]\n");
    return 2;
  }
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const uint64_t first = argc >= 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::string_view prefix = argc == 4 ? argv[3] : "";
  std::string block((prefix.size() + 57) * 16384, '\n');
  for (uint64_t i = 0; i < count;) {
    char* out = block.data();
    for (; i < count && out != block.data() + block.size(); ++i, ++out) {
      const uint64_t a = Mix(first + i + 1);
      out = std::copy(prefix.begin(), prefix.end(), out);
      out = PutHex(a, 8, out);
      out = PutHex(Mix(a ^ 0x5851f42d4c957f2du), 8, out);
      out = PutHex(Mix(a ^ 0x14057b7ef767814fu), 8, out);
      out = PutHex(a >> 32, 4, out);
      *out = '\n';
    }
    for (const char* next = block.data(); next != out;) {
      const ssize_t written = write(STDOUT_FILENO, next, static_cast<size_t>(out - next));
      if (written < 0) return 1;  // the reader is gone
      next += written;
    }
  }
  return 0;
}
