// A growing (or pre-sized) ExactSet against the limit of its memory and against the information
// bound.
//
//   exact_growth_bench KEYS [BITS] [EXPECTED]      e.g. 200000000 96, or 200000000 96 200000000
//
// Prints CSV, a line for every 2 per cent that the set has grown from a million keys on: keys,
// resident bytes a key, the bound's, load factor. Then, as lines that begin with '#': the rate at
// which this core fetches random lines of 64 bytes from as much memory as 8 GiB, or the environment
// variable FIRSTSEEN_BENCH_LIMIT_MB says, with the page kind of the table, at the best prefetch
// distance; and batched adds and lookups, also as shares of it (lookups: median of 8 passes over
// 4 million keys each).
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "exact/exact_set.h"

namespace firstseen {
namespace {

constexpr size_t kBatch = 4096;
constexpr uint64_t kPassKeys = 1000 * kBatch;
constexpr int kPasses = 8;

// SplitMix64's output function (Steele, Lea, Flood, 2014): stands in for the keyed fingerprint.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

uint64_t ResidentBytes() {
  uint64_t total = 0;
  uint64_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Random lines a second at one prefetch distance.
double FetchRate(const char* memory, uint64_t lines, size_t distance) {
  constexpr size_t kCount = size_t{1} << 20;
  std::vector<uint64_t> order(kCount);
  for (size_t i = 0; i < kCount; ++i) order[i] = Mix(i * kCount + distance) % lines * 64;
  uint64_t sum = 0;
  const double start = ThreadSeconds();
  for (size_t i = 0; i + distance < kCount; ++i) {
    __builtin_prefetch(memory + order[i + distance]);
    sum += static_cast<uint64_t>(memory[order[i]]);
  }
  const double seconds = ThreadSeconds() - start;
  return sum == 1 ? 0 : static_cast<double>(kCount - distance) / seconds;
}

double LineFetchLimit() {
  const char* const text = std::getenv("FIRSTSEEN_BENCH_LIMIT_MB");
  const size_t bytes = (text == nullptr ? size_t{8192} : std::strtoull(text, nullptr, 10)) << 20;
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return 0;
  char* const memory = static_cast<char*>(mapped);
  madvise(memory, bytes, MADV_HUGEPAGE);
  for (size_t at = 0; at < bytes; at += 4096) memory[at] = 2;
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    for (size_t distance = 8; distance <= 64; distance += 8) {
      best = std::max(best, FetchRate(memory, bytes / 64, distance));
    }
  }
  munmap(memory, bytes);
  return best;
}

class Growth {
 public:
  Growth(uint64_t keys, int bits, uint64_t expected)
      : keys_(keys / kBatch * kBatch), bits_(bits), set_(&arena_, {bits, expected}) {}

  double Add() {
    std::array<AddOutcome, kBatch> outcomes;
    const uint64_t before = ResidentBytes();
    double seconds = 0;
    uint64_t next = std::min<uint64_t>(1'000'000, keys_);
    for (uint64_t first = 0; first < keys_; first += kBatch) {
      Fill([&](uint64_t i) { return first + i; });
      const double start = ThreadSeconds();
      set_.AddBatch(batch_, outcomes);
      seconds += ThreadSeconds() - start;
      if (set_.size() < next) continue;
      next = next * 51 / 50;
      const auto size = static_cast<double>(set_.size());
      std::printf(
          "%lu,%.4f,%.4f,%.4f\n", set_.size(), static_cast<double>(ResidentBytes() - before) / size,
          (bits_ - std::log2(size) + 1.44) / 8, size / static_cast<double>(set_.slot_count()));
    }
    return static_cast<double>(keys_) / seconds;
  }

  double Lookup(bool hit) {
    std::array<bool, kBatch> present;
    std::vector<double> rates;
    for (uint64_t pass = 0; pass < kPasses; ++pass) {
      double seconds = 0;
      for (uint64_t first = 0; first < kPassKeys; first += kBatch) {
        Fill([&](uint64_t i) {
          const uint64_t index = pass * kPassKeys + first + i;
          return hit ? Mix(index + 0x5eed) % keys_ : index + (uint64_t{1} << 60);
        });
        const double start = ThreadSeconds();
        set_.ContainsBatch(batch_, present);
        seconds += ThreadSeconds() - start;
        if (std::ranges::count(present, hit) != static_cast<ptrdiff_t>(kBatch)) {
          std::printf("# WRONG: a lookup gave another answer than it must\n");
        }
      }
      rates.push_back(static_cast<double>(kPassKeys) / seconds);
    }
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
  }

 private:
  template <typename Index>
  void Fill(Index index) {
    for (uint64_t i = 0; i < kBatch; ++i) {
      const uint64_t k = index(i);
      batch_[i] =
          Fingerprint{Mix(k * 2 * 0x9e3779b97f4a7c15u), Mix((k * 2 + 1) * 0x9e3779b97f4a7c15u)}
              .Truncated(bits_);
    }
  }

  const uint64_t keys_;
  const int bits_;
  Arena arena_{Arena::Options{}};
  ExactSet set_;
  std::array<Fingerprint, kBatch> batch_;
};

}  // namespace
}  // namespace firstseen

int main(int argc, char** argv) {
  const auto argument = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const double limit = firstseen::LineFetchLimit();
  firstseen::Growth growth(argument(1, 50'000'000), static_cast<int>(argument(2, 96)),
                           argument(3, 0));
  std::printf("keys,bytes_per_key,bound,load\n");
  const double add = growth.Add();
  const double hit = growth.Lookup(true);
  const double miss = growth.Lookup(false);
  std::printf("# random lines, million a second: %.1f\n", limit / 1e6);
  const auto print = [&](const char* what, double rate) {
    std::printf("# %s, million a second: %.2f, of the limit: %.0f %%\n", what, rate / 1e6,
                100 * rate / limit);
  };
  print("adds", add);
  print("lookups that hit", hit);
  print("lookups that miss", miss);
  return 0;
}
