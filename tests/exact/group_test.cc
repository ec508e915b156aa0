#include "exact/group.h"

#include <memory>

#include "exact/geometry.h"
#include "exact_test_util.h"

namespace firstseen {
namespace {

Uint128 Wide(Random* random) { return (Uint128{random->Next()} << 64) | random->Next(); }

TEST(GeometryTest, PlaceAndRemainderGiveTheValueBack) {
  Random random;
  for (int i = 0; i < 20000; ++i) {
    const int bits = 32 + static_cast<int>(random.Below(97));
    const int depth = static_cast<int>(random.Below(bits < 38 ? 21 : 27));
    const int groups = 1 + static_cast<int>(random.Below(960));
    const Geometry geometry(bits, depth, groups);
    const int unused = 128 - geometry.value_bits();
    const Uint128 edges[] = {0, ~Uint128{0}, Wide(&random), Wide(&random)};
    for (const Uint128 edge : edges) {
      const Uint128 value = edge >> unused << unused;
      const uint32_t home = geometry.HomeOf(value);
      ASSERT_LT(home, static_cast<uint32_t>(groups));
      const Uint128 remainder = geometry.RemainderOf(home, value);
      ASSERT_TRUE(geometry.ValueFrom(home, remainder) == value);
      if (groups == 1) continue;
      // The rest, flag included, fits its width, and the alternate group leads home again.
      ASSERT_TRUE(((remainder >> 8) & geometry.alternate_flag()) == 0);
      ASSERT_TRUE(((remainder >> 8) | geometry.alternate_flag()) >> geometry.rest_bits() == 0);
      const uint32_t alternate = geometry.Alternate(home, remainder);
      ASSERT_NE(alternate, home);
      ASSERT_EQ(geometry.HomeOfAlternate(alternate, remainder), home);
    }
  }
}

TEST(GeometryTest, GroupBordersDoNotLoseValues) {
  for (int groups : {2, 3, 5, 511, 512, 513, 704, 959, 960}) {
    for (int bits : {32, 64, 65, 96, 128}) {
      const Geometry geometry(bits, 0, groups);
      const Uint128 unit = Uint128{1} << (128 - bits);
      for (uint32_t g = 1; g < static_cast<uint32_t>(groups); ++g) {
        // Around the place where g begins.
        const Uint128 border = geometry.ValueFrom(g, 0);
        for (Uint128 value : {border - unit, border, border + unit, border + 2 * unit}) {
          const uint32_t home = geometry.HomeOf(value);
          const Uint128 remainder = geometry.RemainderOf(home, value);
          ASSERT_TRUE(geometry.ValueFrom(home, remainder) == value);
          ASSERT_TRUE((remainder >> 8 | geometry.alternate_flag()) >> geometry.rest_bits() == 0);
        }
      }
    }
  }
}

TEST(GeometryTest, RehomingEqualsPlacingAnew) {
  Random random;
  for (int i = 0; i < 20000; ++i) {
    const int bits = 80 + static_cast<int>(random.Below(48));
    const int depth = static_cast<int>(random.Below(15));
    const Geometry old(bits, depth, 64 + static_cast<int>(random.Below(800)));
    const Geometry fresh(bits, depth, old.groups() + 1 + static_cast<int>(random.Below(100)));
    if (!old.CanRehome()) continue;
    const int unused = 128 - old.value_bits();
    const Uint128 value = Wide(&random) >> unused << unused;
    Uint128 remainder = old.RemainderOf(old.HomeOf(value), value);
    const uint32_t home = fresh.Rehome(old, old.HomeOf(value), &remainder);
    ASSERT_EQ(home, fresh.HomeOf(value));
    ASSERT_TRUE(remainder == fresh.RemainderOf(home, value));
  }
}

class GroupTest : public testing::TestWithParam<int> {};  // bits of a rest

TEST_P(GroupTest, KeepsEntriesMarksAndCountApart) {
  const int rest_bits = GetParam();
  const int slots = Group::SlotsFor(rest_bits);
  const int mark_bytes = Group::MarkBytesFor(slots, rest_bits);
  Random random;
  for (int round = 0; round < 200; ++round) {
    const auto group = std::make_unique<Group>();
    UnpackedGroup unpacked;
    unpacked.count = 0;
    group->Pack(slots, rest_bits, unpacked);
    std::vector<std::pair<uint8_t, Uint128>> model;
    std::vector<bool> marks(256);
    for (int step = 0; step < 60; ++step) {
      const auto tag = static_cast<uint8_t>(random.Below(4) * 63);
      const Uint128 rest = Wide(&random) & LowBits(rest_bits);
      if (random.OneIn(4)) {
        group->Mark(slots, mark_bytes, tag);
        marks[tag] = true;
      } else if (random.OneIn(3) && !model.empty()) {
        const size_t i = random.Below(model.size());
        group->Erase(slots, rest_bits, static_cast<int>(i));
        model[i] = model.back();
        model.pop_back();
      } else if (static_cast<int>(model.size()) < slots) {
        group->Append(slots, rest_bits, tag, rest);
        model.emplace_back(tag, rest);
      }
      ASSERT_EQ(group->count(), static_cast<int>(model.size()));
      for (size_t i = 0; i < model.size(); ++i) {
        ASSERT_EQ(group->tag(slots, static_cast<int>(i)), model[i].first);
        ASSERT_TRUE(group->rest(rest_bits, static_cast<int>(i)) == model[i].second);
        ASSERT_GE(group->Find(slots, rest_bits, model[i].first, model[i].second), 0);
      }
      for (size_t t = 0; t < marks.size(); ++t) {
        const bool marked = group->marked(slots, mark_bytes, static_cast<uint8_t>(t));
        ASSERT_TRUE(marked || !marks[t]);
      }
    }
  }
}

TEST_P(GroupTest, PortableTagSearchAgreesWithTheFastOne) {
  const int rest_bits = GetParam();
  const int slots = Group::SlotsFor(rest_bits);
  Random random;
  for (int round = 0; round < 500; ++round) {
    const auto group = std::make_unique<Group>();
    UnpackedGroup unpacked;
    unpacked.count = 0;
    group->Pack(slots, rest_bits, unpacked);
    const uint64_t used = random.Below(static_cast<uint64_t>(slots) + 1);
    uint32_t expected = 0;
    for (uint64_t i = 0; i < used; ++i) {
      const bool wanted = random.OneIn(2);
      expected |= static_cast<uint32_t>(wanted) << i;
      group->Append(slots, rest_bits, wanted ? 7 : 8, Wide(&random) & LowBits(rest_bits));
    }
    ASSERT_EQ(group->Match(slots, 7), expected);
    ASSERT_EQ(group->MatchPortable(slots, 7), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(RestBits, GroupTest,
                         testing::Values(1, 5, 24, 52, 56, 59, 60, 63, 64, 65, 67, 70, 71, 76, 84,
                                         88, 93, 104, 119, 120));

}  // namespace
}  // namespace firstseen
