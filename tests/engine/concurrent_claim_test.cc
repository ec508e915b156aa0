// Claims from many threads while snapshots are written, checked for linearizability: there must be
// an order of all claims of a member, which no claim that was answered before another began breaks,
// in which the first is FIRST and the others are REPEAT or DUPLICATE by their owner.
//
// For claims alone that comes down to three things, which are easy to check: exactly one FIRST a
// member and window; REPEAT for its owner and DUPLICATE for the others; and none of these answered
// before the FIRST began.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/engine_fixture.h"
#include "support/random.h"

namespace firstseen {
namespace {

struct Operation {
  uint64_t began = 0;  // moments of one clock that counts
  uint64_t ended = 0;
  WindowId window = 0;
  uint64_t member = 0;
  uint64_t owner = 0;
  Verdict verdict = Verdict::kClosed;
  uint64_t sequence = 0;
};

struct Load {
  int threads = 8;
  int batches = 60;         // a thread
  uint64_t members = 2000;  // few, so that they are claimed again and again
  uint64_t owners = 5000;
};

class ConcurrentClaimTest : public EngineTest {
 protected:
  void Claim(SetId set, const Load& load, uint64_t seed, std::vector<Operation>* operations) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < load.batches; ++i) {
      std::vector<ClaimRequest> requests;
      std::vector<Operation> batch(1 + random() % 40);
      for (Operation& operation : batch) {
        operation.window = static_cast<WindowId>(2022 + random() % 2);
        operation.member = random() % load.members;
        operation.owner = 1 + random() % load.owners;
        requests.push_back({operation.window, Print(operation.member), operation.owner});
      }
      std::vector<ClaimResult> results(batch.size());
      const uint64_t began = ++moment_;
      const absl::Status status = engine_->Claim(set, requests, results);
      const uint64_t ended = ++moment_;
      ASSERT_TRUE(status.ok()) << status;
      for (size_t k = 0; k < batch.size(); ++k) {
        ASSERT_TRUE(results[k].status.ok()) << results[k].status;
        batch[k].began = began;
        batch[k].ended = ended;
        batch[k].verdict = results[k].verdict;
        batch[k].sequence = results[k].sequence;
        operations->push_back(batch[k]);
      }
    }
  }

  // All that the threads were told, in no order.
  std::vector<Operation> Run(SetId set, const Load& load, Random* random) {
    std::vector<std::vector<Operation>> operations(static_cast<size_t>(load.threads));
    std::atomic<bool> stop = false;
    std::thread snapshots([&] {
      while (!stop.load()) EXPECT_TRUE(engine_->Snapshot().ok());
    });
    std::vector<std::thread> threads;
    for (auto& own : operations) {
      threads.emplace_back(
          [&, seed = random->Next(), &own = own] { Claim(set, load, seed, &own); });
    }
    for (std::thread& thread : threads) thread.join();
    stop = true;
    snapshots.join();
    std::vector<Operation> all;
    for (const auto& own : operations) all.insert(all.end(), own.begin(), own.end());
    return all;
  }

  using Place = std::pair<WindowId, uint64_t>;
  std::map<Place, Operation> Firsts(const std::vector<Operation>& operations) {
    std::map<Place, Operation> firsts;
    for (const Operation& operation : operations) {
      if (operation.verdict != Verdict::kFirst) continue;
      const bool only = firsts.insert({{operation.window, operation.member}, operation}).second;
      EXPECT_TRUE(only) << "two are FIRST for member " << operation.member;
    }
    return firsts;
  }

  void CheckLinearizable(const std::vector<Operation>& operations,
                         const std::map<Place, Operation>& firsts) {
    for (const Operation& operation : operations) {
      const auto first = firsts.find({operation.window, operation.member});
      ASSERT_NE(first, firsts.end()) << "nobody is FIRST for member " << operation.member;
      if (operation.verdict == Verdict::kFirst) continue;
      const bool own = operation.owner == first->second.owner;
      ASSERT_EQ(operation.verdict, own ? Verdict::kRepeat : Verdict::kDuplicate);
      ASSERT_GT(operation.ended, first->second.began) << "answered before the FIRST began";
      if (own) {
        ASSERT_EQ(operation.sequence, first->second.sequence);
      } else {
        ASSERT_GT(operation.sequence, first->second.sequence);
      }
    }
  }

  void RunAndCheck(const Load& load, Random* random) {
    const SetId set = CreateSet("kyc", YearSet(Durability::kInterval));
    const std::vector<Operation> operations = Run(set, load, random);
    const std::map<Place, Operation> firsts = Firsts(operations);
    ASSERT_FALSE(firsts.empty());
    ASSERT_NO_FATAL_FAILURE(CheckLinearizable(operations, firsts));
    Reopen();
    for (const auto& [place, first] : firsts) {
      EXPECT_EQ(ClaimVerdict(*engine_, set, place.first, place.second, first.owner),
                Verdict::kRepeat);
    }
  }

 private:
  std::atomic<uint64_t> moment_ = 0;
};

TEST_F(ConcurrentClaimTest, ClaimsBesideSnapshotsAreLinearizable) {
  Random random;
  Create();
  RunAndCheck({}, &random);
}

using ConcurrentClaimTestLong = ConcurrentClaimTest;

TEST_F(ConcurrentClaimTestLong, ClaimsBesideSnapshotsAreLinearizable) {
  Random random;
  Create();
  RunAndCheck({.threads = 16, .batches = 4000, .members = 300'000, .owners = 1000}, &random);
}

// The wall clock is for people; how long an owner is kept is measured by one that does not jump.
TEST_F(ConcurrentClaimTest, AClockThatJumpsForgetsNoOwner) {
  Create();
  const SetId set = CreateSet("kyc", YearSet());
  constexpr uint64_t kOwner = 7;
  ASSERT_EQ(ClaimVerdict(*engine_, set, 2023, 1, kOwner), Verdict::kFirst);
  ASSERT_EQ(engine_->Settle(set, {&kOwner, 1}).value(), 1u);
  for (const absl::Duration jump : {absl::Hours(24 * 3650), absl::Hours(-24 * 7300)}) {
    clock_.JumpWall(jump);
    EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, 1, kOwner), Verdict::kRepeat);
    ASSERT_TRUE(engine_->Snapshot().ok());
    Reopen();
    EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, 1, kOwner), Verdict::kRepeat);
  }
  clock_.Advance(absl::Hours(49));
  EXPECT_EQ(ClaimVerdict(*engine_, set, 2023, 1, kOwner), Verdict::kDuplicate);
}

}  // namespace
}  // namespace firstseen
