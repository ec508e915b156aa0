#include "exact/group.h"

#include <memory>
#include <tuple>
#include <vector>

#include "exact/geometry.h"
#include "exact/shard_state.h"
#include "exact_test_util.h"

namespace firstseen {
namespace {

Uint128 Wide(Random* random) { return (Uint128{random->Next()} << 64) | random->Next(); }

// Groups of every size; rests of every width that occurs.
TEST(GeometryTest, PlaceAndRemainderGiveTheValueBack) {
  Random random;
  for (int i = 0; i < 20000; ++i) {
    const int bits = 32 + static_cast<int>(random.Below(97));
    const int depth = static_cast<int>(random.Below(bits < 38 ? 21 : 27));
    const int groups = 1 + static_cast<int>(random.Below(1092));
    const Geometry geometry(bits, depth, GroupCount(groups, 2 + static_cast<int>(random.Below(3))));
    const int unused = 128 - geometry.value_bits();
    const Uint128 edges[] = {0, ~Uint128{0}, Wide(&random), Wide(&random)};
    for (const Uint128 edge : edges) {
      const Uint128 value = edge >> unused << unused;
      const uint32_t home = geometry.HomeOf(value);
      ASSERT_LT(home, static_cast<uint32_t>(groups));
      const Uint128 remainder = geometry.RemainderOf(home, value);
      ASSERT_TRUE(geometry.ValueFrom(home, remainder) == value);
      ASSERT_TRUE((remainder >> 8) >> geometry.layout().rest_bits == 0);
      if (groups == 1) continue;
      // The alternate group leads home again.
      const uint32_t alternate = geometry.Alternate(home, remainder);
      ASSERT_NE(alternate, home);
      ASSERT_EQ(geometry.HomeOfAlternate(alternate, remainder), home);
    }
  }
}

TEST(GeometryTest, GroupBordersDoNotLoseValues) {
  for (int groups : {2, 3, 5, 511, 512, 513, 704, 959, 960}) {
    for (int bits : {32, 64, 65, 96, 128}) {
      const Geometry geometry(bits, 0, GroupCount(groups, 2));
      const Uint128 unit = Uint128{1} << (128 - bits);
      for (uint32_t g = 1; g < static_cast<uint32_t>(groups); ++g) {
        // Around the place where g begins.
        const Uint128 border = geometry.ValueFrom(g, 0);
        for (Uint128 value : {border - unit, border, border + unit, border + 2 * unit}) {
          const uint32_t home = geometry.HomeOf(value);
          const Uint128 remainder = geometry.RemainderOf(home, value);
          ASSERT_TRUE(geometry.ValueFrom(home, remainder) == value);
          ASSERT_TRUE((remainder >> 8) >> geometry.layout().rest_bits == 0);
        }
      }
    }
  }
}

TEST(GeometryTest, UnitsOfTheLastBitAgreeWithValues) {
  Random random;
  for (int i = 0; i < 20000; ++i) {
    const int bits = 32 + static_cast<int>(random.Below(97));
    const int depth = static_cast<int>(random.Below(15)) + (bits == 128 ? 1 : 0);
    const Geometry geometry(bits, depth, GroupCount(1 + static_cast<int>(random.Below(1092)), 2));
    const int unused = 128 - geometry.value_bits();
    const Uint128 units = Wide(&random) >> unused;
    const uint32_t home = geometry.HomeOfUpper(geometry.UpperOf(units));
    ASSERT_EQ(home, geometry.HomeOf(units << unused));
    ASSERT_TRUE(units - geometry.LowestOf(home) == geometry.RemainderOf(home, units << unused));
  }
}

// By lines of a group and bits of a rest.
class GroupTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const Group::Layout layout_{std::get<0>(GetParam()), std::get<1>(GetParam())};
  Random random_;
  std::unique_ptr<Group> group_ = std::make_unique<Group>();

  Uint128 RandomRest() { return Wide(&random_) & LowBits(layout_.rest_bits); }
};

TEST_P(GroupTest, KeepsBothKindsOfEntriesMarksAndCountsApart) {
  using Entries = std::vector<std::pair<uint8_t, Uint128>>;
  for (int round = 0; round < 60; ++round) {
    group_->Clear(layout_);
    Entries home;
    Entries foreign;
    std::vector<bool> marks(256);
    for (int step = 0; step < 80; ++step) {
      const auto tag = static_cast<uint8_t>(random_.Below(4) * 63);
      const Uint128 rest = RandomRest();
      Entries& entries = random_.OneIn(3) ? foreign : home;
      if (random_.OneIn(4)) {
        group_->Mark(layout_, tag);
        marks[tag] = true;
      } else if (random_.OneIn(3) && !entries.empty()) {
        // The slot of an entry: home from the last downwards, the others from the first upwards.
        const size_t i = random_.Below(entries.size());
        group_->Erase(layout_, static_cast<int>(&entries == &home ? layout_.slots - 1 - i : i));
        entries[i] = entries.back();
        entries.pop_back();
      } else if (!group_->full(layout_)) {
        if (&entries == &home) {
          group_->AppendHome(layout_, tag, rest);
        } else {
          group_->AppendForeign(layout_, tag, rest);
        }
        entries.emplace_back(tag, rest);
      }
      ASSERT_EQ(group_->home_count(layout_), static_cast<int>(home.size()));
      ASSERT_EQ(group_->foreign_count(layout_), static_cast<int>(foreign.size()));
      ASSERT_EQ(group_->full(layout_), home.size() + foreign.size() == layout_.slots);
      for (const auto& [entry_tag, entry_rest] : home) {
        ASSERT_GE(group_->FindIn(group_->MatchHome(layout_, entry_tag), layout_, entry_rest), 0);
      }
      for (const auto& [entry_tag, entry_rest] : foreign) {
        ASSERT_GE(group_->FindIn(group_->MatchForeign(layout_, entry_tag), layout_, entry_rest), 0);
      }
      for (size_t t = 0; t < marks.size(); ++t) {
        ASSERT_TRUE(group_->marked(layout_, static_cast<uint8_t>(t)) || !marks[t]);
      }
    }
  }
}

TEST_P(GroupTest, PackedEntriesReadBack) {
  for (int count = 0; count <= layout_.slots; ++count) {
    std::vector<Uint128> remainders(static_cast<size_t>(count));
    for (Uint128& remainder : remainders) remainder = RandomRest() << 8 | random_.Below(256);
    for (int i = 0; i < layout_.slots; ++i) group_->Mark(layout_, static_cast<uint8_t>(i * 9));
    group_->Pack(layout_, remainders.data(), count);
    ASSERT_EQ(group_->home_count(layout_), count);
    ASSERT_EQ(group_->foreign_count(layout_), 0);
    for (int tag = 0; tag < 256; ++tag) {
      ASSERT_FALSE(group_->marked(layout_, static_cast<uint8_t>(tag)));
    }
    std::vector<Uint128> read;
    group_->ForEach(layout_, layout_.slots - count, layout_.slots,
                    [&](Uint128 remainder) { read.push_back(remainder); });
    ASSERT_TRUE(read == remainders);
    for (int i = 0; i < count; ++i) {
      const int slot = layout_.slots - count + i;
      ASSERT_TRUE((group_->rest(layout_, slot) << 8 | group_->tag(layout_, slot)) ==
                  remainders[static_cast<size_t>(i)]);
    }
  }
}

TEST_P(GroupTest, PortableTagSearchAgreesWithTheFastOne) {
  for (int round = 0; round < 300; ++round) {
    group_->Clear(layout_);
    const uint64_t used = random_.Below(static_cast<uint64_t>(layout_.slots) + 1);
    uint32_t home = 0;
    uint32_t foreign = 0;
    for (uint64_t i = 0; i < used; ++i) {
      const uint32_t wanted = random_.OneIn(2) ? 1 : 0;
      const auto tag = static_cast<uint8_t>(8 - wanted);
      if (random_.OneIn(2)) {
        home |= wanted << group_->next_home_slot(layout_);
        group_->AppendHome(layout_, tag, RandomRest());
      } else {
        foreign |= wanted << group_->foreign_count(layout_);
        group_->AppendForeign(layout_, tag, RandomRest());
      }
    }
    ASSERT_EQ(group_->MatchHome(layout_, 7), home);
    ASSERT_EQ(group_->MatchHomePortable(layout_, 7), home);
    ASSERT_EQ(group_->MatchForeign(layout_, 7), foreign);
  }
}

INSTANTIATE_TEST_SUITE_P(LinesAndRestBits, GroupTest,
                         testing::Combine(testing::Values(2, 3, 4),
                                          testing::Values(0, 1, 5, 24, 46, 52, 55, 56, 57, 60, 63,
                                                          64, 65, 67, 70, 76, 84, 93, 104, 113, 114,
                                                          119, 120)));

TEST(ShardStateTest, KeepsItsPartsApart) {
  for (int units = ShardShape::kUnitsMin; units <= Arena::kUnitsMax; ++units) {
    ShardShape shape{.units = units};
    for (int step = 0; shape.chunks < ShardShape::kChunksMax; ++step) {
      const int groups = shape.groups();
      shape = shape.Next();
      ASSERT_GT(shape.groups(), groups);
      for (int lines = 2; lines <= (shape.chunks == 0 ? 2 : 4); ++lines) {
        shape.lines = lines;
        ShardState state(shape, 26);
        state.set_count(65535);
        state.set_overflow(true);
        const ShardState read(state.word());
        EXPECT_EQ(read.count(), 65535u);
        EXPECT_EQ(read.depth(), 26);
        EXPECT_TRUE(read.overflow());
        EXPECT_EQ(read.groups().groups, shape.groups());
        EXPECT_EQ(read.groups().lines, lines);
        EXPECT_EQ(read.shape(units).chunks, shape.chunks);
        EXPECT_EQ(read.shape(units).small, shape.small);
        EXPECT_EQ(read.shape(units).lines, lines);
        EXPECT_EQ(read.shape(units).units, units);
        EXPECT_EQ(ShardState(state.word() & ~uint32_t{0xffff}).count(), 0u);
      }
      shape.lines = 2;
    }
  }
}

TEST(ShardStateTest, ChunksAreFoundWithoutDividing) {
  for (int per_chunk = 2; per_chunk < 100; ++per_chunk) {
    const GroupCount count(1092, 2, per_chunk);
    for (uint32_t group = 0; group < 2000; ++group) {
      ASSERT_EQ(count.ChunkOf(group), group / static_cast<uint32_t>(per_chunk));
    }
  }
}

}  // namespace
}  // namespace firstseen
