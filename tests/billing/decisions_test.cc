// Decision files are read back whole or refused, and a run that cannot read them bills nothing that
// only they can know.
#include "billing/decisions.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

using Serials = std::set<std::string>;

class DecisionsTest : public testing::Test {
 protected:
  absl::StatusOr<FileDigest> Read(std::vector<Decision>* decisions) const {
    return ReadDecisions(FileSystem::Posix(), place_.path() + "/done/a.decisions",
                         [&](int64_t, const Decision& decision) {
                           decisions->push_back(decision);
                           return absl::OkStatus();
                         });
  }
  void WriteTwo() const {
    std::filesystem::create_directories(place_.path() + "/done");
    auto writer = DecisionsWriter::Create(FileSystem::Posix(), place_.path() + "/done/a", 7);
    ASSERT_TRUE(writer.ok()) << writer.status();
    Decision decision;
    decision.line = 2;
    decision.serial = "s1";
    decision.kind = DecisionKind::kBill;
    ASSERT_TRUE((*writer)->Append(decision).ok());
    decision.line = 3;
    decision.serial = "s2";
    ASSERT_TRUE((*writer)->Append(decision).ok());
    ASSERT_TRUE((*writer)->Commit({42, "abc"}).ok());
  }

  BillingPlace place_;
};

TEST_F(DecisionsTest, WhatIsWrittenIsRead) {
  WriteTwo();
  std::vector<Decision> decisions;
  const auto input = Read(&decisions);
  ASSERT_TRUE(input.ok()) << input.status();
  EXPECT_EQ(input->bytes, 42u);
  EXPECT_EQ(input->sha256, "abc");
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[1].serial, "s2");
}

TEST_F(DecisionsTest, EveryFlippedBitAndEveryCutIsRefusedByName) {
  WriteTwo();
  const std::string whole = place_.Read("done/a.decisions");
  std::vector<Decision> decisions;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    for (const std::string& text : {damaged, whole.substr(0, at)}) {
      if (text == whole.substr(0, whole.size() - 1)) continue;  // its last line is whole
      place_.Write("done/a.decisions", text);
      const absl::Status status = Read(&decisions).status();
      ASSERT_TRUE(absl::IsDataLoss(status)) << at << " " << status;
      EXPECT_NE(Message(status).find("done/a.decisions"), std::string_view::npos) << status;
      EXPECT_NE(Message(status).find("restore"), std::string_view::npos) << status;
    }
  }
  place_.Write("done/a.decisions", whole + "more\n");
  EXPECT_TRUE(absl::IsDataLoss(Read(&decisions).status()));
}

TEST_F(DecisionsTest, FilesWithoutDecisionsAreFound) {
  WriteTwo();
  for (const char* name : {"a", "b", "c.tmp", ".d"}) place_.Write(std::string("done/") + name, "");
  const std::vector<std::string> expected = {"a", "e"};
  const auto without =
      FilesWithoutDecisions(FileSystem::Posix(), place_.path() + "/done", expected);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(*without, (std::vector<std::string>{"b", "e"}));
}

// Transactions that the ledger has purged, known by decision files alone.
class ForgottenTest : public testing::Test {
 protected:
  ForgottenTest() : place_({.settings = {"bills.empty_files=false", "ledger.too_old=accept"}}) {
    place_.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1")});
    place_.Run("2024-01-01 10:06:00");
    place_.Deliver("b.txt", {Row("2", "2024-02-20 10:00:00", "2")});
    EXPECT_EQ(place_.Run("2024-02-20 10:06:00").purged_rows, 1u);
  }
  // Retry, reversal and an old row that nobody knows. Returns how many were rejected.
  uint64_t DeliverOldRows() const {
    place_.Deliver("c.txt",
                   {Row("1", "2024-01-01 10:00:00", "1"), Row("3", "2024-01-01 10:00:00", "3"),
                    Row("4", "2024-02-20 10:06:00", "4")});
    place_.Deliver("d.txt", {Row("1", "2024-02-20 10:07:00", "1", "loan", "REVERSED")});
    return place_.Run("2024-02-20 10:11:00").rejected;
  }
  std::string Path(const std::string& name) const { return place_.path() + "/" + name; }

  BillingPlace place_;
};

TEST_F(ForgottenTest, WholeDecisionFilesKnowThem) {
  EXPECT_EQ(DeliverOldRows(), 0u);
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "3", "4"}));
  EXPECT_EQ(place_.Billed(BillKind::kAdjustments), (std::map<std::string, int>{{"1", 1}}));
  EXPECT_EQ(DescribeFindings(place_.Verify()), "");
}

TEST_F(ForgottenTest, WithADamagedDecisionFileNothingOldIsBilledUntilItIsRestored) {
  const std::string whole = place_.Read("done/a.txt.decisions");
  std::string damaged = whole;
  damaged[damaged.find("\t1\tbill") + 1] = '9';
  place_.Write("done/a.txt.decisions", damaged);
  EXPECT_EQ(DeliverOldRows(), 3u);
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "4"}));
  const std::string reasons = place_.Read("failed/c.txt.reasons");
  EXPECT_NE(reasons.find("a.txt.decisions"), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("restore it"), std::string::npos) << reasons;
  EXPECT_TRUE(place_.Billed(BillKind::kAdjustments).empty());

  place_.Write("done/a.txt.decisions", whole);
  for (const char* name : {"c.txt", "d.txt"}) {
    std::filesystem::rename(Path(std::string("failed/") + name),
                            Path(std::string("inbox/") + name));
  }
  EXPECT_EQ(place_.Run("2024-02-20 10:16:00").rejected, 0u);
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "3", "4"}));
  EXPECT_EQ(place_.Billed(BillKind::kAdjustments), (std::map<std::string, int>{{"1", 1}}));
}

TEST_F(ForgottenTest, AMissingDecisionFileIsAsBadAsADamagedOne) {
  std::filesystem::remove(Path("done/a.txt.decisions"));
  EXPECT_EQ(DeliverOldRows(), 3u);
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "4"}));
}

TEST_F(ForgottenTest, SoItIsWhenItsTransactionFileIsGoneToo) {
  std::filesystem::remove(Path("done/a.txt.decisions"));
  std::filesystem::remove(Path("done/a.txt"));
  EXPECT_EQ(DeliverOldRows(), 3u);
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "4"}));
}

}  // namespace
}  // namespace firstseen
