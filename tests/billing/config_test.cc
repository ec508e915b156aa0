#include "billing/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/status.h"
#include "support/directory.h"

namespace firstseen {
namespace {

constexpr const char* kMinimal = R"([store]
data = "data"
[[rules]]
app_ids = ["a"]
[[partners]]
name = "p"
app_ids = ["a"]
)";

class ConfigTest : public testing::Test {
 protected:
  absl::StatusOr<BillingConfig> Load(const std::string& text,
                                     const std::vector<std::string>& overrides = {}) {
    const std::string path = directory_.path() + "/firstseen.toml";
    std::ofstream(path) << text;
    return LoadBillingConfig(FileSystem::Posix(), path, overrides);
  }
  // The error's text.
  std::string Error(const std::string& text, const std::vector<std::string>& overrides = {}) {
    const auto config = Load(text, overrides);
    EXPECT_FALSE(config.ok());
    return std::string(Message(config.status()));
  }

  TestDirectory directory_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(ConfigTest, TheExampleIsReadAndSaysTheDefaults) {
  const auto example =
      LoadBillingConfig(FileSystem::Posix(), FIRSTSEEN_SOURCE_DIR "/firstseen.example.toml", {});
  ASSERT_TRUE(example.ok()) << example.status();
  EXPECT_EQ(example->sets.size(), 1u);
  const auto minimal = Load(kMinimal);
  ASSERT_TRUE(minimal.ok()) << minimal.status();
  EXPECT_EQ(example->bills.columns, minimal->bills.columns);
  EXPECT_EQ(example->bills.name, minimal->bills.name);
  EXPECT_EQ(example->bills.adjustments_name, minimal->bills.adjustments_name);
  EXPECT_EQ(example->bills.grace_seconds, minimal->bills.grace_seconds);
  EXPECT_EQ(example->bills.period_minutes, minimal->bills.period_minutes);
  EXPECT_EQ(example->bills.empty_files_max, minimal->bills.empty_files_max);
  EXPECT_EQ(example->bills.keep_days, minimal->bills.keep_days);
  EXPECT_EQ(example->bills.amount_decimals, minimal->bills.amount_decimals);
  EXPECT_EQ(example->inbox.done_keep_days, minimal->inbox.done_keep_days);
  EXPECT_EQ(example->inbox.chunk_rows, minimal->inbox.chunk_rows);
  EXPECT_EQ(example->inbox.poll_ms, minimal->inbox.poll_ms);
  EXPECT_EQ(example->ledger.keep_days, minimal->ledger.keep_days);
  EXPECT_EQ(example->store.owner_bytes_max, minimal->store.owner_bytes_max);
  EXPECT_EQ(example->store.memory_bytes_max, minimal->store.memory_bytes_max);
  EXPECT_EQ(example->verify.memory_bytes, minimal->verify.memory_bytes);
  EXPECT_EQ(example->status.counting, minimal->status.counting);
  EXPECT_EQ(example->status.reversal, minimal->status.reversal);
  EXPECT_EQ(example->status.ignored, minimal->status.ignored);
}

TEST_F(ConfigTest, TheExampleHasEveryKey) {
  std::ifstream file(FIRSTSEEN_SOURCE_DIR "/firstseen.example.toml");
  std::string line;
  std::string section;
  std::vector<std::string> there;
  while (std::getline(file, line)) {
    if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1);
    const size_t equals = line.find(" = ");
    if (!line.starts_with("#") && equals != std::string::npos) {
      there.push_back(section + "." + line.substr(0, equals));
    }
  }
  for (const std::string& key : BillingConfigKeys()) {
    EXPECT_EQ(std::count(there.begin(), there.end(), key), 1) << key;
  }
}

TEST_F(ConfigTest, APipeIsRefusedAndNotWaitedFor) {
  const std::string path = directory_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto config = LoadBillingConfig(FileSystem::Posix(), path, {});
  EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << config.status();
}

TEST_F(ConfigTest, PathsAreRelativeToTheFile) {
  const auto config = Load(kMinimal, {"inbox.done=/var/done"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->store.data, directory_.path() + "/data");
  EXPECT_EQ(config->inbox.done, "/var/done");
  EXPECT_EQ(config->ledger.connection, "sqlite3://" + directory_.path() + "/ledger.db");
}

TEST_F(ConfigTest, AnUnknownKeyIsAnErrorThatNamesLineAndNearestKey) {
  const std::string error = Error(std::string(kMinimal) + "[ledger]\nkeep_day = 3\n");
  EXPECT_HAS(error, "firstseen.toml:9:");
  EXPECT_HAS(error, "keep_days");
  EXPECT_HAS(Error(std::string(kMinimal) + "[legder]\n"), "'ledger'");
  EXPECT_HAS(Error(std::string(kMinimal) + "[[sets]]\nnmae = \"x\"\n"), "'name'");
}

TEST_F(ConfigTest, AMistakeInTheFileNamesItsLine) {
  EXPECT_HAS(Error(std::string(kMinimal) + "[ledger]\nkeep_days = \"3\"\n"),
             ":9: ledger.keep_days");
  EXPECT_HAS(Error(std::string(kMinimal) + "[ledger]\nkeep_days = 0\n"), ":9: ledger.keep_days");
  EXPECT_HAS(Error(std::string(kMinimal) + "[ledger\n"), ":8:");
}

TEST_F(ConfigTest, TheEnvironmentOverridesTheFileAndFlagsTheEnvironment) {
  const std::string text = std::string(kMinimal) + "[ledger]\nkeep_days = 3\n";
  setenv("FIRSTSEEN_LEDGER_KEEP_DAYS", "4", 1);
  EXPECT_EQ(Load(text)->ledger.keep_days, 4);
  EXPECT_EQ(Load(text, {"ledger.keep_days=5"})->ledger.keep_days, 5);
  setenv("FIRSTSEEN_LEDGER_KEEP_DAYS", "four", 1);
  EXPECT_HAS(Error(text), "FIRSTSEEN_LEDGER_KEEP_DAYS");
  unsetenv("FIRSTSEEN_LEDGER_KEEP_DAYS");
  EXPECT_EQ(Load(text, {"bills.empty_files=false"})->bills.empty_files, false);
  EXPECT_EQ(Load(text, {"status.counting=OK,DONE"})->status.counting,
            (std::vector<std::string>{"OK", "DONE"}));
  EXPECT_HAS(Error(text, {"ledger.kep_days=5"}), "ledger.keep_days");
  EXPECT_HAS(Error(text, {"ledger.keep_days"}), "=VALUE");
}

TEST_F(ConfigTest, WhatDoesNotFitTogetherIsRefused) {
  const std::string set =
      "[[sets]]\nname = \"s\"\nwindow = \"year\"\nfields = [\"f\"]\nnormalise = \"opaque\"\n";
  EXPECT_HAS(Error("[[partners]]\nname = \"p\"\napp_ids = [\"a\"]\n"), "store.data");
  EXPECT_HAS(Error("[store]\ndata = \"d\"\n"), "partners");
  EXPECT_HAS(Error(std::string(kMinimal) + "[[partners]]\nname = \"q\"\napp_ids = [\"b\"]\n"),
             "no rule");
  EXPECT_HAS(Error(std::string(kMinimal) + "[[partners]]\nname = \"q\"\napp_ids = [\"a\"]\n"),
             "two partners");
  EXPECT_HAS(Error(std::string(kMinimal) + "[[rules]]\napp_ids = [\"a\"]\n"), "two rules");
  EXPECT_HAS(Error(std::string(kMinimal) + "[[rules]]\napp_ids = [\"b\"]\nset = \"s\"\n"), "'s'");
  EXPECT_HAS(Error("[store]\ndata = \"d\"\n" + set +
                   "[[rules]]\napp_ids = [\"a\"]\nset = \"s\"\nwindow = \"day\"\n"
                   "[[partners]]\nname = \"p\"\napp_ids = [\"a\"]\n"),
             "window");
  EXPECT_HAS(Error(kMinimal, {"bills.period_minutes=7"}), "divide");
  EXPECT_HAS(Error(kMinimal, {"bills.columns=amount"}), "biz_seq_no");
  EXPECT_HAS(Error(kMinimal, {"bills.columns=biz_seq_no,amount,name"}), "ledger.keep_columns");
  EXPECT_HAS(Error(kMinimal, {"bills.name={partner}.txt"}), "{serial}");
  EXPECT_HAS(Error(kMinimal, {"bills.name=../{partner}{period}{serial}"}), "..");
  EXPECT_HAS(Error(kMinimal, {"bills.time_zone=Nowhere/Town"}), "bills.time_zone");
  EXPECT_HAS(Error(kMinimal, {"status.ignored=SUCCESS"}), "SUCCESS");
  EXPECT_HAS(Error(kMinimal, {"inbox.done=inbox"}), "four directories");
  EXPECT_HAS(Error(kMinimal, {"ledger.connection=oracle://x"}), "sqlite3://");
}

}  // namespace
}  // namespace firstseen
