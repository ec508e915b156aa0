#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "exact_test_util.h"

namespace firstseen {
namespace {

constexpr int kThreads = 4;

// Runs `f(0)` to `f(kThreads - 1)` at the same time.
template <typename F>
void InThreads(F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

class ExactSetThreadsTest : public testing::TestWithParam<Draw> {};

TEST_P(ExactSetThreadsTest, OfSimultaneousAddsOfOneKeyExactlyOneAdds) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, GetParam());
  std::set<Fingerprint> distinct;
  std::vector<Fingerprint> keys = Draws(&source, 40000);
  distinct.insert(keys.begin(), keys.end());
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> failed{0};
  InThreads([&](int t) {
    std::vector<AddOutcome> outcomes(100);
    for (size_t i = 0; i < keys.size(); i += 100) {
      const auto batch = std::span(keys).subspan(i, 100);
      if (t % 2 == 0) {
        set.AddBatch(batch, outcomes);
      } else {
        for (size_t k = 0; k < 100; ++k) outcomes[k] = set.Add(batch[k]);
      }
      added += static_cast<uint64_t>(std::ranges::count(outcomes, AddOutcome::kAdded));
      for (const Fingerprint& key : batch) failed += set.Contains(key) ? 0 : 1;
    }
  });
  EXPECT_EQ(added.load(), distinct.size());
  EXPECT_EQ(failed.load(), 0u);
  EXPECT_EQ(set.size(), distinct.size());
  const auto members = Members(CopyAll(set));
  EXPECT_TRUE(std::equal(members.begin(), members.end(), distinct.begin(), distinct.end()));
}

INSTANTIATE_TEST_SUITE_P(Draws, ExactSetThreadsTest,
                         testing::Values(Draw::kUniform, Draw::kFewPrefixes));

TEST(ExactSetThreadsTest, EachThreadsAddsAndRemovesAreItsOwn) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  Random random;
  const uint64_t seed = random.Next();
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> left{0};
  InThreads([&](int t) {
    FingerprintSource source(seed + static_cast<uint64_t>(t), 96, Draw::kUniform);
    std::vector<Fingerprint> own = Draws(&source, 20000);
    std::vector<AddOutcome> outcomes(own.size());
    set.AddBatch(own, outcomes);
    wrong += static_cast<uint64_t>(
        std::ranges::count_if(outcomes, [](AddOutcome o) { return o != AddOutcome::kAdded; }));
    for (size_t i = 0; i < own.size(); i += 2) wrong += set.Remove(own[i]) ? 0 : 1;
    const std::unique_ptr<bool[]> present(new bool[own.size()]);
    set.ContainsBatch(own, std::span(present.get(), own.size()));
    for (size_t i = 0; i < own.size(); ++i) wrong += present[i] == (i % 2 == 1) ? 0 : 1;
    left += own.size() / 2;
  });
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(set.size(), left.load());
}

TEST(ExactSetThreadsTest, AnImageTakenDuringAddsHasEveryRangeOnceAndAllThatWasThereBefore) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  std::vector<Fingerprint> before = Draws(&source, 50000);
  const std::vector<Fingerprint> later = Draws(&source, 150000);
  for (const Fingerprint& key : before) set.Add(key);
  std::sort(before.begin(), before.end());
  std::atomic<bool> done{false};
  std::thread adder([&] {
    std::vector<AddOutcome> outcomes(later.size());
    set.AddBatch(later, outcomes);
    done = true;
  });
  int passes = 0;
  do {
    const std::vector<ShardImage> images = CopyAll(set);
    Fingerprint expected_first;
    for (const ShardImage& image : images) {
      ASSERT_EQ(image.first, expected_first);
      expected_first.hi += image.depth == 0 ? 0 : uint64_t{1} << (64 - image.depth);
    }
    ASSERT_EQ(expected_first, Fingerprint{});  // wrapped around: the last range ends the space
    const std::vector<Fingerprint> members = Members(images);
    ASSERT_TRUE(std::is_sorted(members.begin(), members.end()));
    ASSERT_EQ(std::adjacent_find(members.begin(), members.end()), members.end());
    ASSERT_TRUE(std::includes(members.begin(), members.end(), before.begin(), before.end()));
    ++passes;
  } while (!done);
  adder.join();
  EXPECT_GT(passes, 0);
  EXPECT_EQ(Members(CopyAll(set)).size(), before.size() + later.size());
}

TEST(ExactSetThreadsTest, CallsThatHoldManyShardsDoNotDeadlockAndAreAtomic) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  // Groups of keys that are always added and removed together.
  std::vector<std::vector<Fingerprint>> bundles(200);
  for (auto& bundle : bundles) {
    bundle = Draws(&source, 200);
    std::sort(bundle.begin(), bundle.end());
  }
  std::atomic<uint64_t> torn{0};
  InThreads([&](int t) {
    for (size_t i = 0; i < 400; ++i) {
      const auto& bundle = bundles[(i * 7 + static_cast<size_t>(t) * 50) % bundles.size()];
      set.WithShards(bundle, [&](ExactSet::LockedShard& shards) {
        const bool present = shards.Contains(bundle.front());
        for (const Fingerprint& key : bundle) {
          if (shards.Contains(key) != present) ++torn;
          if (present && i % 3 == 0) {
            shards.Remove(key);
          } else {
            shards.Add(key);
          }
        }
      });
    }
  });
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(Members(CopyAll(set)).size(), set.size());
}

}  // namespace
}  // namespace firstseen
