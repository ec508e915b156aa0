// `bill verify` says yes to a right bill, and names what was planted in a wrong one.
#include "billing/verify.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

// A year's end with everything in it: duplicates, history, two windows, a reversal before and one
// after the bill file, a retry, a late, a failed and a bad row, an app without set.
class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    place_.Write("history/000000_0", "Person h|IDh|2023-06-01\nPerson i|IDi|2023-06-01\nbad\n");
    place_.WithStore([](Store* store) {
      const std::string_view fields[2][2] = {{"Person h", "IDh"}, {"Person i", "IDi"}};
      ImportRow rows[2];
      rows[0].fields = fields[0];
      rows[1].fields = fields[1];
      rows[0].window = rows[1].window = 2023;
      absl::Status statuses[2];
      EXPECT_TRUE(
          store->Import("kyc", "history", "end", rows, ImportOwners::kUnsettled, statuses).ok());
      EXPECT_TRUE(store->ImportSync().ok());
    });
    place_.Deliver(
        "1.txt",
        {Row("a1", "2023-12-31 23:50:00", "a"), Row("a2", "2023-12-31 23:51:00", "a", "wallet"),
         Row("h1", "2023-12-31 23:51:00", "h"), Row("h2", "2024-01-01 00:00:00", "h"),
         Row("r1", "2023-12-31 23:51:00", "r"),
         Row("r1", "2023-12-31 23:52:00", "r", "loan", "REVERSED"),
         Row("r2", "2023-12-31 23:53:00", "r"),
         Row("f1", "2023-12-31 23:53:00", "f", "loan", "FAILED"),
         Row("f2", "2023-12-31 23:53:30", "f"), Row("n1", "2023-12-31 23:53:00", "a", "free"),
         Row("n2", "2023-12-31 23:53:00", "a", "free"), "bad row"});
    place_.Run("2024-01-01 00:01:00");
    place_.Deliver("2.txt",
                   {Row("a1", "2023-12-31 23:50:00", "a"), Row("l1", "2023-12-31 23:54:00", "l"),
                    Row("a3", "2024-01-01 00:01:00", "a"),
                    Row("r2", "2024-01-01 00:02:00", "r", "loan", "REVERSED")});
    place_.Run("2024-01-01 00:11:00");
    place_.Deliver("3.txt", {Row("p1", "2024-01-01 00:20:00", "p")});
    place_.Run("2024-01-01 00:21:00");
  }

  // The history has one bad row, which `import` would have rejected too.
  VerifyOptions Options() const {
    VerifyOptions options = place_.HistoryOptions({place_.path() + "/history"});
    options.history_rejected_max = 1;
    return options;
  }
  VerifyReport Verify() const { return Verify(Options()); }
  VerifyReport Verify(const VerifyOptions& options) const {
    const auto report = VerifyBills(place_.Config(), options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : VerifyReport();
  }

  // Replaces text in a file, once.
  void Replace(const std::string& name, const std::string& from, const std::string& to) {
    std::string text = place_.Read(name);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << name;
    place_.Write(name, text.replace(at, from.size(), to));
  }
  // The bill file with the serial in it, as a path below the place.
  std::string FileWith(const std::string& serial, BillKind kind = BillKind::kBill) {
    for (const std::string& path : place_.Files(kind)) {
      for (const std::string& there : place_.Serials(path)) {
        if (there == serial) return path.substr(place_.path().size() + 1);
      }
    }
    ADD_FAILURE() << serial;
    return {};
  }
  // The line of a serial with the '\n' before it.
  std::string Line(const std::string& name, const std::string& serial) {
    const std::string text = place_.Read(name);
    const size_t begin = text.find("\n" + serial + "|");
    return text.substr(begin, text.find('\n', begin + 1) - begin);
  }
  // Makes marker and hash fit what is in the file now: a forger's work.
  void Reseal(const std::string& name) {
    Sha256 sha256;
    sha256.Add(place_.Read(name));
    place_.Write(name + ".sha256", Sha256Line(name, sha256.Finish()));
  }

  BillingPlace place_;
};

using List = std::vector<std::string>;

TEST_F(VerifyTest, ARightBillIsFoundRight) {
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  EXPECT_EQ(report.billed, 8u);     // a1 h2 r2 f2 n1 n2 l1 a3
  EXPECT_EQ(report.duplicate, 2u);  // a2 h1
  EXPECT_EQ(report.pending, 1u);    // p1
  EXPECT_EQ(report.released, 1u);   // r1
  EXPECT_EQ(report.adjusted, 1u);   // r2
  EXPECT_EQ(report.adjustments_pending, 0u);
  EXPECT_EQ(report.rejected, 1u);
  EXPECT_EQ(report.history_rows, 3u);
  EXPECT_EQ(report.history_rejected, 1u);
  EXPECT_TRUE(std::filesystem::is_empty(place_.path() + "/verify.tmp"));
}

TEST_F(VerifyTest, ItNeedsNeitherLedgerNorStore) {
  std::filesystem::remove_all(place_.path() + "/data");
  for (const char* name : {"ledger.db", "ledger.db-wal", "ledger.db-shm"}) {
    std::filesystem::remove(place_.path() + "/" + name);
  }
  EXPECT_TRUE(Verify().ok());
}

TEST_F(VerifyTest, AnExportOfTheTransactionsServesAsWell) {
  std::filesystem::create_directories(place_.path() + "/export");
  for (const char* name : {"1.txt", "2.txt", "3.txt"}) {
    std::filesystem::rename(place_.path() + "/done/" + name, place_.path() + "/export/" + name);
  }
  Replace("export/1.txt", "bad row\n", "");
  VerifyOptions options = Options();
  options.transactions = {place_.path() + "/export"};
  const VerifyReport report = Verify(options);
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  EXPECT_EQ(report.billed, 8u);
}

TEST_F(VerifyTest, AnExportMayLookOtherwiseThanTheInbox) {
  std::string rows = place_.Read("done/1.txt") +
                     place_.Read("done/2.txt").substr(kInboxHeader.size() + 1) +
                     place_.Read("done/3.txt").substr(kInboxHeader.size() + 1);
  rows.erase(rows.find("bad row\n"), 8);
  std::replace(rows.begin(), rows.end(), '|', '\t');
  place_.Write("export/all.txt", rows);
  VerifyOptions options = Options();
  options.transactions = {place_.path() + "/export"};
  EXPECT_FALSE(Verify(options).ok()) << "it was read in the inbox's format";
  options.transactions_delimiter = '\t';
  const VerifyReport report = Verify(options);
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  // The name of one person in GBK: no UTF-8.
  Replace("export/all.txt", "Person l", "\xd5\xc5");
  EXPECT_EQ(Verify(options).unreadable.count, 1u);
  options.transactions_encoding = TextEncoding::kGb18030;
  EXPECT_EQ(Verify(options).unreadable.count, 0u);
}

TEST_F(VerifyTest, ARowOfAnExportThatCannotBeReadIsListedWithItsLine) {
  place_.Write("export/1.txt", place_.Read("done/1.txt"));
  VerifyOptions options = Options();
  options.transactions = {place_.path() + "/export"};
  const VerifyReport report = Verify(options);
  EXPECT_FALSE(report.ok());
  ASSERT_EQ(report.unreadable.count, 1u);
  EXPECT_NE(report.unreadable.listed[0].find("export/1.txt:13: "), std::string::npos)
      << report.unreadable.listed[0];
}

TEST_F(VerifyTest, HistoryRowsThatCannotBeReadDoNotPassUnlessTheImportRejectedThemToo) {
  VerifyOptions options = Options();
  options.history_rejected_max = 0;
  const VerifyReport report = Verify(options);
  EXPECT_FALSE(report.ok());
  ASSERT_EQ(report.history_unreadable.count, 1u);
  EXPECT_EQ(report.history_unreadable.listed[0],
            place_.path() + "/history/000000_0:3: the row has 1 field instead of 3");
  place_.Write("history/000001_0", "\xd5\xc5|IDl|2023-02-01\n");
  EXPECT_FALSE(Verify().ok());
}

TEST_F(VerifyTest, AHistoryFileThatCannotBeReadDoesNotPass) {
  place_.Write("history/000001_0.gz", "this is not gzip");
  const VerifyReport report = Verify();
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.unreadable.count, 1u);
}

TEST_F(VerifyTest, EachHistoryMayHaveItsOwnEncoding) {
  place_.Write("gap/000000_0", "\xd5\xc5|IDz|2023-02-01\n");
  VerifyOptions options = Options();
  options.history.push_back(place_.path() + "/gap");
  EXPECT_FALSE(Verify(options).ok());
  options.history_encodings = {TextEncoding::kUtf8, TextEncoding::kGb18030};
  EXPECT_TRUE(Verify(options).ok());
}

TEST_F(VerifyTest, APeriodThatIsOverMustHaveItsFile) {
  EXPECT_TRUE(Verify().ok()) << "p1 waits for the end of its period";
  VerifyOptions options = Options();
  options.now = *ParseEventTime("2024-01-01 00:35:59", place_.Config().zone);
  EXPECT_TRUE(Verify(options).ok()) << "a run may be writing it";
  options.now = *ParseEventTime("2024-01-01 00:36:00", place_.Config().zone);
  EXPECT_EQ(Verify(options).missing.listed, List{"p1"});
}

TEST_F(VerifyTest, ABitFlippedAnywhereIsSeen) {
  std::vector<std::string> names = {"done/1.txt", "done/1.txt.decisions", "done/2.txt",
                                    "done/2.txt.decisions"};
  const std::string bill = FileWith("a1");
  for (const char* suffix : {"", ".ok", ".sha256"}) names.push_back(bill + suffix);
  size_t bit = 0;
  for (const std::string& name : names) {
    const std::string whole = place_.Read(name);
    const size_t step = std::max<size_t>(1, whole.size() / 12);
    for (size_t at = whole.size() - 1; at < whole.size(); at -= step) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (bit++ % 8)));
      place_.Write(name, flipped);
      EXPECT_FALSE(Verify().ok()) << name << " byte " << at;
    }
    place_.Write(name, whole);
  }
  EXPECT_TRUE(Verify().ok());
}

TEST_F(VerifyTest, FilesThatAreGoneAreSeenEvenTwoByTwo) {
  const std::string done = place_.path() + "/done/";
  std::filesystem::rename(done + "2.txt.decisions", place_.path() + "/kept.decisions");
  EXPECT_EQ(Verify().bad_files.count, 1u);
  std::filesystem::rename(done + "2.txt", place_.path() + "/kept");
  EXPECT_EQ(Verify().bad_files.count, 1u) << "the ledger knows that it was taken";
  std::filesystem::rename(place_.path() + "/kept.decisions", done + "2.txt.decisions");
  EXPECT_EQ(Verify().bad_files.count, 1u);
  std::filesystem::rename(place_.path() + "/kept", done + "2.txt");
  std::filesystem::remove(place_.path() + "/" + FileWith("a1"));
  EXPECT_GE(Verify().bad_files.count, 2u) << "marker and hash without their file";
}

TEST_F(VerifyTest, ASerialCannotWriteToTheTerminal) {
  Replace("done/2.txt.decisions", "\tl1\t",
          "\tl\x1b[2J\x7f\xc2\x9b"
          "1\t");
  place_.ResealDecisions("2.txt");
  EXPECT_EQ(Verify().unknown.listed, List{"l\\x1b[2J\\x7f\xc2\\x9b"
                                          "1"});
}

TEST_F(VerifyTest, SmallMemoryGivesTheSameAnswer) {
  std::string rows;
  for (int i = 0; i < 60'000; ++i) rows += fmt::format("Person {0}|ID{0}|2023-01-01\n", i % 50'000);
  place_.Write("history/000001_0", rows);
  const VerifyReport large = Verify();
  place_.Set("verify.memory_bytes=1048576");
  const VerifyReport small = Verify();
  EXPECT_TRUE(small.ok());
  EXPECT_EQ(small.billed, large.billed);
  EXPECT_EQ(small.history_rows, 60'003u);
}

TEST_F(VerifyTest, HistoryThatForbidsABilledRowIsSeen) {
  place_.Write("history/000001_0", "Person l|IDl|2023-02-01\n");
  const VerifyReport report = Verify();
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.wrongly_billed.listed, List{"l1"});
}

TEST_F(VerifyTest, ADuplicateWithoutItsFirstIsWronglyDropped) {
  place_.Write("history/000000_0", "Person i|IDi|2023-06-01\n");
  EXPECT_EQ(Verify().wrongly_dropped.listed, List{"h1"});
}

TEST_F(VerifyTest, ADroppedLineIsMissing) {
  const std::string file = FileWith("n2");
  Replace(file, Line(file, "n2"), "");
  Replace(file, "T|2|2.00", "T|1|1.00");
  Reseal(file);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.missing.listed, List{"n2"});
  EXPECT_EQ(report.bad_files.count, 0u);
}

TEST_F(VerifyTest, ARowBilledTwiceIsSeen) {
  const std::string file = FileWith("l1");
  const std::string line = "a1|oa1|loan|2023-12-31T23:50:00.000+08:00|1.00|SUCCESS\n";
  Replace(file, "l1|", line + "l1|");
  Replace(file, "T|3|3.00", "T|4|4.00");
  Reseal(file);
  EXPECT_EQ(Verify().billed_twice.listed, List{"a1"});
}

TEST_F(VerifyTest, AnOriginThatWasChangedIsSeen) {
  // The duplicate is billed, the first is not.
  Replace("done/1.txt.decisions", "\ta1\tbill\t0\t", "\ta1\tduplicate\t5\t");
  Replace("done/1.txt.decisions", "\ta2\tduplicate\t5\t", "\ta2\tbill\t0\t");
  place_.ResealDecisions("1.txt");
  const std::string file = FileWith("a1");
  Replace(file, "\na1|oa1|loan|2023-12-31T23:50", "\na2|oa2|wallet|2023-12-31T23:51");
  Reseal(file);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.wrongly_dropped.listed, List{"a1"});
  EXPECT_EQ(report.wrongly_billed.listed, List{"a2"});
}

TEST_F(VerifyTest, AClaimSequenceThatSaysOtherwiseIsSeen) {
  const std::string decisions = place_.Read("done/1.txt.decisions");
  const size_t line = decisions.find("\ta2\tduplicate\t5\tduplicate\t") + 26;
  const size_t end = decisions.find('\t', line);
  place_.Write("done/1.txt.decisions", decisions.substr(0, line) + "1" + decisions.substr(end));
  place_.ResealDecisions("1.txt");
  EXPECT_EQ(Verify().wrongly_billed.listed, List{"a1"});
}

TEST_F(VerifyTest, TamperedFilesAreSeen) {
  const std::string trailer = FileWith("a1");
  const std::string content = FileWith("n1");
  const std::string marker = FileWith("a3");
  Replace(trailer, "\nT|3|3.00", "\nT|3|3.01");
  Reseal(trailer);
  Replace(content, "SUCCESS", "SUCCES5");
  std::filesystem::remove(place_.path() + "/" + marker + ".ok");
  EXPECT_EQ(Verify().bad_files.count, 3u);
}

TEST_F(VerifyTest, AnAmountThatWasChangedIsSeen) {
  const std::string file = FileWith("l1");
  Replace(file, "|1.00|", "|9.00|");  // of l1, the first row
  Replace(file, "T|3|3.00", "T|3|11.00");
  Reseal(file);
  EXPECT_EQ(Verify().altered.listed, List{"l1"});
}

TEST_F(VerifyTest, ALastFileThatIsGoneIsNotTakenForAnOpenPeriod) {
  const std::string file = FileWith("a3");
  for (const std::string& path : place_.Files(BillKind::kBill, "acme")) {
    if (path.substr(place_.path().size() + 1) >= file) {
      for (const char* suffix : {"", ".ok", ".sha256"}) std::filesystem::remove(path + suffix);
    }
  }
  EXPECT_FALSE(Verify().ok());
}

TEST_F(VerifyTest, AnAdjustmentThatIsGoneOrUnaskedIsSeen) {
  const std::string file = FileWith("r2", BillKind::kAdjustments);
  Replace(file, "\nr2|or2|", "\na3|oa3|");
  Reseal(file);
  const VerifyReport report = Verify();
  EXPECT_EQ(report.adjustment_faults.listed, List{"a3"});
  EXPECT_EQ(report.adjustments_pending, 1u);
}

TEST_F(VerifyTest, ATransactionNobodyDecidedIsSeen) {
  Replace("done/2.txt", "l1|", "x1|");
  place_.ResealDecisions("2.txt");
  const VerifyReport report = Verify();
  EXPECT_EQ(report.undecided.listed, List{"x1"});
  EXPECT_EQ(report.unknown.listed, List{"l1"});
}

TEST_F(VerifyTest, ACutDecisionFileIsSeen) {
  const std::string text = place_.Read("done/2.txt.decisions");
  place_.Write("done/2.txt.decisions", text.substr(0, text.find("\nend\t") + 1));
  EXPECT_EQ(Verify().bad_files.count, 1u);
}

TEST(VerifyPurgedTest, ALedgerThatWasPurgedManyTimesMakesNoDifference) {
  BillingPlace place({.settings = {"bills.empty_files=false"}});
  uint64_t purged = 0;
  for (int month = 1; month <= 12; ++month) {
    place.Deliver(
        fmt::format("{:02}.txt", month),
        {Row(fmt::format("a{}", month), fmt::format("2023-{:02}-01 10:00:00", month), "a"),
         Row(fmt::format("b{}", month), fmt::format("2023-{:02}-01 10:00:00", month),
             fmt::format("b{}", month))});
    purged += place.Run(fmt::format("2023-{:02}-01 10:06:00", month)).purged_rows;
  }
  EXPECT_EQ(purged, 22u);
  const VerifyReport report = place.Verify();
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  EXPECT_EQ(report.billed, 13u);
  EXPECT_EQ(report.duplicate, 11u);
}

}  // namespace
}  // namespace firstseen
