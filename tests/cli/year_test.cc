// A whole small year through the real program: the bill must be the generator's truth, and
// verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cli/cli_fixture.h"

namespace firstseen {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class YearTest : public CliTest {
 protected:
  void Generate(uint64_t rows, uint64_t transactions, const std::string& encoding) {
    const char* given = std::getenv("FIRSTSEEN_SEED");
    const std::string seed = given != nullptr ? given : std::to_string(std::random_device()());
    std::printf("FIRSTSEEN_SEED=%s\n", seed.c_str());
    random_.seed(std::strtoull(seed.c_str(), nullptr, 10));
    encoding_ = encoding;
    const Ran ran = RunProgram({"generate", "--seed", seed, "--history-rows", std::to_string(rows),
                                "--transactions", std::to_string(transactions), "--encoding",
                                encoding, "--out", path("year")});
    ASSERT_EQ(ran.exit_status, 0) << ran.err;
    truth_ = json::parse(Content(path("year/truth.json")));
    fs::copy_file(FIRSTSEEN_EXAMPLE_CONFIG, path("firstseen.toml"));
    fs::create_directory(path("inbox"));
  }

  std::vector<std::string> BillArguments(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "bill");
    arguments.insert(arguments.end(), {"--config", path("firstseen.toml"), "--json", "--set",
                                       "bills.period_minutes=" + period_minutes_});
    return arguments;
  }
  Ran Bill(const std::vector<std::string>& arguments) const {
    return RunProgram(BillArguments(arguments));
  }

  json Import(const std::string& directory) const {
    const Ran ran = Run({"import", "kyc", path(directory), "--columns", "name,id_no,ds,biz_seq_no",
                         "--time-column", "ds", "--encoding", encoding_, "--json"});
    EXPECT_EQ(ran.exit_status, 0) << ran.err;
    return json::parse(ran.out);
  }

  // Takes a day's transactions in and closes its periods; kills that many runs before one ends.
  void RunDay(const std::string& day, const std::string& now, int kills = 0) {
    for (const std::string& file : Files(path("year/transactions/" + day))) {
      fs::copy_file(file, path("inbox/") + fs::path(file).filename().string());
    }
    for (int i = 0; i < kills; ++i) {
      Child child(BillArguments({"run", "--once", "--now", now}));
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % kill_ms_));
      child.Signal(SIGKILL);
      child.Wait();
    }
    const Ran ran = Bill({"run", "--once", "--now", now});
    EXPECT_EQ(ran.exit_status, 0) << ran.err;
    EXPECT_TRUE(json::parse(ran.out, nullptr, false).is_object()) << ran.out;
  }

  json Verify() const {
    const Ran ran =
        Bill({"verify", "--history", path("year/history"), path("year/gap"), "--columns",
              "name,id_no,ds,biz_seq_no", "--time-column", "ds", "--encoding", encoding_,
              "--history-rejected", truth_["history"]["rejected"].dump()});
    const json report = json::parse(ran.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << ran.out << ran.err;
    EXPECT_EQ(ran.exit_status, report["verified"] == true ? 0 : 1);
    return report;
  }

  // Serials in the bill files (or adjustments), and an error for each that comes twice.
  std::set<std::string> Billed(const std::string& kind) const {
    std::set<std::string> serials;
    for (const std::string& file : Files(path("bills"))) {
      const std::string name = fs::path(file).filename();
      if (!name.starts_with(kind) || !name.ends_with(".txt")) continue;
      EXPECT_TRUE(fs::exists(file + ".ok")) << file;
      for (const std::string& line : Lines(Content(file))) {
        if (line.size() < 21 || line[20] != '|') continue;
        if (!serials.insert(line.substr(0, 20)).second) ADD_FAILURE() << "twice: " << line;
      }
    }
    return serials;
  }

  std::set<std::string> Truth(size_t column, const std::string& value) const {
    std::set<std::string> serials;
    for (const std::string& line : Lines(Content(path("year/truth.csv")))) {
      std::vector<std::string> fields(1);
      for (const char c : line) {
        if (c == ',') {
          fields.emplace_back();
        } else {
          fields.back().push_back(c);
        }
      }
      if (fields.at(column) == value) serials.insert(fields[0]);
    }
    return serials;
  }

  void WholeYear(uint64_t rows, uint64_t transactions, const std::string& encoding, int kills = 0) {
    Generate(rows, transactions, encoding);
    MakeSet();
    const json imported = Import("year/history");
    EXPECT_EQ(imported["rows"], truth_["history"]["rows"]);
    EXPECT_EQ(imported["added"], truth_["history"]["members"]);
    EXPECT_EQ(imported["rejected"], truth_["history"]["rejected"]);
    EXPECT_EQ(Import("year/gap")["added"], truth_["gap"]["new_members"]);
    RunDay("2023-12-31", "2024-01-01T00:02:00+08:00", kills);
    RunDay("2024-01-01", "2024-01-01T12:02:00+08:00", kills);
    EXPECT_EQ(Billed("bill_"), Truth(3, "billable"));
    EXPECT_EQ(Billed("adjustments_"), Truth(4, "1"));
    const json stats = json::parse(Run({"stats", "kyc", "--json"}).out);
    for (const json& window : stats["sets"][0]["windows"]) {
      EXPECT_EQ(window["members"], truth_["members"][std::string(window["window"])]);
    }
    const json report = Verify();
    EXPECT_EQ(report["verified"], true) << report;
    EXPECT_EQ(report["billed"], truth_["transactions"]["billable"]);
    EXPECT_EQ(report["duplicate"], truth_["transactions"]["duplicates"]);
  }

  std::string encoding_;
  std::mt19937_64 random_;
  uint64_t kill_ms_ = 1'500;           // a run is killed within this time
  std::string period_minutes_ = "60";  // fewer bill files, fewer fsyncs
  json truth_;
};

TEST_F(YearTest, TheBillIsTheTruthAndVerified) { WholeYear(5'000, 4'000, "utf-8"); }

TEST_F(YearTest, HistoryInGb18030GivesTheSame) { WholeYear(5'000, 2'000, "gb18030"); }

TEST_F(YearTest, KilledAndStartedAgainGivesTheSame) { WholeYear(2'000, 4'000, "utf-8", 6); }

TEST_F(YearTest, VerifyFindsABillThatWasTamperedWith) {
  Generate(2'000, 1'500, "utf-8");
  MakeSet();
  Import("year/history");
  Import("year/gap");
  RunDay("2023-12-31", "2024-01-01T00:02:00+08:00");
  ASSERT_EQ(Verify()["verified"], true);
  // A bill row less, in a file whose checksum and trailer are left as they are.
  for (const std::string& file : Files(path("bills"))) {
    std::vector<std::string> lines = Lines(Content(file));
    if (!file.ends_with(".txt") || lines.size() < 4) continue;
    lines.erase(lines.begin() + 2);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    std::ofstream(file, std::ios::binary) << text;
    break;
  }
  EXPECT_EQ(Verify()["verified"], false);
}

TEST_F(YearTest, ResendWritesTheSameRowsUnderANewSerial) {
  Generate(1'000, 1'000, "utf-8");
  MakeSet();
  Import("year/history");
  RunDay("2023-12-31", "2024-01-01T00:02:00+08:00");
  const Ran ran = Bill({"resend", "--partner", "acme", "--period", "202312312300"});
  ASSERT_EQ(ran.exit_status, 0) << ran.err;
  const json report = json::parse(ran.out);
  EXPECT_NE(report["serial"], report["original_serial"]);
  EXPECT_TRUE(fs::exists(std::string(report["file"]) + ".ok"));
  EXPECT_EQ(Bill({"resend", "--partner", "acme", "--period", "202001010000"}).exit_status, 1);
}

class YearLong : public YearTest {};

TEST_F(YearLong, KilledAndStartedAgainGivesTheSame) {
  period_minutes_ = "15";
  WholeYear(20'000, 50'000, "utf-8", 100);
}

TEST_F(YearLong, TheBillIsTheTruthAndVerified) {
  period_minutes_ = "5";
  WholeYear(1'000'000, 100'000, "utf-8");
}

}  // namespace
}  // namespace firstseen
