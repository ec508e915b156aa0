// What the engine's tests share: a directory of their own, fingerprints, shorthand for single
// requests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "firstseen/types.h"
#include "support/directory.h"

namespace firstseen {

// Time that moves when told to.
class ManualClock : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixNanos(wall_nanos_.load()); }
  int64_t MonotonicNanos() const override { return monotonic_nanos_.load(); }
  // The machine is up (and the engine, if it is open).
  void Advance(absl::Duration time) {
    monotonic_nanos_ += absl::ToInt64Nanoseconds(time);
    wall_nanos_ += absl::ToInt64Nanoseconds(time);
  }
  // Somebody sets the wall clock.
  void JumpWall(absl::Duration time) { wall_nanos_ += absl::ToInt64Nanoseconds(time); }
  // The machine is off, and its monotonic clock starts anew.
  void AdvanceWhileDown(absl::Duration time) {
    wall_nanos_ += absl::ToInt64Nanoseconds(time);
    monotonic_nanos_ = 17;
  }

 private:
  std::atomic<int64_t> monotonic_nanos_ = 1'000'000'000;
  std::atomic<int64_t> wall_nanos_ = 1'700'000'000'000'000'000;
};

// The n-th of a sequence of well-spread fingerprints (splitmix64).
inline Fingerprint Print(uint64_t n) {
  const auto mix = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  };
  return {mix(2 * n), mix(2 * n + 1)};
}

inline SetOptions YearSet(Durability durability = Durability::kFsync) {
  SetOptions options;
  options.window = WindowKind::kYear;
  options.fields = {{"name", kTrim}, {"id_no", kTrim | kXCheckDigit}};
  options.durability = durability;
  return options;
}

// One request at a time; the status must be good.
inline ClaimResult ClaimOne(Engine& engine, SetId set, WindowId window, uint64_t n,
                            uint64_t owner) {
  const ClaimRequest request{window, Print(n), owner};
  ClaimResult result;
  const absl::Status status = engine.Claim(set, {&request, 1}, {&result, 1});
  EXPECT_TRUE(status.ok()) << status;
  return result;
}
inline Verdict ClaimVerdict(Engine& engine, SetId set, WindowId window, uint64_t n,
                            uint64_t owner = 0) {
  const ClaimResult result = ClaimOne(engine, set, window, n, owner);
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.verdict;
}
inline Verdict CheckVerdict(Engine& engine, SetId set, WindowId window, uint64_t n) {
  const ClaimRequest request{window, Print(n), 0};
  ClaimResult result;
  const absl::Status status = engine.Check(set, {&request, 1}, {&result, 1});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.verdict;
}
inline Verdict RemoveVerdict(Engine& engine, SetId set, WindowId window, uint64_t n,
                             uint64_t owner = 0) {
  const ClaimRequest request{window, Print(n), owner};
  ClaimResult result;
  const absl::Status status = engine.Remove(set, {&request, 1}, {&result, 1});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result.verdict;
}

// An engine on a directory of its own, which can be closed and opened again.
class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    options_.directory = directory_.path() + "/data";
    options_.clock = &clock_;
    options_.key_check_value = "0123456789abcdef";
    options_.holder = "engine_test";
    options_.log_segment_bytes = 64 << 10;
    options_.snapshot_log_bytes = 0;
  }

  void Create() {
    const absl::Status status = Engine::Create(options_);
    ASSERT_TRUE(status.ok()) << status;
    Open();
  }
  void Open() {
    absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Open(options_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  void Close() {
    const absl::Status status = engine_->Close();
    ASSERT_TRUE(status.ok()) << status;
    engine_.reset();
  }
  void Reopen() {
    Close();
    Open();
  }
  SetId CreateSet(std::string_view name, const SetOptions& options) {
    const absl::StatusOr<SetId> set = engine_->CreateSet(name, options);
    EXPECT_TRUE(set.ok()) << set.status();
    return set.value_or(0);
  }

  TestDirectory directory_;
  ManualClock clock_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

// The same with one set, of years.
class EngineSetTest : public EngineTest {
 protected:
  void SetUp() override {
    Create();
    set_ = CreateSet("kyc", YearSet());
  }
  Verdict Claim(WindowId window, uint64_t n, uint64_t owner = 0) {
    return ClaimVerdict(*engine_, set_, window, n, owner);
  }

  SetId set_ = 0;
};

}  // namespace firstseen
