// What happens to a window, and to the log, while a snapshot is being written: at a moment that the
// test chooses, on a disk that can lose power.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine_fixture.h"
#include "engine/model.h"

namespace firstseen {
namespace {

class SnapshotRaceTest : public testing::Test {
 protected:
  SnapshotRaceTest() : options_(ModelOptions(&disk_, &clock_)) {
    options_.log_segment_bytes = 64 << 20;
    // For good, as the engine's threads use the disk at any time; it acts while armed.
    disk_.set_after_operation([this](uint64_t) {
      if (!armed_.load() || std::this_thread::get_id() != writer_) return;
      if (++done_ == operation_) what_();
    });
    EXPECT_TRUE(Engine::Create(options_).ok());
    engine_ = Engine::Open(options_).value();
  }

  void ClaimMany(SetId set, uint64_t members, bool owned) {
    std::vector<ClaimRequest> requests;
    for (uint64_t n = 0; n < members; ++n) requests.push_back({2023, Print(n), owned ? n + 1 : 0});
    std::vector<ClaimResult> results(requests.size());
    ASSERT_TRUE(engine_->Claim(set, requests, results).ok());
  }

  // Writes a snapshot and does `what` right after the operation of that number (from 1) among those
  // of the thread that writes it. 1 creates the file, 2 writes its first few MiB.
  absl::Status SnapshotWith(int operation, const std::function<void()>& what) {
    writer_ = std::this_thread::get_id();
    operation_ = operation;
    what_ = what;
    armed_ = true;
    absl::Status status = engine_->Snapshot();
    armed_ = false;
    EXPECT_GT(done_, operation + 3) << "write, sync, rename, sync of the directory come after it";
    return status;
  }

  // Bytes of the snapshot that is being written.
  uint64_t Written() {
    const std::vector<std::string> names = disk_.List(options_.directory).value();
    for (const std::string& name : names) {
      if (!name.starts_with("snapshot-") || !name.ends_with(".tmp")) continue;
      return disk_.Content(options_.directory + "/" + name).size();
    }
    return 0;
  }

  // What is there after the power went right now and all that was unsynced is lost.
  std::unique_ptr<Engine> OpenAfterPowerLoss() {
    after_ = disk_.AfterPowerLoss(0);
    EngineOptions options = options_;
    options.files = after_.get();
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return engine.ok() ? *std::move(engine) : nullptr;
  }

  // Set before `armed_` is, and then used by the thread `writer_` alone.
  std::thread::id writer_;
  int operation_ = 0;
  int done_ = 0;
  std::function<void()> what_;
  std::atomic<bool> armed_ = false;

  ManualClock clock_;
  FaultyFileSystem disk_;
  std::unique_ptr<FaultyFileSystem> after_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

// The window's tables are others then, with other shards and stripes than those that were begun.
TEST_F(SnapshotRaceTest, ItLeavesAWindowThatWasDroppedAndFilledAgainAmongItsShards) {
  const SetId set = engine_->CreateSet("kyc", YearSet()).value();
  ClaimMany(set, 600'000, false);
  uint64_t before = 0;
  const absl::Status status = SnapshotWith(2, [&] {
    before = Written();
    ASSERT_TRUE(engine_->Drop(set, 2023).ok());
    ASSERT_TRUE(engine_->Reopen(set, 2023).ok());
    ClaimMany(set, 3000, false);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(before, 3u << 20);
  // 3000 members would take 27 KB.
  EXPECT_LT(engine_->Stats().snapshot_bytes, before + 1000) << "it went on in the new window";
  const std::unique_ptr<Engine> after = OpenAfterPowerLoss();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->Stats(set)->windows[0].members, 3000u);
  EXPECT_EQ(CheckVerdict(*after, set, 2023, 2999), Verdict::kDuplicate);
  EXPECT_EQ(CheckVerdict(*after, set, 2023, 3000), Verdict::kFirst);
}

TEST_F(SnapshotRaceTest, ItLeavesAWindowThatWasDroppedAndFilledAgainAmongItsOwners) {
  const SetId set = engine_->CreateSet("kyc", YearSet()).value();
  ClaimMany(set, 150'000, true);
  const absl::Status status = SnapshotWith(2, [&] {
    ASSERT_TRUE(engine_->Drop(set, 2023).ok());
    ASSERT_TRUE(engine_->Reopen(set, 2023).ok());
    ClaimMany(set, 10, true);
  });
  ASSERT_TRUE(status.ok()) << status;
  const std::unique_ptr<Engine> after = OpenAfterPowerLoss();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->Stats(set)->windows[0].members, 10u);
  EXPECT_EQ(after->Stats(set)->windows[0].owners, 10u);
  EXPECT_EQ(ClaimVerdict(*after, set, 2023, 3, 4), Verdict::kRepeat);
  EXPECT_EQ(ClaimVerdict(*after, set, 2023, 30, 31), Verdict::kFirst);
}

// Nobody waited for these records: only the snapshot, which holds them, makes the log do so.
TEST_F(SnapshotRaceTest, ItKnowsNothingThatTheLogMayStillLose) {
  const SetId set = engine_->CreateSet("logins", YearSet(Durability::kNone)).value();
  const absl::Status status = SnapshotWith(1, [&] { ClaimMany(set, 100, true); });
  ASSERT_TRUE(status.ok()) << status;
  const std::unique_ptr<Engine> after = OpenAfterPowerLoss();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->Stats(set)->windows[0].members, 100u);
  EXPECT_EQ(ClaimVerdict(*after, set, 2023, 99, 100), Verdict::kRepeat);
}

}  // namespace
}  // namespace firstseen
