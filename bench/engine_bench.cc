// The engine: claims, start-up, thousands of sets, dropping a window.
//
//   engine_bench                                    50 million members, 1 000 x 20 000, 60 000
//   small FIRSTSEEN_BENCH_MEMBERS=200000000 engine_bench  another number
//
// Works in a directory under $TMPDIR (or /tmp), which needs about 2 GB and is removed.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"

namespace firstseen {
namespace {

Fingerprint Print(uint64_t n) {
  const auto mix = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  };
  return {mix(2 * n), mix(2 * n + 1)};
}

uint64_t MembersWanted() {
  const char* text = std::getenv("FIRSTSEEN_BENCH_MEMBERS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 50'000'000;
}

uint64_t ResidentBytes() {
  uint64_t pages = 0;
  uint64_t resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  FIRSTSEEN_CHECK(file != nullptr && std::fscanf(file, "%lu %lu", &pages, &resident) == 2);
  std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

class Directory {
 public:
  Directory() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/firstseen-bench-" +
            std::to_string(getpid());
    std::filesystem::remove_all(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  EngineOptions options() const {
    EngineOptions options;
    options.directory = path_;
    options.key_check_value = "bench";
    options.snapshot_log_bytes = 0;
    return options;
  }
  std::unique_ptr<Engine> Open() const {
    auto engine = Engine::Open(options());
    FIRSTSEEN_CHECK(engine.ok());
    return *std::move(engine);
  }
  std::unique_ptr<Engine> Create() const {
    FIRSTSEEN_CHECK(Engine::Create(options()).ok());
    return Open();
  }

 private:
  std::string path_;
};

SetOptions Options(Durability durability) {
  SetOptions options;
  options.window = WindowKind::kYear;
  options.fields = {{"name", kTrim}, {"id_no", kTrim}};
  options.durability = durability;
  return options;
}

void Fill(Engine& engine, SetId set, uint64_t begin, uint64_t end) {
  ImportBatch batch{.source = "bench", .position = "", .rows = {}};
  for (uint64_t n = begin; n < end;) {
    batch.rows.clear();
    for (; n < end && batch.rows.size() < 65536; ++n) batch.rows.push_back({2023, Print(n), 0});
    FIRSTSEEN_CHECK(engine.Import(set, batch).ok());
  }
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Claims of new members by `threads` threads in batches.
void BM_Claim(benchmark::State& state) {
  const auto durability = static_cast<Durability>(state.range(0));
  const auto batch = static_cast<size_t>(state.range(1));
  const auto threads = static_cast<size_t>(state.range(2));
  const uint64_t owner = static_cast<uint64_t>(state.range(3));
  Directory directory;
  auto engine = directory.Create();
  const SetId set = engine->CreateSet("kyc", Options(durability)).value();
  uint64_t claimed = 0;
  constexpr int kBatches = 40;
  for (auto _ : state) {
    std::vector<std::thread> workers;
    for (size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        std::vector<ClaimRequest> requests(batch);
        std::vector<ClaimResult> results(batch);
        for (int i = 0; i < kBatches; ++i) {
          for (size_t j = 0; j < batch; ++j) {
            const uint64_t n = claimed + (t * kBatches + static_cast<uint64_t>(i)) * batch + j;
            requests[j] = {2023, Print(n), owner == 0 ? 0 : n + 1};
          }
          FIRSTSEEN_CHECK(engine->Claim(set, requests, results).ok());
          FIRSTSEEN_CHECK(results[0].verdict == Verdict::kFirst);
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    claimed += kBatches * threads * batch;
  }
  state.SetItemsProcessed(static_cast<int64_t>(claimed));
  state.counters["owner_bytes"] =
      static_cast<double>(engine->Stats().owner_bytes) / static_cast<double>(claimed);
}
BENCHMARK(BM_Claim)
    ->ArgNames({"durability", "batch", "threads", "owner"})
    ->Args({0, 1, 1, 1})
    ->Args({0, 1, 16, 1})
    ->Args({0, 64, 1, 1})
    ->Args({0, 1024, 1, 0})
    ->Args({0, 1024, 2, 1})
    ->Args({1, 1024, 1, 0})
    ->Args({1, 1024, 1, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_Check(benchmark::State& state) {
  Directory directory;
  auto engine = directory.Create();
  const SetId set = engine->CreateSet("kyc", Options(Durability::kFsync)).value();
  constexpr uint64_t kMembers = 5'000'000;
  Fill(*engine, set, 0, kMembers);
  FIRSTSEEN_CHECK(engine->ImportSync().ok());
  std::vector<ClaimRequest> requests(1024);
  std::vector<ClaimResult> results(1024);
  uint64_t n = 0;
  for (auto _ : state) {
    for (ClaimRequest& request : requests) request = {2023, Print(n++ * 7919 % (2 * kMembers)), 0};
    FIRSTSEEN_CHECK(engine->Check(set, requests, results).ok());
  }
  state.SetItemsProcessed(state.iterations() * 1024);
}
BENCHMARK(BM_Check)->UseRealTime();

// Imports, writes a snapshot, opens it again, opens from the log alone, drops the window.
void BM_StartUp(benchmark::State& state) {
  const uint64_t members = MembersWanted();
  for (auto _ : state) {
    Directory directory;
    auto engine = directory.Create();
    const SetId set = engine->CreateSet("kyc", Options(Durability::kFsync)).value();
    auto start = std::chrono::steady_clock::now();
    Fill(*engine, set, 0, members);
    FIRSTSEEN_CHECK(engine->ImportSync().ok());
    state.counters["import_s"] = SecondsSince(start);
    state.counters["bytes_per_member"] =
        static_cast<double>(engine->Stats(set)->windows[0].bytes) / static_cast<double>(members);
    FIRSTSEEN_CHECK(engine->Close().ok());
    engine.reset();
    start = std::chrono::steady_clock::now();
    engine = directory.Open();
    state.counters["open_log_s"] = SecondsSince(start);
    start = std::chrono::steady_clock::now();
    FIRSTSEEN_CHECK(engine->Snapshot().ok());
    state.counters["snapshot_s"] = SecondsSince(start);
    state.counters["snapshot_bytes_per_member"] =
        static_cast<double>(engine->Stats().snapshot_bytes) / static_cast<double>(members);
    FIRSTSEEN_CHECK(engine->Close().ok());
    engine.reset();
    start = std::chrono::steady_clock::now();
    engine = directory.Open();
    state.counters["open_snapshot_s"] = SecondsSince(start);
    FIRSTSEEN_CHECK(engine->Stats(set)->windows[0].members == members);
    start = std::chrono::steady_clock::now();
    FIRSTSEEN_CHECK(engine->Drop(set, 2023).ok());
    state.counters["drop_ms"] = SecondsSince(start) * 1000;
  }
}
BENCHMARK(BM_StartUp)->Iterations(1)->Unit(benchmark::kSecond)->UseRealTime();

// Many sets: memory over that of an empty engine, and the time to open them.
void BM_ManySets(benchmark::State& state) {
  const auto sets = static_cast<uint64_t>(state.range(0));
  const auto members = static_cast<uint64_t>(state.range(1));
  for (auto _ : state) {
    Directory directory;
    {
      auto engine = directory.Create();
      for (uint64_t i = 0; i < sets; ++i) {
        const SetId set =
            engine->CreateSet("bucket-" + std::to_string(i), Options(Durability::kNone)).value();
        Fill(*engine, set, i * members, (i + 1) * members);
      }
      FIRSTSEEN_CHECK(engine->ImportSync().ok());
      FIRSTSEEN_CHECK(engine->Close().ok());
    }
    auto start = std::chrono::steady_clock::now();
    { auto engine = directory.Open(); }
    state.counters["open_log_s"] = SecondsSince(start);
    {
      auto engine = directory.Open();
      FIRSTSEEN_CHECK(engine->Snapshot().ok());
    }
    const uint64_t before = ResidentBytes();
    start = std::chrono::steady_clock::now();
    auto engine = directory.Open();
    state.counters["open_snapshot_s"] = SecondsSince(start);
    state.counters["resident_bytes_per_member"] =
        static_cast<double>(ResidentBytes() - before) / static_cast<double>(sets * members);
    uint64_t files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(directory.options().directory)) {
      ++files;
    }
    state.counters["files"] = static_cast<double>(files);
  }
}
BENCHMARK(BM_ManySets)
    ->ArgNames({"sets", "members"})
    ->Args({1000, 20000})
    ->Args({60000, 50})
    ->Args({60000, 400})
    ->Iterations(1)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();

}  // namespace
}  // namespace firstseen

BENCHMARK_MAIN();
