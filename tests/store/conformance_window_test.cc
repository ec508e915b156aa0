#include <gmock/gmock.h>

#include <utility>

#include "store/conformance.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- Windows

TEST_P(StoreConformanceTest, TheLastMillisecondOfAYearAndTheFirstOfTheNextAreTwoWindows) {
  Create("kyc", YearOfNamesAndIds());
  const auto results = Claim({At("2023-12-31T23:59:59.999+08:00", "张三", kId, "t1"),
                              At("2024-01-01T00:00:00+08:00", "张三", kId, "t2"),
                              At("2023-12-31T23:59:59.999+08:00", "张三", kId, "t3"),
                              At("2023-01-01T00:00:00+08:00", "张三", kId, "t4"),
                              At("2022-12-31T16:00:00Z", "张三", kId, "t5"),
                              At("2022-12-31T15:59:59.999Z", "张三", kId, "t6"),
                              At("2024-01-01 00:00:00", "张三", kId, "t7")});
  EXPECT_THAT(Verdicts(results),
              ElementsAre(kFirst, kFirst, kDuplicate, kDuplicate, kDuplicate, kFirst, kDuplicate));
  std::vector<WindowId> windows;
  for (const MemberResult& result : results) windows.push_back(result.window);
  EXPECT_THAT(windows, ElementsAre(2023, 2024, 2023, 2023, 2023, 2022, 2024));
}

TEST_P(StoreConformanceTest, TheSetsOwnZoneDecides) {
  SetOptions options = YearOfNamesAndIds();
  options.time_zone = "America/New_York";
  Create("kyc", options);
  EXPECT_EQ(ClaimOne(At("2024-01-01T04:59:59Z", "张三", kId)).window, 2023);
  EXPECT_EQ(ClaimOne(At("2024-01-01T05:00:00Z", "张三", kId)).window, 2024);
}

TEST_P(StoreConformanceTest, MonthsDaysAndNoWindowsWork) {
  SetOptions options = YearOfNamesAndIds();
  const auto windows = [&](WindowKind kind, std::string_view set) {
    options.window = kind;
    Create(set, options);
    const auto results = Run(
        &Store::Claim, set,
        {At("2023-11-30T23:59:59+08:00", "张三", kId), At("2023-12-01T00:00:00+08:00", "张三", kId),
         At("2023-12-31T00:00:00+08:00", "张三", kId)});
    std::vector<std::pair<WindowId, Verdict>> pairs;
    for (const MemberResult& r : results) pairs.emplace_back(r.window, r.verdict);
    return pairs;
  };
  using Pairs = std::vector<std::pair<WindowId, Verdict>>;
  EXPECT_EQ(windows(WindowKind::kMonth, "month"),
            (Pairs{{202311, kFirst}, {202312, kFirst}, {202312, kDuplicate}}));
  EXPECT_EQ(windows(WindowKind::kDay, "day"),
            (Pairs{{20231130, kFirst}, {20231201, kFirst}, {20231231, kFirst}}));
  EXPECT_EQ(windows(WindowKind::kNone, "none"),
            (Pairs{{0, kFirst}, {0, kDuplicate}, {0, kDuplicate}}));
}

TEST_P(StoreConformanceTest, TheSameTokenInAnotherWindowIsANewClaim) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_THAT(Verdicts(Claim({In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1"),
                              In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1")})),
              ElementsAre(kFirst, kFirst, kRepeat, kRepeat));
}

TEST_P(StoreConformanceTest, WindowsTooFarInTheFutureAreRefusedForClaimsAndImports) {
  SetOptions options = YearOfNamesAndIds();
  options.window = WindowKind::kDay;
  Create("kyc", options);
  // The clock stands at 2024-01-01T08:00+08:00: windows that begin until the 3rd 08:00 are open.
  const auto results = Claim(
      {At("2024-01-03T23:00:00+08:00", "张三", kId), At("2024-01-04T00:00:00+08:00", "张三", kId),
       In(20240104, "张三", kId), In(22030101, "张三", kId), At("2023-12-31", "张三", kId)});
  EXPECT_TRUE(results[0].status.ok()) << results[0].status;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(results[i].status)) << i;
    EXPECT_THAT(std::string(Message(results[i].status)), HasSubstr("too far in the future"));
  }
  EXPECT_TRUE(results[4].status.ok()) << results[4].status;
  EXPECT_EQ(CheckOne(In(20240104, "张三", kId)), kFirst);
  std::vector<absl::Status> statuses(2);
  const ImportTotals totals =
      Import("f", "1", {In(20240103, "李四", kId), In(20240104, "李四", kId)}, &statuses);
  EXPECT_EQ(totals.added, 1u);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(absl::IsInvalidArgument(statuses[1]));

  clock_.Set(clock_.Now() + absl::Hours(24));
  EXPECT_EQ(ClaimOne(In(20240104, "张三", kId)).verdict, kFirst);
}

TEST_P(StoreConformanceTest, WindowsThatTheSetCannotHaveAreRefused) {
  Create("kyc", YearOfNamesAndIds());
  for (const WindowId window : {0, 1969, 3000, 202312, 20231231, -1, -2023}) {
    for (const Method method : {&Store::Claim, &Store::Check, &Store::Remove}) {
      const MemberResult result = Run(method, "kyc", {In(window, "张三", kId)})[0];
      EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << window << " " << result.status;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(store().Drop("kyc", window))) << window;
    EXPECT_TRUE(absl::IsInvalidArgument(store().Reopen("kyc", window))) << window;
  }
  const std::string_view fields[] = {"张三", kId};
  for (const absl::Time time :
       {absl::FromUnixSeconds(-100'000), absl::InfinitePast(), absl::InfiniteFuture()}) {
    const MemberRequest request{fields, time, std::nullopt, ""};
    MemberResult result;
    ASSERT_TRUE(store().Claim("kyc", {&request, 1}, {&result, 1}).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << time;
    ASSERT_TRUE(store().Check("kyc", {&request, 1}, {&result, 1}).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << time;
  }
  EXPECT_TRUE(store().SetStats("kyc")->windows.empty());
}

TEST_P(StoreConformanceTest, ADroppedWindowIsClosedUntilItIsReopenedAndThenEmpty) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kFirst);
  ASSERT_TRUE(store().Drop("kyc", 2022).ok());
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kClosed);
    EXPECT_EQ(ClaimOne(In(2022, "李四", kId, "t2")).verdict, kClosed);
    EXPECT_EQ(CheckOne(In(2022, "张三", kId)), kClosed);
    EXPECT_EQ(RemoveOne(In(2022, "张三", kId)), kClosed);
    EXPECT_EQ(Import("f", "1", {In(2022, "王五", kId)}).closed, 1u);
    EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kRepeat);
    OpenAgain();
  }
  ASSERT_TRUE(store().Reopen("kyc", 2022).ok());
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kFirst);
  OpenAgain();
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
}

}  // namespace
}  // namespace firstseen
