// The data directory, limits, statistics, many sets.
#include "engine/engine.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/engine_fixture.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

class DirectoryTest : public EngineTest {};

TEST_F(DirectoryTest, IsMadeOnce) {
  Create();
  Close();
  EXPECT_EQ(Engine::Create(options_).code(), absl::StatusCode::kAlreadyExists);
  Open();
}

TEST_F(DirectoryTest, ThatIsNotThereIsNotFound) {
  EXPECT_EQ(Engine::Open(options_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Engine::Repair(options_, false).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DirectoryTest, IsRefusedWithAnotherKey) {
  Create();
  Close();
  options_.key_check_value = "fedcba9876543210";
  const absl::Status status = Engine::Open(options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("another key"));
  EXPECT_EQ(Engine::Repair(options_, true).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DirectoryTest, IsRefusedToASecondProcessWithTheHoldersName) {
  Create();
  EngineOptions other = options_;
  other.holder = "somebody else";
  const absl::Status status = Engine::Open(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("engine_test"));
  EXPECT_EQ(Engine::Repair(other, false).status().code(), absl::StatusCode::kFailedPrecondition);
  Close();
  EXPECT_TRUE(Engine::Open(other).ok());
}

TEST_F(DirectoryTest, WithDataButWithoutMetaIsNotMadeAnew) {
  Create();
  CreateSet("kyc", YearSet());
  Close();
  std::filesystem::remove(options_.directory + "/meta");
  EXPECT_EQ(Engine::Open(options_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Engine::Create(options_).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DirectoryTest, WithDamagedMetaIsRefused) {
  Create();
  Close();
  const std::string path = options_.directory + "/meta";
  const std::string meta = ReadFile(FileSystem::Posix(), path).value();
  for (const std::string& damaged : {std::string(), meta.substr(0, 40), meta + "x", "x" + meta}) {
    ASSERT_TRUE(WriteFileAtomically(FileSystem::Posix(), path, damaged).ok());
    const absl::Status status = Engine::Open(options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  }
}

TEST_F(DirectoryTest, HoldsNothingButPseudonyms) {
  Create();
  const SetId set = CreateSet("kyc", YearSet());
  ClaimVerdict(*engine_, set, 2023, 1, 7);
  ASSERT_TRUE(engine_->Snapshot().ok());
  Close();
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
    const auto permissions = entry.status().permissions();
    EXPECT_EQ(permissions & std::filesystem::perms::others_all, std::filesystem::perms::none);
    EXPECT_EQ(permissions & std::filesystem::perms::group_all, std::filesystem::perms::none);
  }
}

class SetTest : public EngineTest {
 protected:
  void SetUp() override { Create(); }
};

TEST_F(SetTest, OptionsSurviveAReopening) {
  SetOptions options = YearSet(Durability::kNone);
  options.bits = 112;
  options.time_zone = "Europe/Berlin";
  options.window = WindowKind::kMonth;
  CreateSet("b", YearSet());
  const SetId set = CreateSet("a", options);
  Reopen();
  EXPECT_EQ(engine_->FindSet("a").value(), set);
  EXPECT_EQ(engine_->Options(set).value(), options);
  EXPECT_EQ(engine_->ListSets(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(engine_->CreateSet("a", options).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(SetTest, ImpossibleOptionsAreRefused) {
  const auto refuse = [&](std::string_view name, auto change) {
    SetOptions options = YearSet();
    change(options);
    EXPECT_EQ(engine_->CreateSet(name, options).status().code(),
              absl::StatusCode::kInvalidArgument);
  };
  refuse("", [](SetOptions&) {});
  refuse(std::string(256, 'x'), [](SetOptions&) {});
  refuse("a", [](SetOptions& options) { options.bits = 64; });
  refuse("a", [](SetOptions& options) { options.bits = 97; });
  refuse("a", [](SetOptions& options) { options.fields.clear(); });
  refuse("a", [](SetOptions& options) { options.fields[0].name = ""; });
  refuse("a", [](SetOptions& options) { options.time_zone = "Mars/Olympus"; });
}

TEST_F(SetTest, LimitsAreNamedWhenTheyAreReached) {
  Close();
  options_.sets_max = 2;
  options_.windows_max = 2;
  options_.owner_bytes_max = 12'000;
  options_.memory_bytes_max = 200'000;
  Open();
  const SetId set = CreateSet("a", YearSet());
  CreateSet("b", YearSet());
  const absl::Status sets = engine_->CreateSet("c", YearSet()).status();
  EXPECT_EQ(sets.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(sets)), HasSubstr("sets_max"));

  EXPECT_EQ(ClaimVerdict(*engine_, set, 2022, 1), Verdict::kFirst);
  EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, 1), Verdict::kFirst);
  const ClaimResult windows = ClaimOne(*engine_, set, 2024, 1, 0);
  EXPECT_EQ(windows.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(windows.status)), HasSubstr("windows_max"));
  ASSERT_TRUE(engine_->Drop(set, 2022).ok());  // a tombstone is no open window
  EXPECT_EQ(ClaimVerdict(*engine_, set, 2024, 1), Verdict::kFirst);
  EXPECT_EQ(engine_->Reopen(set, 2022).code(), absl::StatusCode::kResourceExhausted);

  uint64_t n = 100;
  ClaimResult owners;
  for (; owners.status.ok() && n < 1000; ++n) owners = ClaimOne(*engine_, set, 2023, n, n);
  EXPECT_EQ(owners.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(owners.status)), HasSubstr("owner_bytes_max"));
  EXPECT_LE(engine_->Stats().owner_bytes, options_.owner_bytes_max);
  // Nothing was recorded, no owner was forgotten, claims without a token go on.
  EXPECT_EQ(CheckVerdict(*engine_, set, 2023, n - 1), Verdict::kFirst);
  EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, 100, 100), Verdict::kRepeat);
  EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, n - 1), Verdict::kFirst);

  ClaimResult memory;
  for (n = 10'000; memory.status.ok() && n < 100'000; ++n) {
    memory = ClaimOne(*engine_, set, 2023, n, 0);
  }
  EXPECT_EQ(memory.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(memory.status)), HasSubstr("memory_bytes_max"));
  EXPECT_EQ(CheckVerdict(*engine_, set, 2023, n - 1), Verdict::kFirst);
  EXPECT_EQ(CheckVerdict(*engine_, set, 2023, n - 2), Verdict::kDuplicate);
}

TEST_F(SetTest, ADroppedWindowGivesItsMemoryBack) {
  const SetId set = CreateSet("a", YearSet(Durability::kInterval));
  ImportBatch batch{.source = "a", .position = "1", .rows = {}};
  for (uint64_t n = 0; n < 200'000; ++n) batch.rows.push_back({2023, Print(n), 0});
  ASSERT_TRUE(engine_->Import(set, batch).ok());
  const uint64_t before = engine_->Stats().memory_bytes;
  EXPECT_GT(before, 2'000'000u);
  ASSERT_TRUE(engine_->Drop(set, 2023).ok());
  for (int i = 0; i < 600 && engine_->Stats().memory_bytes > before / 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(engine_->Stats().memory_bytes, before / 10);
}

// A drop must not wait for the claims of others to pause.
TEST_F(SetTest, ADropGetsItsTurnAmongClaims) {
  const SetId set = CreateSet("a", YearSet(Durability::kNone));
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<ClaimRequest> requests;
      for (uint64_t i = 0; i < 64; ++i) requests.push_back({2023, Print(t * 64 + i), 0});
      std::vector<ClaimResult> results(requests.size());
      while (!stop.load()) ASSERT_TRUE(engine_->Check(set, requests, results).ok());
    });
  }
  for (WindowId window = 2000; window < 2010; ++window) {
    EXPECT_TRUE(engine_->Drop(set, window).ok());
    EXPECT_TRUE(engine_->Reopen(set, window).ok());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SetTest, StatisticsTellTheStateAsItIs) {
  const SetId set = CreateSet("a", YearSet());
  for (uint64_t n = 0; n < 100; ++n) ClaimVerdict(*engine_, set, 2023, n, n < 10 ? n + 1 : 0);
  ASSERT_TRUE(engine_->Drop(set, 2022).ok());
  const SetStats stats = engine_->Stats(set).value();
  EXPECT_EQ(stats.name, "a");
  ASSERT_EQ(stats.windows.size(), 2u);
  EXPECT_TRUE(stats.windows[0].closed);
  EXPECT_EQ(stats.windows[0].members, 0u);
  EXPECT_EQ(stats.windows[1].members, 100u);
  EXPECT_EQ(stats.windows[1].owners, 10u);
  EXPECT_GT(stats.windows[1].bytes, 1000u);
  EXPECT_GT(stats.windows[1].owner_bytes, 500u);
  EXPECT_GT(stats.windows[1].load_factor, 0.0);
  EXPECT_LE(stats.windows[1].load_factor, 1.0);
  const EngineStats engine = engine_->Stats();
  EXPECT_EQ(engine.log_sequence, 102u);
  EXPECT_GT(engine.log_bytes, 3000u);
  EXPECT_FALSE(engine.snapshot_time.has_value());
  ASSERT_TRUE(engine_->Snapshot().ok());
  EXPECT_EQ(engine_->Stats().snapshot_time, clock_.Now());
}

TEST(FalseDuplicateProbabilityTest, IsThatOfTheBirthdayBound) {
  EXPECT_NEAR(FalseDuplicateProbability(2'000'000'000, 96), 2.5e-11, 0.1e-11);
  EXPECT_NEAR(FalseDuplicateProbability(1'000'000'000, 80), 4.1e-7, 0.1e-7);
  EXPECT_EQ(FalseDuplicateProbability(0, 96), 0);
  EXPECT_EQ(FalseDuplicateProbability(1ull << 60, 80), 1);
}

// Thousands of sets in a handful of files.
void ManySets(EngineOptions options, uint64_t sets, uint64_t members, double bytes_per_set_max) {
  options.log_segment_bytes = 16 << 20;
  ASSERT_TRUE(Engine::Create(options).ok());
  auto engine = Engine::Open(options).value();
  for (uint64_t i = 0; i < sets; ++i) {
    const auto set =
        engine->CreateSet("bucket-" + std::to_string(i), YearSet(Durability::kInterval));
    ASSERT_TRUE(set.ok()) << set.status();
    ImportBatch batch{.source = "a", .position = "1", .rows = {}};
    for (uint64_t n = 0; n < members; ++n) batch.rows.push_back({2023, Print(i * members + n), 0});
    ASSERT_EQ(engine->Import(*set, batch)->added, members);
  }
  ASSERT_TRUE(engine->ImportSync().ok());
  for (const bool snapshot : {false, true}) {
    if (snapshot) {
      ASSERT_TRUE(engine->Snapshot().ok());
    }
    ASSERT_TRUE(engine->Close().ok());
    engine.reset();
    int files = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(options.directory)) {
      ++files;
    }
    EXPECT_LT(files, 60);
    engine = Engine::Open(options).value();
    ASSERT_EQ(engine->ListSets().size(), sets);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < sets; i += 1 + sets / 100) {
      const SetId set = engine->FindSet("bucket-" + std::to_string(i)).value();
      const SetStats stats = engine->Stats(set).value();
      ASSERT_EQ(stats.windows[0].members, members);
      bytes = std::max(bytes, stats.windows[0].bytes);
      ASSERT_EQ(CheckVerdict(*engine, set, 2023, i * members), Verdict::kDuplicate);
      ASSERT_EQ(CheckVerdict(*engine, set, 2023, (i + 1) * members), Verdict::kFirst);
    }
    EXPECT_LT(static_cast<double>(bytes), bytes_per_set_max);
  }
}

class ManySetsTest : public EngineTest {};
TEST_F(ManySetsTest, MediumOnes) { ManySets(options_, 50, 5000, 5000 * 16); }
TEST_F(ManySetsTest, SmallOnes) { ManySets(options_, 3000, 20, 1500); }

class ManySetsTestLong : public EngineTest {};
TEST_F(ManySetsTestLong, AThousandOf20000) { ManySets(options_, 1000, 20'000, 20'000 * 16); }
TEST_F(ManySetsTestLong, SixtyThousandSmallOnes) { ManySets(options_, 60'000, 50, 2500); }

}  // namespace
}  // namespace firstseen
