// Exit statuses of the real commands: 2 for what the caller got wrong, 1 for work that failed.
#ifdef FIRSTSEEN_PROGRAM

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

class BillUsageTest : public testing::Test {
 protected:
  BillUsageTest() {
    place_.Deliver("a.txt", {"1|o1|loan|2024-01-01 10:00:00|1|SUCCESS|Person 1|ID1"});
    EXPECT_EQ(Bill("run --once --now 2024-01-01T10:06:00+08:00"), 0) << Said();
  }
  // Runs `firstseen bill ARGUMENTS` with the place's configuration.
  int Bill(const std::string& arguments) const {
    const std::string command =
        fmt::format("cd {} && {} bill {} >said 2>&1", place_.path(), FIRSTSEEN_PROGRAM, arguments);
    return WEXITSTATUS(std::system(command.c_str()));
  }
  std::string Said() const { return place_.Read("said"); }

  BillingPlace place_;
};

TEST_F(BillUsageTest, MistakesOfOptionsAndConfigurationExitWithTwo) {
  place_.Write("history/a", "Person 9|ID9|2023-01-01\n");
  std::string other = place_.Read("firstseen.toml");
  other.replace(other.find("\"year\""), 6, "\"day\"");
  place_.Write("other.toml", other);
  for (const char* arguments :
       {"run --once --set ledger.kep_days=3", "run --once --config nowhere.toml",
        "run --once --config data", "run --once --config other.toml",
        "run --once --set bills.amount_decimals=3", "run --once --now yesterday",
        "resend --partner acme --period soon", "resend --partner acne --period 202401011000",
        "verify --history history",
        "verify --history history --columns name,id_no,ds --window-of x",
        "verify --history history --columns name,id_no,ds --encoding utf-8,utf-8",
        "verify --transactions-encoding utf-8", "verify --now soon"}) {
    EXPECT_EQ(Bill(arguments), 2) << arguments << "\n" << Said();
  }
}

TEST_F(BillUsageTest, WorkThatFailsExitsWithOne) {
  EXPECT_EQ(Bill("resend --partner acme --period 202401011100"), 1) << Said();
  place_.Write("history/a", "Person 1|ID1|2024-01-01\n");
  const std::string verify =
      "verify --now 2024-01-01T10:06:00+08:00 --history history --columns name,id_no,ds "
      "--time-column ds";
  EXPECT_EQ(Bill(verify), 1);
  EXPECT_NE(Said().find("wrongly_billed"), std::string::npos) << Said();
  place_.Write("history/a", "unreadable\n");
  EXPECT_EQ(Bill(verify), 1);
  EXPECT_NE(Said().find("history/a:1: "), std::string::npos) << Said();
  EXPECT_EQ(Bill(verify + " --history-rejected 1"), 0) << Said();
  std::filesystem::remove(place_.path() + "/ledger.db");
  EXPECT_EQ(Bill("run --once --now 2024-01-01T10:11:00+08:00"), 1);
  EXPECT_EQ(Bill("resend --partner acme --period 202401011000"), 1);
  EXPECT_NE(Said().find("no ledger there"), std::string::npos) << Said();
}

TEST_F(BillUsageTest, AnInboxOpenToEverybodyIsWarnedOf) {
  namespace fs = std::filesystem;
  fs::permissions(place_.path() + "/inbox", fs::perms::owner_all);
  EXPECT_EQ(Bill("run --once --now 2024-01-01T10:06:00+08:00"), 0);
  EXPECT_EQ(Said().find("chmod 0700"), std::string::npos) << Said();
  fs::permissions(place_.path() + "/inbox", fs::perms::owner_all | fs::perms::others_read);
  EXPECT_EQ(Bill("run --once --now 2024-01-01T10:06:00+08:00"), 0);
  EXPECT_NE(Said().find("inbox holds personal data"), std::string::npos) << Said();
}

}  // namespace
}  // namespace firstseen

#endif  // FIRSTSEEN_PROGRAM
