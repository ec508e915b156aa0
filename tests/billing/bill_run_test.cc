// Taking files and writing bill files: section by section what a partner and an operator see.
#include "billing/bill_run.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "billing/billing_place.h"
#include "billing/ledger.h"

namespace firstseen {
namespace {

using Serials = std::set<std::string>;

absl::StatusOr<ResendReport> Resend(const BillingConfig& config, const std::string& partner,
                                    const std::string& period) {
  ResendOptions options;
  options.partner = partner;
  options.period = period;
  return ResendBill(config, options);
}

TEST(BillRunTest, EachMemberIsBilledOnceANaturalYear) {
  BillingPlace place;
  place.Deliver("a.txt", {"1|o1|loan|2023-12-31 23:59:59|1.10|SUCCESS|Li Lei|11010119900307000x",
                          "2|o2|wallet|2023-12-31 23:59:59|2.20|SUCCESS|Li Lei |11010119900307000X",
                          "3|o3|loan|2024-01-01 00:00:00|3.30|SUCCESS|Li Lei|11010119900307000X",
                          "4|o4|free|2024-01-01 00:00:00|4.40|SUCCESS|Li Lei|11010119900307000X",
                          "5|o5|free|2024-01-01 00:00:01|5.50|SUCCESS|Li Lei|11010119900307000X"});
  const BillRunReport report = place.Run("2024-01-01 00:06:00");
  EXPECT_EQ(report.billable, 4u);
  EXPECT_EQ(report.duplicates, 1u);
  EXPECT_EQ(report.bill_files, 3u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "3", "4", "5"}));
  EXPECT_TRUE(place.Exists("done/a.txt"));
  EXPECT_FALSE(place.Exists("inbox/a.txt"));
  EXPECT_EQ(place.Decisions("a.txt")["2"], "duplicate");
}

TEST(BillRunTest, ABillFileHasHeaderRowsInTimeOrderTrailerSha256AndMarker) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("9", "2024-01-01 10:04:59", "1", "loan", "SUCCESS", "0.10"),
                          Row("8", "2024-01-01 10:00:00", "2", "loan", "SUCCESS", "0.2"),
                          Row("7", "2024-01-01 10:02:00", "3", "wallet", "SUCCESS", "30")});
  place.Run("2024-01-01 10:06:00");
  const std::string name = "bills/acme/2024-01-01/bill_acme_202401011000_0000000001.txt";
  EXPECT_EQ(place.Read(name),
            "H|bill|acme|2024-01-01T10:00:00.000+08:00|2024-01-01T10:05:00.000+08:00|1|0\n"
            "biz_seq_no|order_no|app_id|event_time|amount|status\n"
            "8|o8|loan|2024-01-01T10:00:00.000+08:00|0.20|SUCCESS\n"
            "7|o7|wallet|2024-01-01T10:02:00.000+08:00|30.00|SUCCESS\n"
            "9|o9|loan|2024-01-01T10:04:59.000+08:00|0.10|SUCCESS\n"
            "T|3|30.30\n");
  EXPECT_TRUE(place.Exists(name + ".ok"));
  Sha256 sha256;
  sha256.Add(place.Read(name));
  EXPECT_EQ(place.Read(name + ".sha256"),
            sha256.Finish() + "  bill_acme_202401011000_0000000001.txt\n");
  EXPECT_EQ(std::filesystem::status(place.path() + "/" + name).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(BillRunTest, DelimiterColumnsAndNameAreAsConfigured) {
  BillingPlace place(
      {.settings = {"bills.delimiter=tab", "bills.columns=amount,biz_seq_no,name",
                    "ledger.keep_columns=name", "bills.name={period}/{partner}-{serial}.tsv.txt"}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.Read("bills/202401011000/acme-0000000001.tsv.txt"),
            "H\tbill\tacme\t2024-01-01T10:00:00.000+08:00\t2024-01-01T10:05:00.000+08:00\t1\t0\n"
            "amount\tbiz_seq_no\tname\n1.00\t1\tPerson 1\nT\t1\t1.00\n");
}

TEST(BillRunTest, AmountsOfManyDigitsAreAddedExactly) {
  BillingPlace place({.settings = {"bills.amount_decimals=4"}});
  place.Deliver("a.txt",
                {Row("1", "2024-01-01 10:00:00", "1", "loan", "SUCCESS", "123456789012345678.0001"),
                 Row("2", "2024-01-01 10:00:00", "2", "loan", "SUCCESS", "0.0002"),
                 Row("3", "2024-01-01 10:00:00", "3", "loan", "SUCCESS", "-0.1")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_NE(place.Read("bills/acme/2024-01-01/bill_acme_202401011000_0000000001.txt")
                .find("T|3|123456789012345677.9003\n"),
            std::string::npos);
}

TEST(BillRunTest, PeriodsCloseAfterTheirGraceAndNotBefore) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:05:59");
  EXPECT_TRUE(place.Files(BillKind::kBill).empty());
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
}

TEST(BillRunTest, EmptyPeriodsGetAFileWithZeroRows) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:15:00", "2")});
  const BillRunReport report = place.Run("2024-01-01 10:21:00");
  EXPECT_EQ(report.bill_files, 4u);
  EXPECT_EQ(report.empty_bill_files, 2u);
  EXPECT_EQ(place.Files(BillKind::kBill, "acme").size(), 4u);
  EXPECT_TRUE(place.Files(BillKind::kBill, "beta").empty()) << "beta has not begun";
}

TEST(BillRunTest, EmptyFilesCanBeSwitchedOff) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:15:00", "2")});
  EXPECT_EQ(place.Run("2024-01-01 10:21:00").bill_files, 2u);
}

TEST(BillRunTest, AFirstPeriodGivesEveryPartnerFilesFromThen) {
  BillingPlace place({.settings = {"bills.first_period=2024-01-01 09:50:00"}});
  EXPECT_EQ(place.Run("2024-01-01 10:01:00").bill_files, 4u);
  // A transaction of before goes to the first file there is.
  place.Deliver("a.txt", {Row("1", "2024-01-01 09:40:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
}

TEST(BillRunTest, ALongSilenceGetsNoFlowOfEmptyFiles) {
  BillingPlace place({.settings = {"bills.empty_files_max=10"}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-02 10:00:00", "2")});
  const BillRunReport report = place.Run("2024-01-02 10:06:00");
  EXPECT_EQ(report.bill_files, 2u);
  EXPECT_EQ(report.empty_periods_left_out, 287u);
}

TEST(BillRunTest, ALateTransactionGoesIntoTheNextFile) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  place.Deliver("b.txt",
                {Row("2", "2024-01-01 10:01:00", "2"), Row("3", "2024-01-01 10:07:00", "3")});
  EXPECT_EQ(place.Run("2024-01-01 10:11:00").late, 1u);
  const std::vector<std::string> files = place.Files(BillKind::kBill);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(place.Serials(files[1]), (std::vector<std::string>{"2", "3"}));
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2", "3"}));
}

TEST(BillRunTest, ATransactionOlderThanTheLedgerGoesToFailed) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  place.Deliver("a.txt", {Row("1", "2024-01-20 10:00:00")});
  place.Run("2024-01-20 10:06:00");
  place.Deliver("b.txt",
                {Row("2", "2024-01-10 10:04:59", "2"), Row("3", "2024-01-10 10:05:00", "3")});
  EXPECT_EQ(place.Run("2024-01-20 10:20:00").rejected, 1u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "3"}));
  EXPECT_NE(place.Read("failed/b.txt").find("\n2|o2|"), std::string::npos);
  EXPECT_NE(place.Read("failed/b.txt.reasons").find("ledger.keep_days"), std::string::npos);
}

TEST(BillRunTest, TooOldTransactionsCanBeAllowedAndAreStillBilledOnce) {
  BillingPlace place({.settings = {"bills.empty_files=false", "ledger.too_old=accept"}});
  place.Deliver("a.txt",
                {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:00:00", "2", "free")});
  place.Run("2024-01-01 10:06:00");
  place.Deliver("b.txt", {Row("3", "2024-01-20 10:00:00", "3")});
  EXPECT_EQ(place.Run("2024-01-20 10:06:00").purged_rows, 2u);
  place.Deliver("c.txt",
                {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:00:00", "2", "free"),
                 Row("4", "2024-01-01 10:00:00", "4"), Row("5", "2024-01-01 10:00:00", "1")});
  place.Run("2024-01-20 10:20:00");
  place.Deliver("d.txt", {Row("6", "2024-01-20 10:21:00", "6")});
  place.Run("2024-01-20 10:40:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2", "3", "4", "6"}));
}

TEST(BillRunTest, ADeliveryAgainAfterThePurgeIsNotBilledAgain) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  const std::vector<std::string> rows = {Row("1", "2024-01-01 10:00:00"),
                                         Row("2", "2024-01-01 10:00:00", "1", "free")};
  place.Deliver("a.txt", rows);
  place.Run("2024-01-01 10:06:00");
  place.Deliver("b.txt", {Row("3", "2024-01-20 10:00:00", "3")});
  EXPECT_EQ(place.Run("2024-01-20 10:06:00").purged_rows, 2u);
  place.Deliver("a.txt", rows);
  EXPECT_EQ(place.Run("2024-01-20 10:40:00").rejected, 2u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2", "3"}));
}

TEST(BillRunTest, TheLedgerKeepsWhatIsNotInABillFileYet) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  place.Deliver("a.txt", {Row("1", "2024-01-20 10:00:00"), Row("2", "2024-01-20 10:00:00")});
  place.Run("2024-01-20 10:06:00");
  place.Deliver("b.txt", {Row("3", "2024-01-12 10:00:00", "3")});
  place.Run("2024-01-20 10:07:00");  // late: waits for the next file
  place.Deliver("c.txt", {Row("4", "2024-02-20 10:00:00", "4", "free")});
  place.Run("2024-02-20 10:06:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "3", "4"}));
}

TEST(BillRunTest, ARetryOfTheSameSerialKeepsItsResult) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("1", "2024-01-01 10:00:00"),
                          Row("2", "2024-01-01 10:01:00"), Row("2", "2024-01-01 10:01:00")});
  EXPECT_EQ(place.Run("2024-01-01 10:02:00").again, 2u);
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:01:00")});
  place.Run("2024-01-01 10:06:00");
  place.Deliver("c.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:01:00")});
  place.Run("2024-01-01 10:11:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
  EXPECT_EQ(place.Decisions("c.txt")["1"], "bill");
  EXPECT_EQ(place.Decisions("c.txt")["2"], "duplicate");
}

TEST(BillRunTest, ASerialWithOtherContentIsAConflict) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:00:00", "2")});
  place.Run("2024-01-01 10:01:00");
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:00:00", "1", "loan", "SUCCESS", "2.00"),
                          Row("2", "2024-01-01 10:00:00", "3")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 2u);
  EXPECT_NE(place.Read("failed/b.txt.reasons").find("conflict"), std::string::npos);
  EXPECT_EQ(place.Read("failed/b.txt.reasons").find("Person"), std::string::npos);
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2"}));
}

TEST(BillRunTest, ABadRowIsSetAsideAndTheOthersGoOn) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), "2|o2|loan|not a time|1.00|SUCCESS|N|I",
                          "too|few", Row("4", "2024-01-01 10:00:00", "4", "unknown app"),
                          Row("5", "2024-01-01 10:00:00", "5", "loan", "SUCCESS", "1.005"),
                          Row("6", "2024-01-01 10:00:00", "6", "loan", "SUCESS"),
                          Row("7", "2024-01-01 10:00:00", "7")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 5u);
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "7"}));
  const std::string reasons = place.Read("failed/a.txt.reasons");
  EXPECT_NE(reasons.find("/done/a.txt\t3\tevent_time\t"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("/done/a.txt\t6\tamount\t"), std::string::npos) << reasons;
  // Mended, under the same name, it is taken like any other file.
  place.Deliver("a.txt", {Row("2", "2024-01-01 10:00:00", "2")});
  place.Run("2024-01-01 10:11:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2", "7"}));
  EXPECT_TRUE(place.Exists("failed/a.txt"));
}

TEST(BillRunTest, AnUnreadableFileGoesToFailedAsAWhole) {
  BillingPlace place;
  place.Write("inbox/a.txt", "no|header|of|ours\n1|2|3|4\n");
  place.Write("inbox/b.txt.gz", "this is not gzip");
  place.Write("inbox/c.txt", "");
  place.Deliver("d.txt", {Row("1", "2024-01-01 10:00:00")});
  const BillRunReport report = place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(report.files_failed, 3u);
  EXPECT_EQ(report.files_done, 1u);
  for (const char* name : {"a.txt", "b.txt.gz", "c.txt"}) {
    EXPECT_TRUE(place.Exists(std::string("failed/") + name));
    EXPECT_TRUE(place.Exists(std::string("failed/") + name + ".reasons"));
    EXPECT_FALSE(place.Exists(std::string("inbox/") + name));
  }
}

TEST(BillRunTest, ReasonsLookLikeThoseOfAnImport) {
  BillingPlace place;
  place.Deliver("a.txt", {"2|o2|loan|not a time|1.00|SUCCESS|N|I", "too|few"});
  place.Run("2024-01-01 10:06:00");
  std::istringstream lines(place.Read("failed/a.txt.reasons"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "file\tline\tfield\treason\tremedy");
  for (int rows = 0; rows < 2; ++rows) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 4) << line;
    EXPECT_FALSE(line.ends_with('\t')) << line;
  }
}

TEST(BillRunTest, AnEventFarInTheFutureIsABadRowWithAndWithoutSet) {
  BillingPlace place;
  place.Deliver(
      "a.txt",
      {Row("1", "2024-01-03 10:06:00"), Row("2", "2024-01-03 10:06:00", "2", "free"),
       Row("3", "2024-01-03 10:06:01", "3"), Row("4", "2203-01-01 00:00:00", "4", "free")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 2u);
  EXPECT_NE(place.Read("failed/a.txt.reasons").find("\t5\tevent_time\t"), std::string::npos);
  place.Run("2024-01-03 10:11:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2"}));
}

TEST(BillRunTest, AFieldThatIsEmptyOnceNormalisedIsABadRow) {
  BillingPlace place;
  place.Deliver(
      "a.txt",
      {"1|o|loan|2024-01-01 10:00:00|1|SUCCESS| |ID1", "2|o|loan|2024-01-01 10:00:00|1|SUCCESS|N|",
       "3|o|loan|2024-01-01 10:00:00|1|FAILED||ID3", Row("4", "2024-01-01 10:00:00")});
  const BillRunReport report = place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(report.rejected, 2u);
  EXPECT_EQ(report.not_counting, 1u) << "a failed transaction needs no member";
  EXPECT_EQ(place.BilledOnce(), Serials{"4"});
}

TEST(BillRunTest, AFileThatGrowsWhileItIsTakenIsTakenAgainFromItsFirstRow) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  const std::string more = place.Read("inbox/a.txt") + Row("2", "2024-01-01 10:00:00", "2") + "\n";
  BillRunOptions options;
  options.step_hook = [&](std::string_view step) {
    if (step == "settle") place.Write("inbox/a.txt", more);
    return absl::OkStatus();
  };
  const auto report = place.TryRun("2024-01-01 10:06:00", options);
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2"}));
  EXPECT_TRUE(place.Verify().ok());
}

TEST(BillRunTest, ACompressedFileIsTakenAndItsBadRowsAreMendablePlainText) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), "bad"});
  ASSERT_EQ(std::system(("gzip " + place.path() + "/inbox/a.txt").c_str()), 0);
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 1u);
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
  EXPECT_TRUE(place.Exists("done/a.txt.gz"));
  EXPECT_EQ(place.Read("failed/a.txt"), std::string(kInboxHeader) + "\nbad\n");
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
}

TEST(BillRunTest, FilesThatAreNotReadyAreLeftAlone) {
  BillingPlace place;
  place.Deliver("a.txt.tmp", {Row("1", "2024-01-01 10:00:00")});
  place.Deliver(".b.txt", {Row("2", "2024-01-01 10:00:00")});
  place.Deliver("folder/c.txt", {Row("3", "2024-01-01 10:00:00")});
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").files_done, 0u);
  EXPECT_TRUE(place.Exists("inbox/a.txt.tmp"));
}

TEST(BillRunTest, NdjsonKeepsEveryDigit) {
  BillingPlace place;
  place.Write("inbox/a.ndjson",
              R"({"biz_seq_no":"1","order_no":12345678901234567,"app_id":"loan",)"
              R"("event_time":1704074400000,"amount":123456789012345678.90,"status":"SUCCESS",)"
              R"("name":"Li Lei","id_no":"X1","other":{"nested":[1,2]}})"
              "\n"
              R"({"biz_seq_no":"2","broken)"
              "\n");
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 1u);
  EXPECT_NE(place.Read("bills/acme/2024-01-01/bill_acme_202401011000_0000000001.txt")
                .find("1|12345678901234567|loan|2024-01-01T10:00:00.000+08:00|"
                      "123456789012345678.90|SUCCESS\n"),
            std::string::npos);
  EXPECT_EQ(place.Read("failed/a.ndjson"), "{\"biz_seq_no\":\"2\",\"broken\n");
}

TEST(BillRunTest, AValueThatWouldBreakABillLineIsABadRow) {
  BillingPlace place;
  place.Write("inbox/a.ndjson",
              R"({"biz_seq_no":"1","order_no":"a|b","app_id":"loan","event_time":1704074400000,)"
              R"("amount":1,"status":"SUCCESS","name":"N","id_no":"1"})"
              "\n"
              R"({"biz_seq_no":"2\n","order_no":"c","app_id":"loan","event_time":1704074400000,)"
              R"("amount":1,"status":"SUCCESS","name":"N","id_no":"1"})"
              "\n");
  EXPECT_EQ(place.Run("2024-01-01 10:06:00").rejected, 2u);
}

TEST(BillRunTest, ResendWritesTheRowsUnderANewSerial) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00"), Row("2", "2024-01-01 10:01:00", "2")});
  place.Run("2024-01-01 10:06:00");
  const BillingConfig config = place.Config();
  const auto resent = Resend(config, "acme", "202401011000");
  ASSERT_TRUE(resent.ok()) << resent.status();
  EXPECT_EQ(resent->rows, 2u);
  EXPECT_EQ(resent->total, "2.00");
  EXPECT_NE(resent->serial, resent->original_serial);
  const std::vector<std::string> files = place.Files(BillKind::kResend);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], resent->file);
  EXPECT_EQ(place.Serials(files[0]), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(DescribeFindings(place.Verify()), "");
  EXPECT_TRUE(absl::IsNotFound(Resend(config, "acme", "2024-01-01 11:00:00").status()));
}

TEST(BillRunTest, ResendOfAnUnknownPartnerOrPeriodSaysWhatThereIs) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  const absl::Status partner = Resend(place.Config(), "acne", "202401011000").status();
  EXPECT_TRUE(absl::IsInvalidArgument(partner));
  EXPECT_NE(Message(partner).find("acme, beta"), std::string_view::npos) << partner;
  const absl::Status period = Resend(place.Config(), "acme", "soon").status();
  EXPECT_TRUE(absl::IsInvalidArgument(period));
  EXPECT_NE(Message(period).find("yyyyMMddHHmm"), std::string_view::npos) << period;
}

TEST(BillRunTest, DoneAndBillsHaveTheirOwnRetention) {
  BillingPlace place(
      {.settings = {"bills.empty_files=false", "inbox.done_keep_days=30", "bills.keep_days=60"}});
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  place.Run("2024-01-31 10:06:00");
  EXPECT_TRUE(place.Exists("done/a.txt"));
  place.Run("2024-01-31 10:06:01");
  EXPECT_FALSE(place.Exists("done/a.txt"));
  EXPECT_FALSE(place.Exists("done/a.txt.decisions"));
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
  place.Run("2024-03-02 10:06:01");
  EXPECT_TRUE(place.Files(BillKind::kBill).empty());
}

TEST(BillRunTest, AFileForAPeriodLongPastIsKeptFromTheDayItWasWritten) {
  BillingPlace place({.settings = {"bills.empty_files=false", "bills.keep_days=60"}});
  place.Deliver("a.txt", {Row("1", "2023-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
  place.Run("2024-03-01 10:05:59");
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
  place.Run("2024-03-01 10:06:01");
  EXPECT_TRUE(place.Files(BillKind::kBill).empty());
}

TEST(BillRunTest, WhatIsNoRegularFileIsLeftAloneAndDisturbsNothing) {
  BillingPlace place;
  place.Deliver("b.txt", {Row("1", "2024-01-01 10:00:00")});
  const std::string inbox = place.path() + "/inbox";
  ASSERT_EQ(::mkfifo((inbox + "/a.pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("nowhere", (inbox + "/a.link").c_str()), 0);
  ASSERT_EQ(::mkdir((inbox + "/a.directory").c_str(), 0700), 0);
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.Files(BillKind::kBill).size(), 1u);
  EXPECT_TRUE(place.Exists("done/b.txt"));
}

TEST(BillRunTest, AMemberInAnotherEncodingIsABadRow) {
  BillingPlace place;
  place.Deliver("a.txt",
                {Row("1", "2024-01-01 10:00:00", "\xd5\xc5"), Row("2", "2024-01-01 10:00:00")});
  place.Run("2024-01-01 10:06:00");
  ASSERT_EQ(place.Files(BillKind::kBill).size(), 1u);
  EXPECT_EQ(place.Serials(place.Files(BillKind::kBill)[0]), (std::vector<std::string>{"2"}));
  EXPECT_NE(place.Read("failed/a.txt.reasons").find("not valid UTF-8"), std::string::npos);
}

TEST(BillRunTest, PersonalDataIsInTheLedgerOnlyAsConfigured) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "Secret")});
  place.Run("2024-01-01 10:06:00");
  std::string bytes =
      place.Read("ledger.db") + place.Read("ledger.db-wal") + place.Read("done/a.txt.decisions");
  EXPECT_EQ(bytes.find("Secret"), std::string::npos);
  place.Set("ledger.keep_columns=name");
  place.Deliver("b.txt", {Row("2", "2024-01-01 10:07:00", "Kept")});
  place.Run("2024-01-01 10:11:00");
  bytes = place.Read("ledger.db") + place.Read("ledger.db-wal");
  EXPECT_NE(bytes.find("Person Kept"), std::string::npos);
  EXPECT_EQ(bytes.find("IDKept"), std::string::npos);
}

TEST(BillRunTest, ASecondInstanceOnTheSameDataIsRefused) {
  BillingPlace place;
  place.WithStore([&](Store*) {
    const auto report = place.TryRun("2024-01-01 10:06:00");
    EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  });
}

TEST(BillRunTest, ASetThatIsMissingOrDiffersIsRefused) {
  BillingPlace place;
  place.Write("other.toml", R"(
[store]
data = "data"
[[sets]]
name = "kyc"
window = "month"
fields = ["name", "id_no"]
normalise = "opaque"
[[rules]]
app_ids = ["loan"]
set = "kyc"
[[partners]]
name = "acme"
app_ids = ["loan"]
)");
  const auto config = LoadBillingConfig(FileSystem::Posix(), place.path() + "/other.toml", {});
  ASSERT_TRUE(config.ok()) << config.status();
  BillRunOptions options;
  options.once = true;
  const auto report = RunBilling(*config, options);
  EXPECT_TRUE(absl::IsInvalidArgument(report.status()));
  EXPECT_NE(Message(report.status()).find("window"), std::string_view::npos) << report.status();
}

TEST(BillRunTest, StopFinishesTheFileInHandAndLeavesTheRest) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  place.Deliver("b.txt", {Row("2", "2024-01-01 10:00:00", "2")});
  std::atomic<bool> stop = false;
  BillRunOptions options;
  options.stop = &stop;
  options.step_hook = [&](std::string_view step) {
    if (step == "claim") stop = true;
    return absl::OkStatus();
  };
  const auto report = place.TryRun("2024-01-01 10:06:00", options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->files_done, 1u);
  EXPECT_TRUE(place.Exists("inbox/b.txt"));
  EXPECT_TRUE(place.Files(BillKind::kBill).empty()) << "a period must not close before its files";
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2"}));
}

TEST(BillRunTest, PeriodsAreCutByTheClockOfTheConfiguredZone) {
  BillingPlace place({.settings = {"bills.time_zone=America/New_York"}});
  place.Deliver("a.txt",
                {Row("1", "2024-01-01T10:00:00+08:00"), Row("2", "2023-12-31 21:01:00", "2")});
  place.Run("2023-12-31 21:06:00");
  EXPECT_TRUE(place.Exists("bills/acme/2023-12-31/bill_acme_202312312100_0000000001.txt"));
  EXPECT_EQ(place.BilledOnce(), (Serials{"1", "2"}));
}

TEST(BillRunTest, AFileTakenInPartThatIsGoneStopsTheRun) {
  BillingPlace place;
  place.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00")});
  BillRunOptions options;
  options.step_hook = [](std::string_view step) {
    return step == "record" ? Unavailable("stopped here") : absl::OkStatus();
  };
  EXPECT_FALSE(place.TryRun("2024-01-01 10:06:00", options).ok());
  std::filesystem::rename(place.path() + "/inbox/a.txt", place.path() + "/a.txt");
  const auto report = place.TryRun("2024-01-01 10:06:00");
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  std::filesystem::rename(place.path() + "/a.txt", place.path() + "/inbox/a.txt");
  place.Run("2024-01-01 10:06:00");
  EXPECT_EQ(place.BilledOnce(), Serials{"1"});
}

}  // namespace
}  // namespace firstseen
