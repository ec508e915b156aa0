// Crashes, power losses and failing disks at every step, and what each fsync is good for.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine_fixture.h"
#include "engine/model.h"

namespace firstseen {
namespace {

using Fault = FaultyFileSystem::Fault;

// One run of the script on a new disk.
struct ScriptRun {
  FaultyFileSystem disk;
  ManualClock clock;
  Driver driver{nullptr};
  std::atomic<bool> created = false;  // the data directory is there for good

  // Makes a data directory, opens it, runs the script, closes. The first error ends it.
  absl::Status Do(bool strict) {
    const EngineOptions options = ModelOptions(&disk, &clock);
    RETURN_IF_ERROR(Engine::Create(options));
    created = true;
    ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    driver.Attach(engine.get(), Model());
    const absl::Status status = RunScript(engine.get(), &driver, strict);
    if (!status.ok() && !absl::IsResourceExhausted(status) && !absl::IsInternal(status)) {
      // The log has failed: nothing is answered any more.
      ClaimRequest request{2023, Print(1), 1};
      ClaimResult result;
      if (engine->Claim(0, {&request, 1}, {&result, 1}).ok() ||
          engine->Check(0, {&request, 1}, {&result, 1}).ok()) {
        return Internal("answers after a failure: {}", Message(status));
      }
    }
    RETURN_IF_ERROR(status);
    return engine->Close();
  }

  // Whether `after`, what a crash left of the disk, holds what was promised.
  absl::Status Check(const FaultyFileSystem& after) { return Check(after, driver.candidates()); }

  absl::Status CheckPowerLoss(uint64_t seed) {
    std::unique_ptr<FaultyFileSystem> after;
    const std::vector<Model> candidates = driver.Freeze([&] { after = disk.AfterPowerLoss(seed); });
    return Check(*after, candidates);
  }

  absl::Status Check(const FaultyFileSystem& after, const std::vector<Model>& candidates) {
    if (created) return CheckRecovery(after, candidates);
    const std::unique_ptr<FaultyFileSystem> copy = after.AfterPowerLoss(1);
    const absl::Status status = Engine::Create(ModelOptions(copy.get(), &clock));
    if (!absl::IsAlreadyExists(status)) RETURN_IF_ERROR(status);
    return CheckRecovery(*copy, {Model()});
  }
};

// Runs the script and lets the power go after each operation. The first violation, or OK.
absl::Status LosePowerEverywhere(
    const std::vector<uint64_t>& seeds,
    std::function<bool(const FaultyFileSystem::SyncCall&)> ignored_syncs = nullptr) {
  ScriptRun run;
  run.disk.IgnoreSyncs(std::move(ignored_syncs));
  Mutex mutex;
  absl::Status violation;
  run.disk.set_after_operation([&](uint64_t number) {
    for (uint64_t seed : seeds) {
      MutexLock lock(mutex);
      if (!violation.ok()) return;
      violation = Annotate(run.CheckPowerLoss(seed),
                           fmt::format("power loss after operation {}, seed {}", number, seed));
    }
  });
  const absl::Status status = run.Do(true);
  run.disk.set_after_operation(nullptr);
  MutexLock lock(mutex);
  RETURN_IF_ERROR(violation);
  return status;
}

uint64_t CountOperations() {
  ScriptRun run;
  EXPECT_TRUE(run.Do(true).ok());
  return run.disk.operations();
}

// Lets the i-th operation fail for every i in steps of `stride`, then crashes.
void FailEverywhere(Fault fault, uint64_t stride) {
  const uint64_t operations = CountOperations();
  for (uint64_t at = 1; at <= operations + 2; at += stride) {
    ScriptRun run;
    fault.at = at;
    run.disk.FailAt(fault);
    const absl::Status status = run.Do(false);
    ASSERT_FALSE(absl::IsInternal(status)) << "operation " << at << ": " << status;
    ASSERT_FALSE(absl::IsDataLoss(status)) << "operation " << at << ": " << status;
    for (uint64_t seed : {0, 1, 2, 3}) {
      const absl::Status recovered = run.Check(*run.disk.AfterPowerLoss(seed));
      ASSERT_TRUE(recovered.ok()) << "operation " << at << ", seed " << seed << ": " << recovered
                                  << "\nafter " << status;
    }
    const absl::Status recovered = run.Check(*run.disk.AfterProcessCrash());
    ASSERT_TRUE(recovered.ok()) << "operation " << at << ": " << recovered << "\nafter " << status;
  }
}

TEST(CrashTest, TheScriptRunsWithoutFaults) {
  ScriptRun run;
  const absl::Status status = run.Do(true);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(run.driver.candidates().size(), 1u);
  const absl::Status recovered = run.Check(run.disk);
  EXPECT_TRUE(recovered.ok()) << recovered;
}

TEST(CrashTest, APowerLossAfterAnyOperationTakesNothingThatWasPromised) {
  const absl::Status status = LosePowerEverywhere({0, 1, 2});
  EXPECT_TRUE(status.ok()) << status;
}

TEST(CrashTest, AnOperationThatFailsOnceTakesNothing) {
  FailEverywhere({.for_good = false, .error = FaultyFileSystem::Error::kIo}, 3);
}

TEST(CrashTest, ADiskThatFailsForGoodTakesNothing) {
  FailEverywhere({.for_good = true, .error = FaultyFileSystem::Error::kIo, .tear = true}, 3);
}

TEST(CrashTest, AFullDiskTakesNothing) {
  FailEverywhere({.for_good = false, .error = FaultyFileSystem::Error::kNoSpace}, 3);
}

TEST(CrashTest, RecoveryItselfMayFailAnywhereAndBeTriedAgain) {
  ScriptRun run;
  ASSERT_TRUE(run.Do(true).ok());
  const std::unique_ptr<FaultyFileSystem> crashed = run.disk.AfterPowerLoss(3);
  for (uint64_t at = 1;; ++at) {
    const std::unique_ptr<FaultyFileSystem> disk = crashed->AfterPowerLoss(1);
    disk->FailAt({.at = at, .for_good = at % 2 == 0, .tear = at % 3 == 0});
    ManualClock clock;
    {
      const absl::StatusOr<std::unique_ptr<Engine>> engine =
          Engine::Open(ModelOptions(disk.get(), &clock));
      if (disk->operations() < at) break;
      ASSERT_FALSE(absl::IsDataLoss(engine.status())) << engine.status();
    }
    for (uint64_t seed : {0, 1, 2}) {
      const absl::Status status = run.Check(*disk->AfterPowerLoss(seed));
      ASSERT_TRUE(status.ok()) << "operation " << at << ", seed " << seed << ": " << status;
    }
  }
}

TEST(CrashTest, AFullDiskRefusesClaimsUntilThereIsRoomAgain) {
  FaultyFileSystem disk;
  ManualClock clock;
  ASSERT_TRUE(Engine::Create(ModelOptions(&disk, &clock)).ok());
  auto engine = Engine::Open(ModelOptions(&disk, &clock)).value();
  const SetId set = engine->CreateSet("kyc", YearSet()).value();
  disk.SetCapacity(12'000);
  uint64_t claimed = 0;
  absl::Status status;
  std::vector<uint64_t> refused;
  for (uint64_t n = 0; n < 2000 && refused.size() < 5; ++n) {
    const ClaimRequest request{2023, Print(n), n + 1};
    ClaimResult result;
    status = engine->Claim(set, {&request, 1}, {&result, 1});
    if (!status.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
      refused.push_back(n);
    } else {
      ++claimed;
    }
  }
  ASSERT_EQ(refused.size(), 5u);
  EXPECT_GT(claimed, 10u);
  disk.SetCapacity(1'000'000);
  for (uint64_t n : refused) {
    const Verdict verdict = ClaimVerdict(*engine, set, 2023, n, n + 1);
    EXPECT_TRUE(verdict == Verdict::kFirst || verdict == Verdict::kRepeat);
  }
  EXPECT_EQ(ClaimVerdict(*engine, set, 2023, 5000, 1), Verdict::kFirst);
  ASSERT_TRUE(engine->Close().ok());
  engine = Engine::Open(ModelOptions(&disk, &clock)).value();
  EXPECT_EQ(engine->Stats(set)->windows[0].members, claimed + refused.size() + 1);
}

// A call is told from another by its return address. A compiler that splits a call into two, one
// for each of two ways to it, makes two of which each may be left out: Clang does.
#if !defined(__clang__)
// Each place in the program that calls fsync, by what it syncs there.
std::map<const void*, std::string> SyncSites() {
  ScriptRun run;
  EXPECT_TRUE(run.Do(true).ok());
  std::map<const void*, std::string> sites;
  for (const FaultyFileSystem::SyncCall& call : run.disk.sync_calls()) {
    sites.emplace(call.site, call.path);
  }
  return sites;
}

TEST(CrashTest, WithoutAnyOneFsyncSomethingIsLost) {
  const std::map<const void*, std::string> sites = SyncSites();
  EXPECT_GE(sites.size(), 6u);
  std::vector<uint64_t> seeds;  // many: what must be lost and what kept is a rare coincidence
  for (uint64_t seed = 0; seed < 40; ++seed) seeds.push_back(seed);
  for (const auto& [site, path] : sites) {
    const absl::Status status =
        LosePowerEverywhere(seeds, [site = site](const auto& call) { return call.site == site; });
    EXPECT_FALSE(status.ok()) << "nothing depends on an fsync of " << path;
  }
}
#endif

TEST(CrashTestLong, APowerLossAfterAnyOperationTakesNothingThatWasPromised) {
  Random random;
  for (int round = 0; round < 5; ++round) {
    std::vector<uint64_t> seeds;
    for (int i = 0; i < 5; ++i) seeds.push_back(2 + random.Below(1'000'000));
    const absl::Status status = LosePowerEverywhere(seeds);
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(CrashTestLong, EveryOperationMayFailInEveryWay) {
  for (const bool for_good : {false, true}) {
    for (const bool tear : {false, true}) {
      for (const auto error : {FaultyFileSystem::Error::kIo, FaultyFileSystem::Error::kNoSpace}) {
        FailEverywhere({.for_good = for_good, .error = error, .tear = tear}, 1);
      }
    }
  }
}

}  // namespace
}  // namespace firstseen
