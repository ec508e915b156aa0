// Random histories against the model, with snapshots and crashes at every step.
#include "engine/model.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/engine_fixture.h"
#include "support/random.h"

namespace firstseen {
namespace {

// An engine on a disk in memory that can crash and go on.
class Machine {
 public:
  explicit Machine(Random* random) : random_(random), disk_(new FaultyFileSystem()) {
    const absl::Status status = Engine::Create(ModelOptions(disk_.get(), &clock_));
    EXPECT_TRUE(status.ok()) << status;
    OpenEngine();
    driver_.Attach(engine_.get(), Model());
    EXPECT_TRUE(driver_.CreateSet("kyc", YearSet()).ok());
    EXPECT_TRUE(driver_.CreateSet("other", YearSet()).ok());
  }

  Engine& engine() { return *engine_; }
  Driver& driver() { return driver_; }

  // Power loss or kill -9; then everything that was acknowledged must be there, and work goes on.
  absl::Status Crash() {
    const std::vector<Model> candidates = driver_.candidates();
    std::unique_ptr<FaultyFileSystem> after = random_->OneIn(4)
                                                  ? disk_->AfterProcessCrash()
                                                  : disk_->AfterPowerLoss(random_->Below(1000));
    engine_.reset();
    disk_ = std::move(after);
    return GoOn(candidates);
  }

  absl::Status CloseAndOpen() {
    const std::vector<Model> candidates = {driver_.candidates().back()};
    RETURN_IF_ERROR(engine_->Close());
    engine_.reset();
    return GoOn(candidates);
  }

 private:
  void OpenEngine() {
    auto engine = Engine::Open(ModelOptions(disk_.get(), &clock_));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  absl::Status GoOn(const std::vector<Model>& candidates) {
    RETURN_IF_ERROR(CheckRecovery(*disk_, candidates));
    ASSIGN_OR_RETURN(const Model found, ReadState(*disk_));
    OpenEngine();
    driver_.Attach(engine_.get(), found);
    return absl::OkStatus();
  }

  Random* random_;
  ManualClock clock_;
  std::unique_ptr<FaultyFileSystem> disk_;
  std::unique_ptr<Engine> engine_;
  Driver driver_{nullptr};
};

void RunHistory(Random* random, int steps) {
  Machine machine(random);
  for (int step = 0; step < steps; ++step) {
    absl::Status status = machine.driver().Random(random);
    ASSERT_TRUE(status.ok()) << "step " << step << ": " << status;
    if (random->OneIn(3)) {
      status = machine.engine().Snapshot();
      ASSERT_TRUE(status.ok()) << "step " << step << ": " << status;
    }
    status = random->OneIn(10)  ? machine.CloseAndOpen()
             : random->OneIn(2) ? machine.Crash()
                                : absl::OkStatus();
    ASSERT_TRUE(status.ok()) << "step " << step << ": " << status;
  }
}

// One thread writes snapshots all the time, one works, and the power goes after every operation of
// the disk: every way in which a snapshot and the work can interleave is met sooner or later.
void RunBesideSnapshots(Random* random, int steps) {
  ManualClock clock;
  FaultyFileSystem disk;
  ASSERT_TRUE(Engine::Create(ModelOptions(&disk, &clock)).ok());
  auto engine = Engine::Open(ModelOptions(&disk, &clock)).value();
  Driver driver(engine.get());
  ASSERT_TRUE(driver.CreateSet("kyc", YearSet()).ok());
  ASSERT_TRUE(driver.CreateSet("other", YearSet()).ok());
  // Makes a snapshot of this window take a while.
  const Filler filler{.set = 0, .window = 2023, .members = 12000};
  ImportBatch batch{.source = "filler", .position = "", .rows = {}};
  for (uint64_t i = 0; i < filler.members; ++i) {
    batch.rows.push_back({filler.window, Print(kFillerBegin + i), 0});
  }
  ASSERT_TRUE(engine->Import(0, batch).ok());
  ASSERT_TRUE(engine->ImportSync().ok());

  Mutex mutex;
  absl::Status violation;
  Random seeds(random->Next());
  disk.set_after_operation([&](uint64_t number) {
    MutexLock lock(mutex);
    if (!violation.ok() || !seeds.OneIn(8)) return;
    const uint64_t seed = seeds.Below(1000);
    std::unique_ptr<FaultyFileSystem> after;
    const std::vector<Model> candidates = driver.Freeze([&] { after = disk.AfterPowerLoss(seed); });
    violation = Annotate(CheckRecovery(*after, candidates, &filler),
                         fmt::format("power loss after operation {}, seed {}", number, seed));
  });
  std::atomic<bool> stop = false;
  absl::Status snapshot_status;
  std::thread snapshots([&] {
    while (!stop.load() && snapshot_status.ok()) snapshot_status = engine->Snapshot();
  });
  absl::Status status;
  for (int step = 0; step < steps && status.ok(); ++step) status = driver.Random(random);
  stop = true;
  snapshots.join();
  disk.set_after_operation(nullptr);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(snapshot_status.ok()) << snapshot_status;
  MutexLock lock(mutex);
  EXPECT_TRUE(violation.ok()) << violation;
}

TEST(ModelTest, ARandomHistoryWithCrashesAtEveryStepIsTheModels) {
  Random random;
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(RunHistory(&random, 100));
}

TEST(ModelTest, SnapshotsInterleavedWithWorkAreTheModels) {
  Random random;
  for (int i = 0; i < 5 && !testing::Test::HasFailure(); ++i) RunBesideSnapshots(&random, 100);
}

TEST(ModelTestLong, ARandomHistoryWithCrashesAtEveryStepIsTheModels) {
  Random random;
  for (int i = 0; i < 60; ++i) {
    ASSERT_NO_FATAL_FAILURE(RunHistory(&random, 300));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ModelTestLong, SnapshotsInterleavedWithWorkAreTheModels) {
  Random random;
  for (int i = 0; i < 20 && !testing::Test::HasFailure(); ++i) RunBesideSnapshots(&random, 300);
}

}  // namespace
}  // namespace firstseen
