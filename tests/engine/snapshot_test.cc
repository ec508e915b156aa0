// Snapshots: what they hold, while claims go on, and what they let go.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"

namespace firstseen {
namespace {

class SnapshotTest : public EngineSetTest {
 protected:
  void ClaimMany(WindowId window, uint64_t begin, uint64_t end, uint64_t owner_offset = 0) {
    std::vector<ClaimRequest> requests;
    for (uint64_t n = begin; n < end; ++n) {
      requests.push_back({window, Print(n), owner_offset == 0 ? 0 : owner_offset + n});
    }
    std::vector<ClaimResult> results(requests.size());
    ASSERT_TRUE(engine_->Claim(set_, requests, results).ok());
    for (const ClaimResult& result : results) {
      ASSERT_EQ(result.verdict, Verdict::kFirst);
    }
  }
  int CountFiles(std::string_view part) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      count += entry.path().filename().string().find(part) != std::string::npos;
    }
    return count;
  }
};

TEST_F(SnapshotTest, HoldsEverythingWithoutTheLog) {
  ClaimMany(2023, 0, 30000);
  ClaimMany(2024, 0, 500, 1000);
  ASSERT_TRUE(engine_->Drop(set_, 2022).ok());
  SetOptions wide = YearSet();
  wide.bits = 128;
  wide.window = WindowKind::kDay;
  wide.time_zone = "UTC";
  wide.member_encoding = MemberEncoding::kConcat;
  wide.durability = Durability::kInterval;
  wide.expected = 1000;
  const SetId other = CreateSet("other", wide);
  EXPECT_EQ(ClaimVerdict(*engine_, other, 20240229, 1, 5), Verdict::kFirst);
  ASSERT_EQ(engine_->Settle(set_, std::vector<uint64_t>{1003}).value(), 1u);
  ImportBatch batch{.source = "history/a", .position = "17", .rows = {{2023, Print(99999), 0}}};
  ASSERT_TRUE(engine_->Import(set_, batch).ok());

  ASSERT_TRUE(engine_->Snapshot().ok());
  EXPECT_EQ(CountFiles("snapshot-"), 1);
  EXPECT_EQ(CountFiles(".log"), 1);
  EXPECT_GT(engine_->Stats().snapshot_bytes, 30000u * 9);
  EXPECT_TRUE(engine_->Stats().snapshot_time.has_value());
  Reopen();
  EXPECT_EQ(engine_->Options(set_).value(), YearSet());
  EXPECT_EQ(engine_->Options(other).value(), wide);
  EXPECT_EQ(engine_->FindSet("other").value(), other);
  const SetStats stats = engine_->Stats(set_).value();
  ASSERT_EQ(stats.windows.size(), 3u);
  EXPECT_TRUE(stats.windows[0].closed);
  EXPECT_EQ(stats.windows[1].members, 30001u);
  EXPECT_EQ(stats.windows[2].members, 500u);
  EXPECT_EQ(stats.windows[2].owners, 500u);
  for (uint64_t n = 0; n < 30000; ++n) {
    ASSERT_EQ(CheckVerdict(*engine_, set_, 2023, n), Verdict::kDuplicate);
  }
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 30000), Verdict::kFirst);
  EXPECT_EQ(Claim(2024, 3, 1003), Verdict::kRepeat);
  EXPECT_EQ(Claim(2024, 3, 1004), Verdict::kDuplicate);
  EXPECT_EQ(engine_->Settle(set_, std::vector<uint64_t>{1003, 1004}).value(), 1u);
  EXPECT_EQ(ClaimVerdict(*engine_, other, 20240229, 1, 5), Verdict::kRepeat);
  EXPECT_EQ(engine_->FindImport(set_, "history/a")->position, "17");
  EXPECT_EQ(engine_->FindImport(set_, "history/a")->totals.added, 1u);
}

TEST_F(SnapshotTest, TheLogGoesOnOverIt) {
  ClaimMany(2023, 0, 1000);
  ASSERT_TRUE(engine_->Snapshot().ok());
  ClaimMany(2023, 1000, 2000, 5000);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 7), Verdict::kDuplicate);
  Reopen();
  EXPECT_EQ(engine_->Stats(set_)->windows[0].members, 1999u);
  EXPECT_EQ(Claim(2023, 1500, 6500), Verdict::kRepeat);
  EXPECT_EQ(Claim(2023, 7), Verdict::kFirst);
}

TEST_F(SnapshotTest, ANewerOneReplacesTheOlder) {
  for (uint64_t i = 0; i < 4; ++i) {
    ClaimMany(2023, 1000 * i, 1000 * (i + 1));
    ASSERT_TRUE(engine_->Snapshot().ok());
    EXPECT_EQ(CountFiles("snapshot-"), 1);
    EXPECT_EQ(CountFiles(".log"), 1);
  }
  ASSERT_TRUE(engine_->Snapshot().ok());  // nothing new
  Reopen();
  EXPECT_EQ(engine_->Stats(set_)->windows[0].members, 4000u);
}

TEST_F(SnapshotTest, StaysNearTheInformationBound) {
  ClaimMany(2023, 0, 200000);
  ASSERT_TRUE(engine_->Snapshot().ok());
  const double bound_bits = 96 - std::log2(200000) + 1.44;
  const double bits = static_cast<double>(engine_->Stats().snapshot_bytes) * 8 / 200000;
  EXPECT_LT(bits, 1.03 * bound_bits);
}

TEST_F(SnapshotTest, ClaimsGoOnMeanwhile) {
  std::atomic<bool> stop = false;
  std::vector<uint64_t> claimed(3, 0);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < claimed.size(); ++t) {
    threads.emplace_back([&, t] {
      while (!stop.load()) {
        const uint64_t first = t * 1'000'000 + claimed[t];
        std::vector<ClaimRequest> requests;
        for (uint64_t n = first; n < first + 50; ++n) requests.push_back({2023, Print(n), n + 1});
        std::vector<ClaimResult> results(requests.size());
        ASSERT_TRUE(engine_->Claim(set_, requests, results).ok());
        for (const ClaimResult& result : results) {
          ASSERT_EQ(result.verdict, Verdict::kFirst);
        }
        claimed[t] += 50;
        const ClaimRequest request{2023, Print(first), first + 1};
        ClaimResult removed;
        ASSERT_TRUE(engine_->Remove(set_, {&request, 1}, {&removed, 1}).ok());
        ASSERT_EQ(removed.verdict, Verdict::kDuplicate);
        ASSERT_TRUE(engine_->Settle(set_, std::vector<uint64_t>{first + 2}).ok());
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(engine_->Snapshot().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  Reopen();
  for (uint64_t t = 0; t < claimed.size(); ++t) {
    for (uint64_t i = 0; i < claimed[t]; ++i) {
      const uint64_t n = t * 1'000'000 + i;
      const Verdict expected = i % 50 == 0 ? Verdict::kFirst : Verdict::kRepeat;
      ASSERT_EQ(Claim(2023, n, n + 1), expected);
    }
  }
}

TEST_F(SnapshotTest, DropAndReopenMeanwhileLeaveNoTrace) {
  std::atomic<bool> stop = false;
  std::thread snapshots([&] {
    while (!stop.load()) ASSERT_TRUE(engine_->Snapshot().ok());
  });
  for (uint64_t round = 0; round < 20; ++round) {
    ClaimMany(2023, 0, 3000, 1 + round);
    ASSERT_TRUE(engine_->Drop(set_, 2023).ok());
    ASSERT_EQ(Claim(2023, 1), Verdict::kClosed);
    ASSERT_TRUE(engine_->Reopen(set_, 2023).ok());
  }
  ClaimMany(2023, 100, 200, 77);
  stop = true;
  snapshots.join();
  Reopen();
  EXPECT_EQ(engine_->Stats(set_)->windows[0].members, 100u);
  EXPECT_EQ(engine_->Stats(set_)->windows[0].owners, 100u);
  EXPECT_EQ(Claim(2023, 1, 2), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 150, 227), Verdict::kRepeat);
}

TEST_F(SnapshotTest, TheLogsSizeStartsOne) {
  Close();
  options_.snapshot_log_bytes = 64 << 10;
  Open();
  ClaimMany(2023, 0, 20000);
  for (int i = 0; i < 600 && CountFiles("snapshot-") == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(engine_->Stats().snapshot_status.ok()) << engine_->Stats().snapshot_status;
  Reopen();
  EXPECT_EQ(CountFiles("snapshot-"), 1);
  EXPECT_EQ(engine_->Stats(set_)->windows[0].members, 20000u);
}

}  // namespace
}  // namespace firstseen
