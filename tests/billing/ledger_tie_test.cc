// A ledger that is gone, or not the right one, is refused; nothing is billed again because of it.
#include "billing/ledger_tie.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

using Serials = std::set<std::string>;

class LedgerTieTest : public testing::Test {
 protected:
  LedgerTieTest() : place_({.settings = {"bills.empty_files=false"}}) {
    place_.Deliver("a.txt", {Row("1", "2024-01-01 10:00:00", "1"),
                             Row("2", "2024-01-01 10:01:00", "2", "free")});
    place_.Run("2024-01-01 10:06:00");
  }
  std::string Path(const std::string& name) const { return place_.path() + "/" + name; }
  void RemoveLedger() const {
    for (const char* name : {"ledger.db", "ledger.db-wal", "ledger.db-shm"}) {
      std::filesystem::remove(Path(name));
    }
  }
  absl::Status Run(const std::string& now, bool accept = false) const {
    BillRunOptions options;
    options.accept_ledger = accept;
    return place_.TryRun(now, options).status();
  }
  // The run is refused, with the word of the way out, and changes nothing.
  void ExpectRefused() const {
    place_.Deliver("b.txt", {Row("1", "2024-01-01 10:00:00", "1")});
    for (int attempt = 0; attempt < 2; ++attempt) {
      const absl::Status status = Run("2024-01-01 10:11:00");
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_NE(Message(status).find("backup"), std::string_view::npos) << status;
      EXPECT_NE(Message(status).find("--accept-ledger"), std::string_view::npos) << status;
    }
    EXPECT_TRUE(place_.Exists("inbox/b.txt"));
    EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2"}));
  }

  BillingPlace place_;
};

TEST_F(LedgerTieTest, ALedgerThatIsGoneIsNotBegunAnew) {
  RemoveLedger();
  ExpectRefused();
  EXPECT_FALSE(place_.Exists("ledger.db")) << "a backup must find its place free";
}

TEST_F(LedgerTieTest, AnEmptiedLedgerIsNotBegunAnew) {
  RemoveLedger();
  place_.Write("ledger.db", "");
  ExpectRefused();
}

TEST_F(LedgerTieTest, FilesTellOfTheLedgerWithoutTheDataDirectory) {
  RemoveLedger();
  std::filesystem::remove(Path("data/billing-ledger"));
  ExpectRefused();
}

TEST_F(LedgerTieTest, ALedgerOfAnotherDataDirectoryIsRefused) {
  std::filesystem::remove(Path("data/billing-ledger"));
  ExpectRefused();
  place_.Write("data/billing-ledger", "firstseen-billing-ledger 1\n0123\n");
  ExpectRefused();
  place_.Write("data/billing-ledger", "damaged");
  EXPECT_TRUE(absl::IsDataLoss(Run("2024-01-01 10:11:00")));
}

TEST_F(LedgerTieTest, ARestoredLedgerGoesOn) {
  std::filesystem::create_directories(Path("backup"));
  std::filesystem::copy(Path("ledger.db"), Path("backup/ledger.db"));
  RemoveLedger();
  EXPECT_FALSE(Run("2024-01-01 10:06:00").ok());
  std::filesystem::copy(Path("backup/ledger.db"), Path("ledger.db"));
  EXPECT_TRUE(Run("2024-01-01 10:06:00").ok());
}

TEST_F(LedgerTieTest, ANewLedgerThatWasAskedForGoesOnBehindTheBills) {
  RemoveLedger();
  place_.Deliver(
      "b.txt", {Row("1", "2024-01-01 10:00:00", "1"), Row("2", "2024-01-01 10:01:00", "2", "free"),
                Row("3", "2024-01-01 10:07:00", "3"), Row("4", "2024-01-01 10:08:00", "1")});
  ASSERT_TRUE(Run("2024-01-01 10:11:00", true).ok());
  EXPECT_EQ(place_.BilledOnce(), (Serials{"1", "2", "3"}));
  EXPECT_NE(place_.Read("failed/b.txt").find("\n2|"), std::string::npos) << "it may be billed";
  const VerifyReport report = place_.Verify();
  EXPECT_EQ(DescribeFindings(report), "") << "serials and inbox ids go on";
  EXPECT_TRUE(Run("2024-01-01 10:16:00").ok()) << "from now on it is the ledger";
}

TEST_F(LedgerTieTest, OneThatWasAcceptedIsTheDataDirectorysFromThen) {
  std::filesystem::remove(Path("data/billing-ledger"));
  ASSERT_TRUE(Run("2024-01-01 10:11:00", true).ok());
  EXPECT_TRUE(Run("2024-01-01 10:16:00").ok());
}

TEST_F(LedgerTieTest, SettingsThatTheLedgerRestsOnDoNotChangeUnnoticed) {
  for (const char* setting :
       {"bills.amount_decimals=4", "bills.time_zone=UTC", "bills.period_minutes=15"}) {
    BillingPlace place({.settings = {"bills.empty_files=false"}});
    place.Deliver("a.txt", {Row("1", "2024-01-01T10:10:00+08:00", "1")});
    place.Run("2024-01-01 10:16:00");
    SCOPED_TRACE(setting);
    place.Set(setting);
    const absl::Status status = place.TryRun("2024-01-01 10:46:00").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string_view key =
        std::string_view(setting).substr(0, std::string_view(setting).find('='));
    EXPECT_NE(Message(status).find(key), std::string_view::npos) << status;
    BillRunOptions accept;
    accept.accept_ledger = true;
    EXPECT_TRUE(place.TryRun("2024-01-01 10:46:00", accept).ok());
    EXPECT_TRUE(place.TryRun("2024-01-01 10:46:00").ok());
    EXPECT_TRUE(place.Verify().ok());
  }
}

TEST_F(LedgerTieTest, PeriodsAreCutAnewOnlyWhereBothCutsMeetAndNoneIsOpen) {
  BillRunOptions accept;
  accept.accept_ledger = true;
  // The last period closed ends at 10:05.
  place_.Set("bills.period_minutes=15");
  EXPECT_TRUE(absl::IsInvalidArgument(place_.TryRun("2024-01-01 10:06:00", accept).status()));
  place_.Set("bills.period_minutes=5");
  place_.Run("2024-01-01 10:16:00");
  place_.Deliver("b.txt", {Row("3", "2024-01-01 10:16:00", "3")});
  place_.Run("2024-01-01 10:17:00");
  place_.Set("bills.period_minutes=15");
  EXPECT_TRUE(absl::IsInvalidArgument(place_.TryRun("2024-01-01 10:17:00", accept).status()));
}

TEST(LedgerErrorTest, AFullDiskIsToldWithPathAndRemedy) {
  const TestDirectory directory;
  const std::string connection = "sqlite3://" + directory.path() + "/ledger.db";
  auto ledger = Ledger::Open(FileSystem::Posix(), connection, LedgerOpen::kCreate);
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {512 << 10, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  absl::Status status;
  for (int i = 0; i < 2'000 && status.ok(); ++i) {
    status = (*ledger)->SetNote(fmt::format("note {}", i), std::string(4'000, 'x'));
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(Message(status).find(directory.path() + "/ledger.db"), std::string_view::npos)
      << status;
  EXPECT_NE(Message(status).find("full"), std::string_view::npos) << status;
}

TEST(LedgerErrorTest, WhatIsNoDatabaseIsToldSo) {
  const TestDirectory directory;
  std::ofstream(directory.path() + "/ledger.db") << std::string(8'192, 'x');
  const absl::Status status =
      Ledger::Open(FileSystem::Posix(), "sqlite3://" + directory.path() + "/ledger.db",
                   LedgerOpen::kCreate)
          .status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("backup"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace firstseen
