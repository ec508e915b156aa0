#include "store/conformance.h"

namespace firstseen {
namespace {

// ---- Remove and settle

TEST_P(StoreConformanceTest, RemoveWithATokenTakesOutOnlyWhatTheTokenOwns) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2023, "张三", kId, "t1"), In(2023, "李四", kId)});
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t2")), kFirst);
  EXPECT_EQ(RemoveOne(In(2023, "李四", kId, "t1")), kFirst);
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kDuplicate);
  EXPECT_EQ(CheckOne(In(2023, "李四", kId)), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t1")), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t1")), kFirst);
  OpenAgain();
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t3")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, RemoveWithoutATokenTakesOutWhoeverOwnsIt) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2023, "张三", kId, "t1"), In(2022, "张三", kId, "t1")});
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId)), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t2")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
}

TEST_P(StoreConformanceTest, SettleCountsTheClaimsOfItsTokensInEveryWindow) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1"), In(2023, "李四", kId, "t2"),
         In(2023, "王五", kId, "t3"), In(2023, "赵六", kId)});
  EXPECT_EQ(Settle({"t1", "t2", "nobody", ""}), 3u);
  EXPECT_EQ(Settle({"t1", "t2"}), 0u) << "they are settled already";
  EXPECT_EQ(Settle({"nobody"}), 0u);
  EXPECT_EQ(Settle({}), 0u);
  // Settled a moment ago: a retry is still known.
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
  EXPECT_EQ(ClaimOne(In(2023, "李四", kId, "t1")).verdict, kDuplicate);
}

// ---- Import

TEST_P(StoreConformanceTest, AnImportRemembersItsPositionAndTotals) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(store().FindImport("kyc", "job/000000_0"), std::nullopt);
  ImportTotals totals = Import(
      "job/000000_0", "100", {In(2023, "张三", kId), In(2023, "李四", kId), In(2023, "张三", kId)});
  EXPECT_EQ(totals.added, 2u);
  EXPECT_EQ(totals.duplicates, 1u);
  Import("job/000000_0", "200", {In(2023, "王五", kId), In(2022, "张三", kId)});
  Import("job/000001_0", "7", {In(2023, "张三", kId)});
  for (int opened = 0; opened < 2; ++opened) {
    const auto state = store().FindImport("kyc", "job/000000_0");
    ASSERT_TRUE(state.has_value());
    EXPECT_EQ(state->position, "200");
    EXPECT_EQ(state->totals.added, 4u);
    EXPECT_EQ(state->totals.duplicates, 1u);
    EXPECT_EQ(state->totals.closed, 0u);
    EXPECT_EQ(store().FindImport("kyc", "job/000001_0")->totals.duplicates, 1u);
    OpenAgain();
  }
  ASSERT_TRUE(store().ForgetImports("kyc", "job/000000").ok());
  EXPECT_EQ(store().FindImport("kyc", "job/000000_0"), std::nullopt);
  EXPECT_TRUE(store().FindImport("kyc", "job/000001_0").has_value());
}

TEST_P(StoreConformanceTest, ImportingAgainAddsNothing) {
  Create("kyc", YearOfNamesAndIds());
  const std::vector<Row> rows = {In(2023, "张三", kId), In(2023, "李四", kId),
                                 In(2022, "张三", kId)};
  EXPECT_EQ(Import("a", "1", rows).added, 3u);
  const ImportTotals again = Import("b", "1", rows);
  EXPECT_EQ(again.added, 0u);
  EXPECT_EQ(again.duplicates, 3u);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, AnImportedTokenMakesItsTransactionARepeat) {
  Create("kyc", YearOfNamesAndIds());
  Import("a", "1", {In(2023, "张三", kId, "serial-1"), In(2023, "张三", kId, "serial-2")});
  OpenAgain();
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "serial-1")).verdict, kRepeat);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "serial-2")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, ImportTellsWhichRowsItLeftOut) {
  Create("kyc", YearOfNamesAndIds());
  std::vector<absl::Status> statuses(5);
  const ImportTotals totals = Import("a", "1",
                                     {In(2023, "张三", kId),
                                      {{"张三"}, "", 2023, ""},
                                      In(1900, "张三", kId),
                                      In(2023, " ", ""),
                                      In(2023, "李四", kId)},
                                     &statuses);
  EXPECT_EQ(totals.added, 2u);
  EXPECT_EQ(totals.duplicates, 0u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(absl::IsInvalidArgument(statuses[i]), i >= 1 && i <= 3) << i << statuses[i];
  }
}

TEST_P(StoreConformanceTest, AnImportOfNoRowsStillMovesThePosition) {
  Create("kyc", YearOfNamesAndIds());
  Import("a", "12", {});
  OpenAgain();
  EXPECT_EQ(store().FindImport("kyc", "a")->position, "12");
}

}  // namespace
}  // namespace firstseen
