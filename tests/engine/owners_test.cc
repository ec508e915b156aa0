#include "engine/owners.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"
#include "support/random.h"

namespace firstseen {
namespace {

std::vector<uint64_t> Unsettled(const OwnerTable& table, uint64_t owner) {
  std::vector<uint64_t> found;
  for (const auto& claim : table.SelectUnsettled({&owner, 1}))
    found.push_back(claim.fingerprint.hi);
  std::sort(found.begin(), found.end());
  return found;
}

TEST(OwnerTableTest, RandomOperationsAreThoseOfAMap) {
  Random random;
  std::atomic<uint64_t> total = 0;
  {
    OwnerTable table(&total);
    struct Expected {
      uint64_t owner;
      int64_t settled;
    };
    std::map<uint64_t, Expected> expected;
    for (int step = 0; step < 60'000; ++step) {
      const uint64_t n = random.Below(2000);
      const uint64_t owner = 1 + random.Below(50);
      const auto it = expected.find(n);
      switch (random.Below(6)) {
        case 0:
        case 1:
          table.Put({.fingerprint = Print(n), .owner = owner, .sequence = n});
          expected[n] = {owner, Ownership::kUnsettled};
          break;
        case 2:
          EXPECT_EQ(table.Erase(Print(n)), expected.erase(n) == 1);
          break;
        case 3: {
          const bool can = it != expected.end() && it->second.owner == owner &&
                           it->second.settled == Ownership::kUnsettled;
          EXPECT_EQ(table.Settle(Print(n), owner, step), can);
          if (can) it->second.settled = step;
          break;
        }
        case 4: {
          const auto found = table.Find(Print(n));
          ASSERT_EQ(found.has_value(), it != expected.end());
          if (!found.has_value()) break;
          EXPECT_EQ(found->owner, it->second.owner);
          EXPECT_EQ(found->settled_open_ms, it->second.settled);
          EXPECT_EQ(found->sequence, n);
          break;
        }
        default: {
          std::vector<uint64_t> unsettled;
          for (const auto& [member, one] : expected) {
            if (one.owner == owner && one.settled == Ownership::kUnsettled) {
              unsettled.push_back(Print(member).hi);
            }
          }
          std::sort(unsettled.begin(), unsettled.end());
          if (random.OneIn(20)) {
            EXPECT_EQ(Unsettled(table, owner), unsettled);
          }
          break;
        }
      }
      if (random.OneIn(5000)) {
        const uint64_t gone = std::erase_if(expected, [&](const auto& one) {
          return one.second.settled != Ownership::kUnsettled && one.second.settled <= step - 1000;
        });
        EXPECT_EQ(table.Expire(step - 1000), gone);
      }
      ASSERT_EQ(table.size(), expected.size());
    }
    EXPECT_EQ(total.load(), table.bytes());
  }
  EXPECT_EQ(total.load(), 0u);
}

TEST(OwnerTableTest, CostsAtMost90BytesAnOwnerAndGivesThemBack) {
  std::atomic<uint64_t> total = 0;
  OwnerTable table(&total);
  for (uint64_t n = 0; n < 200'000; ++n) {
    table.Put({.fingerprint = Print(n), .owner = n + 1, .sequence = n});
  }
  EXPECT_EQ(table.size(), 200'000u);
  EXPECT_LT(table.bytes(), 200'000u * 90);
  for (uint64_t n = 0; n < 200'000; ++n) {
    ASSERT_EQ(table.Find(Print(n))->owner, n + 1);
  }
  for (uint64_t n = 0; n < 199'900; ++n) {
    ASSERT_TRUE(table.Settle(Print(n), n + 1, 5));
  }
  EXPECT_EQ(table.Expire(4), 0u);
  EXPECT_EQ(table.Expire(5), 199'900u);
  EXPECT_LT(table.bytes(), 200'000u);
  EXPECT_EQ(table.Find(Print(199'950))->owner, 199'951u);
}

TEST(OwnerTableTest, ASmallTableIsSmall) {
  std::atomic<uint64_t> total = 0;
  OwnerTable table(&total);
  table.Put({.fingerprint = Print(1), .owner = 1, .sequence = 1});
  EXPECT_LT(total.load(), 600u);
}

TEST(OwnerTableTest, OneOwnerOfManyMembersIsSettledAndExpiredInLinearTime) {
  std::atomic<uint64_t> total = 0;
  OwnerTable table(&total);
  constexpr uint64_t kMembers = 100'000;
  for (uint64_t n = 0; n < kMembers; ++n) {
    table.Put({.fingerprint = Print(n), .owner = 7, .sequence = n});
  }
  const uint64_t owner = 7;
  const auto unsettled = table.SelectUnsettled({&owner, 1});
  EXPECT_EQ(unsettled.size(), kMembers);
  for (const auto& claim : unsettled) {
    ASSERT_TRUE(table.Settle(claim.fingerprint, 7, 1));
  }
  EXPECT_TRUE(table.SelectUnsettled({&owner, 1}).empty());
  EXPECT_EQ(table.Expire(1), kMembers);
}

TEST(OwnerTableTest, HasRoomSaysNoBeforeTheLimitIsPassed) {
  std::atomic<uint64_t> total = 0;
  OwnerTable table(&total);
  constexpr uint64_t kMax = 20'000;
  uint64_t n = 0;
  while (table.HasRoom(Print(n), kMax)) {
    table.Put({.fingerprint = Print(n), .owner = n + 1, .sequence = n});
    ASSERT_LE(total.load(), kMax);
    ++n;
  }
  EXPECT_GT(n, 100u);
}

TEST(OwnerTableTest, ThreadsMayWorkWhileTheTableIsSplit) {
  std::atomic<uint64_t> total = 0;
  OwnerTable table(&total);
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 15'000;  // more than kStripeAt together
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t n = t * kEach; n < (t + 1) * kEach; ++n) {
        table.Put({.fingerprint = Print(n), .owner = n + 1, .sequence = n});
        ASSERT_EQ(table.Find(Print(n))->owner, n + 1);
        if (n % 3 == 0) {
          ASSERT_TRUE(table.Settle(Print(n), n + 1, 1));
        }
        if (n % 7 == 0) {
          ASSERT_TRUE(table.Erase(Print(n)));
        }
      }
    });
  }
  std::vector<Ownership> copied;
  size_t stripes = 1;
  for (size_t i = 0; i < stripes; ++i) stripes = table.CopyStripe(i, &copied);
  for (std::thread& thread : threads) thread.join();
  uint64_t expected = 0;
  for (uint64_t n = 0; n < kThreads * kEach; ++n) {
    expected += n % 7 != 0;
    ASSERT_EQ(table.Find(Print(n)).has_value(), n % 7 != 0);
  }
  EXPECT_EQ(table.size(), expected);
  copied.clear();
  stripes = 1;
  for (size_t i = 0; i < stripes; ++i) stripes = table.CopyStripe(i, &copied);
  EXPECT_EQ(stripes, OwnerTable::kStripes);
  EXPECT_EQ(copied.size(), expected);
  EXPECT_EQ(total.load(), table.bytes());
}

}  // namespace
}  // namespace firstseen
