// The embedded store from one thread on a real disk: imports in batches of 10 000 rows, claims in
// batches of 1 000 with a token each (every batch waits for its fsync).
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "store/embedded_store.h"

namespace firstseen {
namespace {

class Home {
 public:
  Home() {
    std::string pattern = std::filesystem::temp_directory_path() / "firstseen_bench_XXXXXX";
    FIRSTSEEN_CHECK(mkdtemp(pattern.data()) != nullptr);
    options_.directory = pattern;
    FIRSTSEEN_CHECK(InitEmbeddedStore(options_).ok());
    store_ = OpenEmbeddedStore(options_).value();
    SetOptions set;
    set.window = WindowKind::kYear;
    set.fields = {{"name", kTrim | kWidth | kNameDot | kZeroWidth},
                  {"id_no", kTrim | kWidth | kXCheckDigit | kId15To18 | kZeroWidth}};
    FIRSTSEEN_CHECK(store_->CreateSet("kyc", set).ok());
  }
  ~Home() {
    store_.reset();
    std::filesystem::remove_all(options_.directory);
  }
  Store& store() { return *store_; }

 private:
  EmbeddedStoreOptions options_;
  std::unique_ptr<Store> store_;
};

// Rows of invented people, none twice.
class People {
 public:
  explicit People(size_t rows) : ids_(rows), fields_(rows, {"张三丰", ""}) {}
  void Next() {
    for (size_t i = 0; i < ids_.size(); ++i) {
      ids_[i] = std::to_string(110'000'190'001'010'000 + next_++);
      fields_[i][1] = ids_[i];
    }
  }
  const std::array<std::string_view, 2>& fields(size_t i) const { return fields_[i]; }
  std::string_view token(size_t i) const { return ids_[i]; }

 private:
  uint64_t next_ = 0;
  std::vector<std::string> ids_;
  std::vector<std::array<std::string_view, 2>> fields_;
};

void Import(benchmark::State& state) {
  constexpr size_t kRows = 10'000;
  Home home;
  People people(kRows);
  std::vector<absl::Status> statuses(kRows);
  for (auto _ : state) {
    state.PauseTiming();
    people.Next();
    std::vector<ImportRow> rows;
    for (size_t i = 0; i < kRows; ++i) rows.push_back({people.fields(i), 2023, ""});
    state.ResumeTiming();
    const auto totals =
        home.store().Import("kyc", "bench", "1", rows, ImportOwners::kUnsettled, statuses);
    FIRSTSEEN_CHECK(totals.ok() && totals->added == kRows);
  }
  FIRSTSEEN_CHECK(home.store().ImportSync().ok());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

void Claim(benchmark::State& state) {
  constexpr size_t kRows = 1'000;
  Home home;
  People people(kRows);
  std::vector<MemberResult> results(kRows);
  for (auto _ : state) {
    people.Next();
    std::vector<MemberRequest> rows;
    for (size_t i = 0; i < kRows; ++i) {
      rows.push_back({people.fields(i), absl::Time(), 2023, people.token(i)});
    }
    FIRSTSEEN_CHECK(home.store().Claim("kyc", rows, results).ok());
    FIRSTSEEN_CHECK(results.back().verdict == Verdict::kFirst);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

BENCHMARK(Import)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(Claim)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace firstseen

BENCHMARK_MAIN();
