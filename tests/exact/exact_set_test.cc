#include "exact/exact_set.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "exact_test_util.h"

namespace firstseen {
namespace {

std::vector<Fingerprint> Distinct(FingerprintSource* source, size_t count) {
  std::set<Fingerprint> fingerprints;
  while (fingerprints.size() < count) fingerprints.insert(source->Next());
  return {fingerprints.begin(), fingerprints.end()};
}

// Runs random operations on a set and on std::set side by side.
class Oracle {
 public:
  Oracle(ExactSet* set, int bits, Draw draw) : set_(set), source_(bits, draw) {}

  void Run(size_t operations) {
    for (size_t done = 0; done < operations;) {
      const uint64_t dice = source_.random().Below(16);
      if (dice < 9) {
        done += AddBatch(1 + source_.random().Below(100));
      } else if (dice < 12) {
        done += ContainsBatch(1 + source_.random().Below(100));
      } else {
        for (int i = 0; i < 20; ++i) Single(Pick(), source_.random().Below(3));
        done += 20;
      }
      ASSERT_EQ(set_->size(), model_.size());
    }
  }

  void CheckAll() {
    const std::vector<Fingerprint> members = Members(CopyAll(*set_));
    ASSERT_TRUE(std::equal(members.begin(), members.end(), model_.begin(), model_.end()));
    for (const Fingerprint& member : members) ASSERT_TRUE(set_->Contains(member));
  }

  void RemoveAll() {
    for (const Fingerprint& member : model_) ASSERT_TRUE(set_->Remove(member));
    for (const Fingerprint& member : model_) ASSERT_FALSE(set_->Contains(member));
    model_.clear();
    ASSERT_EQ(set_->size(), 0u);
  }

 private:
  // A new draw or, half of the time, one that was drawn before.
  Fingerprint Pick() {
    if (drawn_.empty() || source_.random().Below(2) == 0) {
      drawn_.push_back(source_.Next());
      return drawn_.back();
    }
    return drawn_[source_.random().Below(drawn_.size())];
  }

  size_t AddBatch(size_t count) {
    std::vector<Fingerprint> batch(count);
    for (Fingerprint& fingerprint : batch) fingerprint = Pick();
    std::vector<AddOutcome> outcomes(count);
    set_->AddBatch(batch, outcomes);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(outcomes[i] == AddOutcome::kAdded, model_.insert(batch[i]).second);
      EXPECT_NE(outcomes[i], AddOutcome::kNoMemory);
    }
    return count;
  }

  size_t ContainsBatch(size_t count) {
    std::vector<Fingerprint> batch(count);
    for (Fingerprint& fingerprint : batch) fingerprint = Pick();
    const std::unique_ptr<bool[]> present(new bool[count]);
    set_->Prefetch(batch);
    set_->ContainsBatch(batch, std::span(present.get(), count));
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(present[i], model_.contains(batch[i]));
    return count;
  }

  void Single(const Fingerprint& fingerprint, uint64_t operation) {
    if (operation == 0) {
      EXPECT_EQ(set_->Add(fingerprint) == AddOutcome::kAdded, model_.insert(fingerprint).second);
    } else if (operation == 1) {
      EXPECT_EQ(set_->Remove(fingerprint), model_.erase(fingerprint) == 1);
    } else {
      EXPECT_EQ(set_->Contains(fingerprint), model_.contains(fingerprint));
    }
  }

  ExactSet* const set_;
  FingerprintSource source_;
  std::set<Fingerprint> model_;
  std::vector<Fingerprint> drawn_;
};

class ExactSetOracleTest : public testing::TestWithParam<std::tuple<int, Draw>> {};

TEST_P(ExactSetOracleTest, AnswersAsAnOrderedSetDoes) {
  const auto [bits, draw] = GetParam();
  Arena arena(Arena::Options{});
  {
    ExactSet set(&arena, {.bits = bits});
    Oracle oracle(&set, bits, draw);
    oracle.Run(60000);
    oracle.CheckAll();
    oracle.RemoveAll();
    oracle.Run(5000);
    oracle.CheckAll();
  }
  EXPECT_EQ(arena.bytes_used(), 0u);
  EXPECT_EQ(arena.bytes_reserved(), 0u);
}

INSTANTIATE_TEST_SUITE_P(WidthsAndCollisions, ExactSetOracleTest,
                         testing::Combine(testing::Values(32, 40, 64, 80, 88, 96, 112, 127, 128),
                                          testing::Values(Draw::kUniform, Draw::kFewPrefixes,
                                                          Draw::kFewRemainders, Draw::kFewTags,
                                                          Draw::kSmallUniverse)));

TEST(ExactSetTest, EmptySetHoldsNothing) {
  Arena arena(Arena::Options{});
  const ExactSet set(&arena, {});
  EXPECT_EQ(set.size(), 0u);
  EXPECT_EQ(set.slot_count(), 0u);
  EXPECT_FALSE(set.Contains({0, 0}));
  EXPECT_TRUE(Members(CopyAll(set)).empty());
  EXPECT_EQ(arena.bytes_used(), 0u);
}

TEST(ExactSetTest, LowestAndHighestFingerprintsAreKeysLikeAnyOther) {
  Arena arena(Arena::Options{});
  for (int bits : {32, 80, 96, 128}) {
    ExactSet set(&arena, {.bits = bits});
    const Fingerprint lowest{};
    const Fingerprint highest = Fingerprint{~uint64_t{0}, ~uint64_t{0}}.Truncated(bits);
    EXPECT_EQ(set.Add(lowest), AddOutcome::kAdded);
    EXPECT_FALSE(set.Contains(highest));
    EXPECT_EQ(set.Add(highest), AddOutcome::kAdded);
    EXPECT_EQ(set.Add(lowest), AddOutcome::kPresent);
    EXPECT_EQ(set.Add(highest), AddOutcome::kPresent);
    EXPECT_EQ(Members(CopyAll(set)), (std::vector<Fingerprint>{lowest, highest}));
    EXPECT_TRUE(set.Remove(lowest));
    EXPECT_FALSE(set.Remove(lowest));
    EXPECT_TRUE(set.Contains(highest));
  }
}

TEST(ExactSetTest, GrowsInSmallStepsWithHighLoad) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  uint64_t bytes_before = 0;
  for (int i = 0; i < 400; ++i) {
    const auto batch = Draws(&source, 1000);
    std::vector<AddOutcome> outcomes(batch.size());
    set.AddBatch(batch, outcomes);
    if (set.size() < 100000) continue;
    const double load = static_cast<double>(set.size()) / static_cast<double>(set.slot_count());
    EXPECT_GT(load, 0.80);
    if (bytes_before != 0) {
      EXPECT_LT(set.memory_bytes(), bytes_before + bytes_before / 5);
    }
    bytes_before = set.memory_bytes();
  }
  EXPECT_EQ(set.size(), 400000u);
}

TEST(ExactSetTest, ExpectedSizeIsHeldWithoutGrowing) {
  Arena arena(Arena::Options{});
  FingerprintSource source(96, Draw::kUniform);
  for (uint64_t expected : {uint64_t{1}, uint64_t{13}, uint64_t{5000}, uint64_t{300000}}) {
    ExactSet set(&arena, {.bits = 96, .expected = expected});
    const auto members = Distinct(&source, expected);
    ASSERT_EQ(set.Add(members[0]), AddOutcome::kAdded);
    for (const Fingerprint& member : members) set.Add(member);
    EXPECT_EQ(set.size(), expected);
    const double load = static_cast<double>(set.size()) / static_cast<double>(set.slot_count());
    EXPECT_GT(load, expected < 100 ? 0.05 : 0.6);
    EXPECT_EQ(Members(CopyAll(set)), members);
  }
}

TEST(ExactSetTest, TinySetsCostLittle) {
  Arena arena(Arena::Options{});
  FingerprintSource source(96, Draw::kUniform);
  const ExactSet empty(&arena, {});
  EXPECT_LT(empty.memory_bytes(), 600u);
  for (size_t size : {20u, 60u, 150u, 300u}) {
    ExactSet set(&arena, {});
    for (size_t i = 0; i < size; ++i) set.Add(source.Next());
    EXPECT_LT(set.memory_bytes(), 600 + 25 * size) << size;
  }
}

TEST(ExactSetTest, ManyKeysWithEqualPrefixStayWithinBounds) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kFewPrefixes);
  const auto members = Distinct(&source, 60000);
  for (const Fingerprint& member : members) ASSERT_EQ(set.Add(member), AddOutcome::kAdded);
  EXPECT_EQ(Members(CopyAll(set)), members);
  EXPECT_LT(set.memory_bytes(), 100 * members.size());
  for (const Fingerprint& member : members) ASSERT_TRUE(set.Remove(member));
  EXPECT_EQ(set.size(), 0u);
}

TEST(ExactSetTest, BatchReportsTheFirstOfEqualKeysAsAdded) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  for (int round = 0; round < 500; ++round) {
    std::vector<Fingerprint> batch = Draws(&source, 32);
    std::copy_n(batch.begin(), 16, batch.begin() + 16);
    std::vector<AddOutcome> outcomes(32);
    set.AddBatch(batch, outcomes);
    for (size_t i = 0; i < 32; ++i) {
      ASSERT_EQ(outcomes[i], i < 16 ? AddOutcome::kAdded : AddOutcome::kPresent);
    }
  }
}

TEST(ExactSetMemoryTest, AtTheLimitAddsFailAndTheSetStaysIntact) {
  for (uint64_t limit : {0u, 128u, 1000u, 5000u, 8192u, 20000u, 130000u, 300000u}) {
    Arena arena(Arena::Options{.bytes_max = limit});
    ExactSet set(&arena, {.bits = 96});
    FingerprintSource source(96, Draw::kUniform);
    std::set<Fingerprint> model;
    int refused = 0;
    while (refused < 1000) {
      const Fingerprint fingerprint = source.Next();
      const AddOutcome outcome = set.Add(fingerprint);
      ASSERT_NE(outcome, AddOutcome::kPresent);
      if (outcome == AddOutcome::kAdded) {
        model.insert(fingerprint);
      } else {
        ++refused;
        ASSERT_FALSE(set.Contains(fingerprint));
      }
      ASSERT_LE(arena.bytes_used(), limit);
    }
    EXPECT_EQ(set.size(), model.size());
    const auto members = Members(CopyAll(set));
    EXPECT_TRUE(std::equal(members.begin(), members.end(), model.begin(), model.end()));
    // What is removed makes room again.
    for (const Fingerprint& member : model) ASSERT_TRUE(set.Remove(member));
    if (!model.empty()) {
      EXPECT_EQ(set.Add(*model.begin()), AddOutcome::kAdded);
    }
  }
}

TEST(ExactSetMemoryTest, OverflowOfCollidingKeysIsCountedAgainstTheLimit) {
  Arena arena(Arena::Options{.bytes_max = 600000});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kFewPrefixes);
  uint64_t added = 0;
  while (set.Add(source.Next()) != AddOutcome::kNoMemory) ++added;
  EXPECT_GT(added, 12000u);
  EXPECT_LE(arena.bytes_used(), 600000u);
  EXPECT_EQ(Members(CopyAll(set)).size(), added);
}

TEST(ExactSetLockedTest, ShardsAreHeldTogetherAndSplitUnderTheLock) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  std::set<Fingerprint> model;
  for (int round = 0; round < 8; ++round) {
    const std::vector<Fingerprint> batch = Distinct(&source, 20000);
    set.WithShards(batch, [&](ExactSet::LockedShard& shards) {
      for (const Fingerprint& fingerprint : batch) {
        EXPECT_FALSE(shards.Contains(fingerprint));
        EXPECT_EQ(shards.Add(fingerprint), AddOutcome::kAdded);
        EXPECT_TRUE(shards.Contains(fingerprint));
      }
      for (size_t i = 0; i < batch.size(); i += 2) EXPECT_TRUE(shards.Remove(batch[i]));
    });
    for (size_t i = 1; i < batch.size(); i += 2) model.insert(batch[i]);
    ASSERT_EQ(set.size(), model.size());
  }
  const auto members = Members(CopyAll(set));
  EXPECT_TRUE(std::equal(members.begin(), members.end(), model.begin(), model.end()));
}

TEST(ExactSetLockedTest, BothHalvesOfASplitKeepTheStamp) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  set.WithShard({}, [](ExactSet::LockedShard& shard) { shard.set_stamp({}, 42); });
  for (int i = 0; i < 40000; ++i) set.Add(source.Next());
  const auto images = CopyAll(set);
  EXPECT_GT(images.size(), 2u);
  for (const ShardImage& image : images) EXPECT_EQ(image.stamp, 42u);
  set.WithShard(images[1].first, [&](ExactSet::LockedShard& shard) {
    shard.set_stamp(images[1].first, 43);
    EXPECT_EQ(shard.stamp(images[1].first), 43u);
  });
  const auto again = CopyAll(set);
  EXPECT_EQ(again[0].stamp, 42u);
  EXPECT_EQ(again[1].stamp, 43u);
}

class ExactSetImageTest : public testing::TestWithParam<int> {};

TEST_P(ExactSetImageTest, ImagesLoadIntoAnEmptySetOfTheSameWidth) {
  const int bits = GetParam();
  Arena arena(Arena::Options{});
  FingerprintSource source(bits, Draw::kUniform);
  ExactSet set(&arena, {.bits = bits});
  for (int i = 0; i < 150000; ++i) set.Add(source.Next());
  std::vector<ShardImage> images = CopyAll(set);
  for (size_t i = 0; i < images.size(); ++i) {
    images[i].stamp = i + 1;
    EXPECT_TRUE(std::is_sorted(images[i].fingerprints.begin(), images[i].fingerprints.end()));
  }
  // Into a set of unknown size, and into ones that are divided more or less finely already.
  for (uint64_t expected : {0u, 20000u, 2000000u}) {
    ExactSet loaded(&arena, {.bits = bits, .expected = expected});
    for (size_t i = images.size() - 1; i > 0; --i) {
      std::swap(images[i], images[source.random().Below(i + 1)]);
    }
    for (const ShardImage& image : images) ASSERT_TRUE(loaded.LoadShard(image));
    EXPECT_EQ(loaded.size(), set.size());
    const auto loaded_images = CopyAll(loaded);
    EXPECT_EQ(Members(loaded_images), Members(CopyAll(set)));
    for (const ShardImage& image : images) {
      loaded.WithShard(image.first, [&](ExactSet::LockedShard& shard) {
        EXPECT_EQ(shard.stamp(image.first), image.stamp);
      });
    }
    for (const Fingerprint& member : Members(loaded_images)) ASSERT_TRUE(loaded.Contains(member));
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, ExactSetImageTest, testing::Values(32, 80, 88, 96, 112, 128));

TEST(ExactSetImageTest, AnImageLargerThanAShardIsSplit) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  ShardImage image;
  image.stamp = 7;
  image.fingerprints = Distinct(&source, 100000);
  ASSERT_TRUE(set.LoadShard(image));
  const auto images = CopyAll(set);
  EXPECT_GE(images.size(), 8u);
  EXPECT_EQ(Members(images), image.fingerprints);
  for (const ShardImage& loaded : images) EXPECT_EQ(loaded.stamp, 7u);
}

TEST(ExactSetImageTest, AnImageOfCollidingKeysLoadsToo) {
  Arena arena(Arena::Options{});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kFewPrefixes);
  ShardImage image;
  image.fingerprints = Distinct(&source, 50000);
  ASSERT_TRUE(set.LoadShard(image));
  EXPECT_EQ(Members(CopyAll(set)), image.fingerprints);
}

TEST(ExactSetImageTest, LoadingBeyondTheMemoryLimitFails) {
  Arena arena(Arena::Options{.bytes_max = 100000});
  ExactSet set(&arena, {.bits = 96});
  FingerprintSource source(96, Draw::kUniform);
  ShardImage image;
  image.fingerprints = Distinct(&source, 100000);
  EXPECT_FALSE(set.LoadShard(image));
  EXPECT_LE(arena.bytes_used(), 100000u);
}

}  // namespace
}  // namespace firstseen
