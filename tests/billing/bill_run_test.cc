#include <gtest/gtest.h>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

TEST(BillRunTest, EachMemberIsBilledOnceANaturalYear) {
  BillingPlace place;
  place.Deliver("a.txt", {"1|o1|loan|2023-12-31 23:59:59|1.10|SUCCESS|Li Lei|110101199003070001",
                          "2|o2|wallet|2023-12-31 23:59:59|2.20|SUCCESS|Li Lei |110101199003070001",
                          "3|o3|loan|2024-01-01 00:00:00|3.30|SUCCESS|Li Lei|110101199003070001",
                          "4|o4|free|2024-01-01 00:00:00|4.40|SUCCESS|Li Lei|110101199003070001",
                          "5|o5|free|2024-01-01 00:00:01|5.50|SUCCESS|Li Lei|110101199003070001"});
  const BillRunReport report = place.Run("2024-01-01 00:06:00");
  EXPECT_EQ(report.billable, 4u);
  EXPECT_EQ(report.duplicates, 1u);
  EXPECT_EQ(report.bill_files, 3u);
  EXPECT_EQ(place.BilledOnce(), (std::set<std::string>{"1", "3", "4", "5"}));
  EXPECT_TRUE(place.Exists("done/a.txt"));
  EXPECT_FALSE(place.Exists("inbox/a.txt"));
  EXPECT_EQ(place.Decisions("a.txt")["2"], "duplicate");
}

}  // namespace
}  // namespace firstseen
