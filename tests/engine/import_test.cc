// Imports: counts, atomicity, resuming.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/engine_fixture.h"
#include "engine/model.h"
#include "support/random.h"

namespace firstseen {
namespace {

class ImportTest : public EngineSetTest {};

TEST_F(ImportTest, CountsWhatIsNewKnownTwiceInTheBatchAndClosed) {
  ASSERT_EQ(ClaimVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  ASSERT_TRUE(engine_->Drop(set_, 2021).ok());
  ImportBatch batch{.source = "a", .position = "p1", .rows = {}};
  batch.rows = {{2023, Print(1), 0}, {2023, Print(2), 5}, {2023, Print(2), 6}, {2022, Print(2), 0},
                {2021, Print(1), 0}, {2021, Print(1), 0}, {2023, Print(3), 7}};
  const ImportResult result = engine_->Import(set_, batch).value();
  EXPECT_EQ(result.added, 3u);
  EXPECT_EQ(result.duplicates, 2u);
  EXPECT_EQ(result.closed, 2u);
  ASSERT_TRUE(engine_->ImportSync().ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 2, 5), Verdict::kRepeat);  // the first row's
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 2, 6), Verdict::kDuplicate);
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 3, 7), Verdict::kRepeat);
    EXPECT_EQ(CheckVerdict(*engine_, set_, 2022, 2), Verdict::kDuplicate);
    EXPECT_EQ(engine_->FindImport(set_, "a")->position, "p1");
    EXPECT_EQ(engine_->FindImport(set_, "a")->totals.added, 3u);
    EXPECT_EQ(engine_->FindImport(set_, "a")->totals.duplicates, 2u);
    EXPECT_EQ(engine_->FindImport(set_, "a")->totals.closed, 2u);
    EXPECT_FALSE(engine_->FindImport(set_, "b").has_value());
    Reopen();
  }
}

TEST_F(ImportTest, OwnersSettledByTheImportAreKeptForTheOpenTimeAfterIt) {
  ImportBatch batch{.source = "a", .position = "p1", .rows = {}, .settled = true};
  batch.rows = {{2023, Print(1), 5}, {2023, Print(2), 6}, {2024, Print(1), 5}, {2024, Print(9), 0}};
  ASSERT_EQ(engine_->Import(set_, batch)->added, 4u);
  batch = {.source = "b", .position = "p1", .rows = {{2023, Print(3), 7}}};
  ASSERT_EQ(engine_->Import(set_, batch)->added, 1u);
  EXPECT_EQ(engine_->Settle(set_, std::vector<uint64_t>{5, 6}).value(), 0u) << "settled already";
  const auto expect = [&](Verdict settled) {
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 1, 5), settled);
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 2, 6), settled);
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2024, 1, 5), settled);
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 2, 5), Verdict::kDuplicate);
    EXPECT_EQ(ClaimVerdict(*engine_, set_, 2023, 3, 7), Verdict::kRepeat);
  };
  clock_.Advance(absl::Hours(47));
  expect(Verdict::kRepeat);
  Reopen();  // from the log
  expect(Verdict::kRepeat);
  ASSERT_TRUE(engine_->Snapshot().ok());
  Close();
  clock_.AdvanceWhileDown(absl::Hours(1000));  // which is no open time
  Open();                                      // from the snapshot
  expect(Verdict::kRepeat);
  clock_.Advance(absl::Hours(1));
  expect(Verdict::kDuplicate);
}

TEST_F(ImportTest, ABatchWithoutRowsMovesThePosition) {
  ASSERT_TRUE(engine_->Import(set_, {.source = "a", .position = "end", .rows = {}}).ok());
  Reopen();
  EXPECT_EQ(engine_->FindImport(set_, "a")->position, "end");
}

TEST_F(ImportTest, ForgettingTakesTheSourcesWithThePrefixOfThisSet) {
  const SetId other = CreateSet("other", YearSet());
  for (const char* source : {"job1/a", "job1/b", "job2/a", "job"}) {
    ASSERT_TRUE(engine_->Import(set_, {.source = source, .position = "1", .rows = {}}).ok());
    ASSERT_TRUE(engine_->Import(other, {.source = source, .position = "1", .rows = {}}).ok());
  }
  ASSERT_TRUE(engine_->ForgetImports(set_, "job1/").ok());
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(engine_->FindImport(set_, "job1/a").has_value());
    EXPECT_FALSE(engine_->FindImport(set_, "job1/b").has_value());
    EXPECT_TRUE(engine_->FindImport(set_, "job2/a").has_value());
    EXPECT_TRUE(engine_->FindImport(set_, "job").has_value());
    EXPECT_TRUE(engine_->FindImport(other, "job1/a").has_value());
    Reopen();
  }
}

TEST_F(ImportTest, ABatchThatDoesNotFitLeavesNothing) {
  Close();
  options_.memory_bytes_max = 400'000;
  Open();
  uint64_t members = 0;
  absl::Status status;
  for (uint64_t i = 0; i < 100 && status.ok(); ++i) {
    ImportBatch batch{.source = "a", .position = std::to_string(i), .rows = {}};
    for (uint64_t n = i * 2000; n < (i + 1) * 2000; ++n) {
      batch.rows.push_back({static_cast<WindowId>(2022 + n % 2), Print(n), n + 1});
    }
    const auto result = engine_->Import(set_, batch);
    status = result.status();
    if (result.ok()) members += result->added;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("memory_bytes_max"));
  EXPECT_GT(members, 10'000u);
  const SetStats stats = engine_->Stats(set_).value();
  EXPECT_EQ(stats.windows[0].members + stats.windows[1].members, members);
  EXPECT_EQ(stats.windows[0].owners + stats.windows[1].owners, members);
  EXPECT_EQ(engine_->FindImport(set_, "a")->position, std::to_string(members / 2000 - 1));
}

TEST_F(ImportTest, ABatchBeyondTheLimitIsRefused) {
  ImportBatch batch{.source = "a", .position = "1", .rows = {}};
  batch.rows.resize((1 << 20) + 1);
  EXPECT_EQ(engine_->Import(set_, batch).status().code(), absl::StatusCode::kInvalidArgument);
  batch.rows = {{202312, Print(1), 0}};
  EXPECT_EQ(engine_->Import(set_, batch).status().code(), absl::StatusCode::kInvalidArgument);
}

// Several threads import overlapping batches over several windows while others claim: each member
// is counted as added exactly once.
TEST_F(ImportTest, BatchesAndClaimsAtTheSameTimeAddEachMemberOnce) {
  constexpr uint64_t kMembers = 6000;
  std::atomic<uint64_t> added = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t at = 0; at < kMembers; at += 500) {
        ImportBatch batch{.source = "s" + std::to_string(t), .position = "", .rows = {}};
        for (uint64_t n = at; n < at + 500; ++n) {
          const uint64_t member = t == 1 ? kMembers - 1 - n : n;
          batch.rows.push_back({static_cast<WindowId>(2020 + member % 4), Print(member), t + 1});
        }
        const auto result = engine_->Import(set_, batch);
        ASSERT_TRUE(result.ok());
        added += result->added;
      }
    });
  }
  threads.emplace_back([&] {
    for (uint64_t n = 0; n < kMembers; n += 7) {
      const ClaimRequest request{static_cast<WindowId>(2020 + n % 4), Print(n), 9};
      ClaimResult result;
      ASSERT_TRUE(engine_->Claim(set_, {&request, 1}, {&result, 1}).ok());
      added += result.verdict == Verdict::kFirst;
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added.load(), kMembers);
  Reopen();
  uint64_t members = 0;
  const SetStats stats = engine_->Stats(set_).value();
  for (const WindowStats& window : stats.windows) members += window.members;
  EXPECT_EQ(members, kMembers);
}

// The power goes again and again; whoever resumes from the recorded position ends up with the
// counts of an import that was never interrupted.
TEST(ImportResumeTest, AnInterruptedImportReportsTheCountsOfAnUninterruptedOne) {
  Random random;
  std::vector<std::vector<Driver::Row>> batches(40);
  for (auto& batch : batches) {
    for (int i = 0; i < 30; ++i) {
      batch.push_back(
          {static_cast<WindowId>(2022 + random.Below(2)), random.Below(2000), random.Below(3)});
    }
  }
  const auto run = [&](bool interrupted) {
    auto disk = std::make_unique<FaultyFileSystem>();
    ManualClock clock;
    EXPECT_TRUE(Engine::Create(ModelOptions(disk.get(), &clock)).ok());
    auto engine = Engine::Open(ModelOptions(disk.get(), &clock)).value();
    EXPECT_TRUE(engine->CreateSet("kyc", YearSet()).ok());
    for (size_t next = 0; next < batches.size();) {
      ImportBatch batch{.source = "a", .position = std::to_string(next), .rows = {}};
      for (const Driver::Row& row : batches[next]) {
        batch.rows.push_back({row.window, Print(row.n), row.owner});
      }
      EXPECT_TRUE(engine->Import(0, batch).ok());
      ++next;
      if (!interrupted) continue;
      if (random.OneIn(4)) {
        EXPECT_TRUE(engine->ImportSync().ok());
      }
      if (random.OneIn(5)) {
        EXPECT_TRUE(engine->Snapshot().ok());
      }
      if (!random.OneIn(3)) continue;
      auto after =
          random.OneIn(2) ? disk->AfterPowerLoss(random.Below(100)) : disk->AfterProcessCrash();
      engine.reset();
      disk = std::move(after);
      engine = Engine::Open(ModelOptions(disk.get(), &clock)).value();
      const auto progress = engine->FindImport(0, "a");
      next = progress.has_value() ? std::stoul(progress->position) + 1 : 0;
    }
    EXPECT_TRUE(engine->ImportSync().ok());
    const auto progress = engine->FindImport(0, "a").value();
    return std::pair(progress.totals.added, progress.totals.duplicates);
  };
  const auto whole = run(false);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run(true), whole);
  }
}

}  // namespace
}  // namespace firstseen
