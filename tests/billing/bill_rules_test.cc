// Rules: which transactions count, closed windows, reversals.
#include <gtest/gtest.h>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

using Serials = std::set<std::string>;

TEST(StatusTest, AFailedTransactionDoesNotUseUpTheYearsBill) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1", "loan", "FAILED"),
                          Row("2", "2024-01-01 10:01:00", "1")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").not_counting, 1u);
  EXPECT_EQ(place.BilledOnce(), Serials{"2"});
}

TEST(StatusTest, ATransactionThatSucceedsAfterAllIsBilled) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1", "loan", "FAILED")});
  place.Run("2024-01-01 10:01:00");
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:02:00", "1"),
                          Row("1", "2024-01-01 10:00:00", "1", "loan", "FAILED")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(StatusTest, WithoutAListOfIgnoredOnesAnyOtherStatusIsIgnored) {
  BillingPlace place({.settings = {"status.ignored="}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1", "loan", "WHATEVER")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").not_counting, 1u);
}

TEST(ReversalTest, BeforeTheBillFileItReleasesTheClaim) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"),
                          Row("1", "2024-01-01 10:01:00", "1", "loan", "REVERSED"),
                          Row("2", "2024-01-01 10:02:00"), Row("3", "2024-01-01 10:02:00", "3")});
  place.Deliver("b.txt", {Row("3", "2024-01-01 10:03:00", "3", "loan", "REVERSED"),
                          Row("4", "2024-01-01 10:03:00", "3")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").released, 2u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"2", "4"}));
  EXPECT_EQ(place.Decisions("b.txt")["3"], "release");
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(ReversalTest, OfADuplicateItReleasesNothing) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:01:00"),
                          Row("2", "2024-01-01 10:01:00", "1", "loan", "REVERSED"),
                          Row("3", "2024-01-01 10:02:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(ReversalTest, AfterTheBillFileItIsListedInAnAdjustmentsFileOnce) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:00:00", "2"),
                          Row("3", "2024-01-01 10:00:00", "3", "free")});
  place.Run("2024-01-01 10:06:00");
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:07:00", "1", "loan", "REVERSED"),
                          Row("1", "2024-01-01 10:07:00", "1", "loan", "REVERSED"),
                          Row("3", "2024-01-01 10:08:00", "3", "free", "REVERSED"),
                          Row("4", "2024-01-01 10:08:00", "1")});
  EXPECT_EQ(place.Run("2024-01-01 10:11:00").adjusted, 2u);
  place.Deliver("c.txt", {Row("1", "2024-01-01 10:07:00", "1", "loan", "REVERSED")});
  place.Run("2024-01-01 10:16:00");
  const auto files = place.Files(BillKind::kAdjustments);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(place.Read(files[0].substr(place.path().size() + 1)),
            "H|adjustments|acme|2024-01-01T10:05:00.000+08:00|2024-01-01T10:10:00.000+08:00|4|0\n"
            "biz_seq_no|order_no|app_id|event_time|amount|status|reversal_time|billed_serial\n"
            "1|o1|loan|2024-01-01T10:00:00.000+08:00|1.00|REVERSED|"
            "2024-01-01T10:07:00.000+08:00|1\n"
            "T|1|1.00\n");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2", "3"})) << "the member stays used up";
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(ReversalTest, OfATransactionPurgedLongAgoItIsAnAdjustmentStill) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  place.Deliver("b.txt", {Row("3", "2024-02-01 10:00:00", "3")});
  EXPECT_EQ(place.Run("2024-02-01 10:06:00").purged_rows, 2u);
  place.Deliver("c.txt", {Row("1", "2024-02-01 10:06:00", "1", "loan", "REVERSED"),
                          Row("2", "2024-02-01 10:06:00", "1", "loan", "REVERSED"),
                          Row("4", "2024-02-01 10:06:00", "4")});
  EXPECT_EQ(place.Run("2024-02-01 10:11:00").adjusted, 1u);
  EXPECT_EQ(place.Billed(BillKind::kAdjustments), (std::map<std::string, int>{{"1", 1}}));
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(ReversalTest, BeforeItsTransactionItKeepsThatOutOfTheBill) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1", "loan", "REVERSED")});
  place.Run("2024-01-01 10:01:00");
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:01:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"2"});
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(ReversalTest, WithAnotherMemberItIsAConflict) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"),
                          Row("1", "2024-01-01 10:01:00", "2", "loan", "REVERSED")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 1u);
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
}

class ClosedWindowTest : public testing::Test {
 protected:
  static void Drop(const BillingPlace& place) {
    place.WithStore([](Store* store) { EXPECT_TRUE(store->Drop("kyc", 2023).ok()); });
  }
  static std::vector<std::string> Rows() {
    return {Row("1", "2023-12-31 23:51:00"), Row("2", "2023-12-31 23:52:00"),
            Row("3", "2024-01-01 00:00:00")};
  }
};

TEST_F(ClosedWindowTest, HoldWaitsUntilTheWindowIsReopened) {
  BillingPlace place;
  place.Deliver("0.txt", {Row("0", "2023-12-31 23:50:00", "0")});
  place.Run("2023-12-31 23:51:00");
  Drop(place);
  place.Deliver("a.txt", Rows());
  EXPECT_EQ(place.Run("2024-01-01 00:06:00").held, 2u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"0", "3"}));
  EXPECT_EQ(place.Verify().held, 2u);
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
  place.Run("2024-02-01 00:06:00");  // nothing is purged that waits
  place.WithStore([](Store* store) { EXPECT_TRUE(store->Reopen("kyc", 2023).ok()); });
  place.Run("2024-02-01 00:11:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"0", "1", "3"}));
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST_F(ClosedWindowTest, AHeldTransactionCanBeReversed) {
  BillingPlace place;
  place.Deliver("0.txt", {Row("0", "2023-12-31 23:50:00", "0")});
  place.Run("2023-12-31 23:51:00");
  Drop(place);
  place.Deliver("a.txt", {Row("1", "2023-12-31 23:51:00")});
  place.Run("2024-01-01 00:06:00");
  place.Deliver("b.txt", {Row("1", "2024-01-01 00:07:00", "1", "loan", "REVERSED")});
  place.Run("2024-01-01 00:11:00");
  place.WithStore([](Store* store) { EXPECT_TRUE(store->Reopen("kyc", 2023).ok()); });
  place.Run("2024-01-01 00:16:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"0"});
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST_F(ClosedWindowTest, DefaultTakesItAsSeenBefore) {
  BillingPlace place({.closed_window = "default"});
  place.Deliver("0.txt", {Row("0", "2023-12-31 23:50:00", "0")});
  place.Run("2023-12-31 23:51:00");
  Drop(place);
  place.Deliver("a.txt", Rows());
  EXPECT_EQ(place.Run("2024-01-01 00:06:00").duplicates, 2u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"0", "3"}));
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST_F(ClosedWindowTest, BillBillsIt) {
  BillingPlace place({.closed_window = "bill"});
  place.Deliver("0.txt", {Row("0", "2023-12-31 23:50:00", "0")});
  place.Run("2023-12-31 23:51:00");
  Drop(place);
  place.Deliver("a.txt", Rows());
  place.Run("2024-01-01 00:06:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"0", "1", "2", "3"}));
  const VerifyReport report = place.Verify();
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  EXPECT_EQ(report.closed_window, 2u);
}

TEST(TokenTest, ATransactionThatWasImportedWithItsSerialIsNotItsOwnDuplicate) {
  BillingPlace place;
  place.WithStore([](Store* store) {
    const std::string_view fields[] = {"Person 1", "ID1"};
    ImportRow row;
    row.fields = fields;
    row.window = 2024;
    row.token = "1";
    absl::Status status;
    EXPECT_TRUE(
        store->Import("kyc", "gap", "end", {&row, 1}, ImportOwners::kUnsettled, {&status, 1}).ok());
    EXPECT_TRUE(store->ImportSync().ok());
  });
  place.Deliver("a.txt", {Row("2", "2024-01-01 10:00:00"), Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
  place.Write("gap/000000_0", "Person 1|ID1|2024-01-01|1\n");
  VerifyOptions options;
  options.history = {place.path() + "/gap"};
  options.history_mapping.columns = {"name", "id_no", "ds", "biz_seq_no"};
  options.history_mapping.format.delimiter = '|';
  options.history_mapping.time_column = "ds";
  options.history_mapping.token_column = "biz_seq_no";
  const auto report = VerifyBills(place.Config(), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ok());
}

}  // namespace
}  // namespace firstseen
