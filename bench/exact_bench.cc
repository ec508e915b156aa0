// ExactSet beside boost::unordered_flat_set of 128-bit keys, on one core, in one run.
//
//   FIRSTSEEN_BENCH_KEYS=50000000   keys added (default 50 million)
//   FIRSTSEEN_BENCH_BITS=96         width of the fingerprints (default 96)
//
// Each phase goes over all keys once: adding while the set grows from nothing without being told
// its size, lookups of keys that are there (in an order unrelated to that of adding), and lookups
// of keys that are not. Keys are made outside the measured time. At the end it prints the ratios.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "exact/exact_set.h"

namespace firstseen {
namespace {

constexpr size_t kBatch = 4096;
using Keys = std::array<Fingerprint, kBatch>;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
uint64_t KeyCount() {
  static const uint64_t count = FromEnvironment("FIRSTSEEN_BENCH_KEYS", 50'000'000);
  return count / kBatch * kBatch;
}
int Bits() {
  static const int bits = static_cast<int>(FromEnvironment("FIRSTSEEN_BENCH_BITS", 96));
  return bits;
}

// SplitMix64's output function (Steele, Lea, Flood, 2014): stands in for the keyed fingerprint.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Fingerprint KeyAt(uint64_t index) {
  return Fingerprint{Mix(index * 2 * 0x9e3779b97f4a7c15u),
                     Mix((index * 2 + 1) * 0x9e3779b97f4a7c15u)}
      .Truncated(Bits());
}

enum class Order { kAscending, kRandom, kMissing };

void MakeKeys(uint64_t first, Order order, Keys* keys) {
  for (uint64_t i = 0; i < kBatch; ++i) {
    uint64_t index = first + i;
    if (order == Order::kRandom) index = Mix(index + 0x5eed) % KeyCount();
    if (order == Order::kMissing) index += uint64_t{1} << 60;
    (*keys)[i] = KeyAt(index);
  }
}

uint64_t ResidentBytes() {
  malloc_trim(0);
  uint64_t total = 0;
  uint64_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%lu %lu", &total, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// The two contenders, with the same face.
class Ours {
 public:
  static constexpr const char* kName = "ExactSet";
  Ours() : set_(&arena_, {.bits = Bits()}) {}
  void Add(const Keys& keys) { set_.AddBatch(keys, outcomes_); }
  uint64_t CountPresent(const Keys& keys) {
    set_.ContainsBatch(keys, present_);
    uint64_t count = 0;
    for (const bool present : present_) count += present ? 1 : 0;
    return count;
  }
  uint64_t size() const { return set_.size(); }

 private:
  Arena arena_{Arena::Options{}};
  ExactSet set_;
  std::array<AddOutcome, kBatch> outcomes_;
  std::array<bool, kBatch> present_;
};

class Boosts {
 public:
  static constexpr const char* kName = "boost::unordered_flat_set";
  void Add(const Keys& keys) {
    for (const Fingerprint& key : keys) set_.insert(key);
  }
  uint64_t CountPresent(const Keys& keys) {
    uint64_t count = 0;
    for (const Fingerprint& key : keys) count += set_.contains(key) ? 1 : 0;
    return count;
  }
  uint64_t size() const { return set_.size(); }

 private:
  struct Hash {
    using is_avalanching = void;
    size_t operator()(const Fingerprint& key) const { return key.hi ^ key.lo; }
  };
  boost::unordered_flat_set<Fingerprint, Hash> set_;
};

struct Figures {
  double add = 0;
  double hit = 0;
  double miss = 0;
  double bytes = 0;
};

template <typename Contender>
struct Run {
  std::unique_ptr<Contender> set;
  uint64_t resident_before = 0;
  Figures figures;
};
template <typename Contender>
Run<Contender>& TheRun() {
  static Run<Contender> run;
  return run;
}

// Processor time of this thread, system time included: what one core needs, whoever else is there.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One pass over all keys; returns operations a second.
template <typename Operation>
double Pass(benchmark::State& state, Order order, Operation operation) {
  double seconds = 0;
  for (auto iteration : state) {
    const auto keys = std::make_unique<Keys>();
    for (uint64_t first = 0; first < KeyCount(); first += kBatch) {
      MakeKeys(first, order, keys.get());
      const double start = ThreadSeconds();
      operation(*keys);
      seconds += ThreadSeconds() - start;
    }
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(static_cast<int64_t>(KeyCount()));
  return static_cast<double>(KeyCount()) / seconds;
}

template <typename Contender>
void BM_AddWhileGrowing(benchmark::State& state) {
  Run<Contender>& run = TheRun<Contender>();
  run.set = std::make_unique<Contender>();
  run.resident_before = ResidentBytes();
  run.figures.add = Pass(state, Order::kAscending, [&](const Keys& keys) { run.set->Add(keys); });
  if (run.set->size() != KeyCount()) state.SkipWithError("keys are missing");
  run.figures.bytes =
      static_cast<double>(ResidentBytes() - run.resident_before) / static_cast<double>(KeyCount());
  state.counters["bytes_per_key"] = run.figures.bytes;
}

template <typename Contender>
void BM_LookupHit(benchmark::State& state) {
  Run<Contender>& run = TheRun<Contender>();
  uint64_t found = 0;
  run.figures.hit =
      Pass(state, Order::kRandom, [&](const Keys& keys) { found += run.set->CountPresent(keys); });
  if (found != KeyCount()) state.SkipWithError("a key that was added is not found");
}

template <typename Contender>
void BM_LookupMiss(benchmark::State& state) {
  Run<Contender>& run = TheRun<Contender>();
  uint64_t found = 0;
  run.figures.miss =
      Pass(state, Order::kMissing, [&](const Keys& keys) { found += run.set->CountPresent(keys); });
  if (found != 0) state.SkipWithError("a key that was never added is found");
}

template <typename Contender>
void BM_Destroy(benchmark::State& state) {
  for (auto iteration : state) TheRun<Contender>().set.reset();
}

template <typename Contender>
void Register() {
  const std::string name = Contender::kName;
  const auto once = [](benchmark::internal::Benchmark* registered, bool manual) {
    registered->Iterations(1)->Unit(benchmark::kMillisecond);
    if (manual) registered->UseManualTime();
  };
  once(benchmark::RegisterBenchmark((name + "/add_while_growing").c_str(),
                                    BM_AddWhileGrowing<Contender>),
       true);
  once(benchmark::RegisterBenchmark((name + "/lookup_hit").c_str(), BM_LookupHit<Contender>), true);
  once(benchmark::RegisterBenchmark((name + "/lookup_miss").c_str(), BM_LookupMiss<Contender>),
       true);
  once(benchmark::RegisterBenchmark((name + "/destroy").c_str(), BM_Destroy<Contender>), false);
}

void PrintRatios() {
  const Figures& ours = TheRun<Ours>().figures;
  const Figures& boosts = TheRun<Boosts>().figures;
  if (ours.add == 0 || boosts.add == 0) return;
  std::printf("\n%lu keys, %d bits        ExactSet      boost   ratio   bar\n", KeyCount(), Bits());
  std::printf("adds, million a second    %8.2f   %8.2f   %5.2f   0.5\n", ours.add / 1e6,
              boosts.add / 1e6, ours.add / boosts.add);
  std::printf("hits, million a second    %8.2f   %8.2f   %5.2f   1.0\n", ours.hit / 1e6,
              boosts.hit / 1e6, ours.hit / boosts.hit);
  std::printf("misses, million a second  %8.2f   %8.2f   %5.2f   1.0\n", ours.miss / 1e6,
              boosts.miss / 1e6, ours.miss / boosts.miss);
  std::printf("resident bytes a key      %8.2f   %8.2f   %5.2f   (12.0 bytes)\n", ours.bytes,
              boosts.bytes, ours.bytes / boosts.bytes);
}

}  // namespace
}  // namespace firstseen

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  firstseen::Register<firstseen::Ours>();
  firstseen::Register<firstseen::Boosts>();
  benchmark::RunSpecifiedBenchmarks();
  firstseen::PrintRatios();
  benchmark::Shutdown();
  return 0;
}
