#include "sample/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "keys/normalise.h"
#include "sample/people.h"

namespace firstseen::sample {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kEverything = kTrim | kWidth | kXCheckDigit | kId15To18 | kNameDot | kZeroWidth;

std::string Normalised(const std::string& field) {
  std::string out;
  AppendNormalised(kEverything, field, &out);
  return out;
}

std::vector<std::string> Split(const std::string& line, char delimiter) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == delimiter) {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  return fields;
}

std::string Content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("\ufeff")) line.erase(0, 3);
    lines.push_back(line);
  }
  return lines;
}

class GenerateTest : public testing::Test {
 protected:
  GenerateTest()
      : directory_(fs::path(testing::TempDir()) /
                   (std::string("firstseen_sample_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
  }
  ~GenerateTest() override { fs::remove_all(directory_); }

  GenerateOptions Options(uint64_t seed, const std::string& name) const {
    GenerateOptions options;
    options.seed = seed;
    options.history_rows = 20'000;
    options.transactions = 10'000;
    options.out = directory_ / name;
    return options;
  }

  static GenerateTotals Make(const GenerateOptions& options) {
    const absl::StatusOr<GenerateTotals> totals = Generate(options, [](uint64_t, uint64_t) {});
    EXPECT_TRUE(totals.ok()) << totals.status();
    return *totals;
  }

  static std::vector<fs::path> Files(const fs::path& directory) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  fs::path directory_;
};

TEST_F(GenerateTest, SameSeedGivesTheSameBytes) {
  Make(Options(7, "a"));
  Make(Options(7, "b"));
  const std::vector<fs::path> a = Files(directory_ / "a");
  const std::vector<fs::path> b = Files(directory_ / "b");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(Content(a[i]), Content(b[i])) << a[i];
}

TEST_F(GenerateTest, AnotherSeedGivesOtherPeople) {
  Make(Options(7, "a"));
  Make(Options(8, "b"));
  EXPECT_NE(Content(directory_ / "a/history/000000_0"), Content(directory_ / "b/history/000000_0"));
}

TEST_F(GenerateTest, RefusesANonEmptyDirectoryAndNumbersOutOfRange) {
  const GenerateOptions options = Options(1, "a");
  Make(options);
  const auto quiet = [](uint64_t, uint64_t) {};
  EXPECT_EQ(Generate(options, quiet).status().code(), absl::StatusCode::kAlreadyExists);
  GenerateOptions few = Options(1, "b");
  few.history_rows = 999;
  EXPECT_EQ(Generate(few, quiet).status().code(), absl::StatusCode::kInvalidArgument);
  few = Options(1, "b");
  few.transactions = 999;
  EXPECT_EQ(Generate(few, quiet).status().code(), absl::StatusCode::kInvalidArgument);
  few = Options(1, "b");
  few.encoding = "latin-1";
  EXPECT_EQ(Generate(few, quiet).status().code(), absl::StatusCode::kInvalidArgument);
}

using Member = std::pair<std::string, std::string>;

std::set<Member> ReadMembers(const fs::path& directory, uint64_t* rows, uint64_t* rejected) {
  std::set<Member> members;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with('_') || name.starts_with('.')) continue;
    for (const std::string& line : Lines(entry.path())) {
      if (line.empty()) continue;
      ++*rows;
      const std::vector<std::string> fields = Split(line, '|');
      if (fields.size() != 4) {
        ++*rejected;
        continue;
      }
      members.emplace(Normalised(fields[0]), Normalised(fields[1]));
    }
  }
  return members;
}

TEST_F(GenerateTest, HistoryTotalsAreWhatTheFilesHold) {
  const GenerateTotals totals = Make(Options(3, "a"));
  uint64_t rows = 0;
  uint64_t rejected = 0;
  std::set<Member> members = ReadMembers(directory_ / "a/history", &rows, &rejected);
  EXPECT_EQ(rows, totals.history_rows);
  EXPECT_EQ(rejected, totals.history_rejected);
  EXPECT_GE(rejected, 3u);
  EXPECT_EQ(members.size(), totals.history_members);
  EXPECT_LT(totals.history_members, rows - rejected) << "there must be repeated people";
  const std::set<Member> gap = ReadMembers(directory_ / "a/gap", &rows, &rejected);
  members.insert(gap.begin(), gap.end());
  EXPECT_EQ(members.size(), totals.history_members + totals.gap_new_members);
  EXPECT_GT(totals.gap_new_members, 0u);
}

TEST_F(GenerateTest, EveryIdNumberHasARightCheckDigitOnceNormalised) {
  Make(Options(5, "a"));
  uint64_t rows = 0;
  uint64_t rejected = 0;
  for (const Member& member : ReadMembers(directory_ / "a/history", &rows, &rejected)) {
    const std::string& id = member.second;
    ASSERT_EQ(id.size(), 18u);
    ASSERT_EQ(IdCheckDigit(id.substr(0, 17)), id[17]);
  }
}

TEST_F(GenerateTest, HistoryHoldsEveryNotation) {
  Make(Options(5, "a"));
  std::string all;
  for (const fs::path& file : Files(directory_ / "a/history")) all += Content(file);
  for (const char* notation : {"\ufeff", "\r\n", "\n\n", "\u3000|", "\u200b", "\uff10", "x|", "X|",
                               " |", "\u2022", "\u30fb", "\uff0e"}) {
    EXPECT_NE(all.find(notation), std::string::npos) << testing::PrintToString(notation);
  }
  bool old_form = false;
  for (const std::string& line : Lines(directory_ / "a/history/000000_0")) {
    old_form = old_form || Split(line, '|')[1].size() == 15;
  }
  EXPECT_TRUE(old_form);
}

struct Row {
  std::string serial, app, time, amount, status;
  Member member;
};

std::vector<Row> ReadTransactions(const fs::path& file) {
  std::vector<Row> rows;
  for (const std::string& line : Lines(file)) {
    if (file.extension() == ".ndjson") {
      const nlohmann::json json = nlohmann::json::parse(line);
      rows.push_back({json["biz_seq_no"],
                      json["app_id"],
                      json["event_time"],
                      json["amount"],
                      json["status"],
                      {Normalised(json["name"]), Normalised(json["id_no"])}});
    } else if (const std::vector<std::string> fields = Split(line, '|');
               fields[0] != "biz_seq_no") {
      rows.push_back({fields[0],
                      fields[2],
                      fields[3],
                      fields[4],
                      fields[5],
                      {Normalised(fields[6]), Normalised(fields[7])}});
    }
  }
  return rows;
}

// The bill, worked out from the files as slowly and plainly as possible.
class PlainBill {
 public:
  explicit PlainBill(std::set<Member> history) : history_(std::move(history)) {}

  void Take(const std::vector<Row>& file) {
    std::set<std::string> in_file;
    for (const Row& row : file) {
      if (row.status == "REVERSED") {
        const Row& original = rows_.at(row.serial);
        if (in_file.contains(row.serial)) {
          EXPECT_EQ(outcomes_[row.serial], "billable");
          outcomes_[row.serial] = "reversed";
          claimed_.erase({Year(original), original.member});
        } else {
          EXPECT_EQ(outcomes_[row.serial], "billable");
          EXPECT_TRUE(adjusted_.insert(row.serial).second);
        }
      } else if (rows_.contains(row.serial)) {
        EXPECT_EQ(outcomes_[row.serial] == "not_counting", row.status == "FAILED");
        ++retries_;
      } else {
        rows_[row.serial] = row;
        in_file.insert(row.serial);
        outcomes_[row.serial] = Judge(row);
      }
    }
  }

  static std::string Year(const Row& row) { return row.time.substr(0, 4); }

  std::map<std::string, Row> rows_;
  std::map<std::string, std::string> outcomes_;
  std::set<std::string> adjusted_;
  std::set<std::pair<std::string, Member>> claimed_;
  uint64_t retries_ = 0;

 private:
  std::string Judge(const Row& row) {
    if (row.status == "FAILED") return "not_counting";
    if (row.app == "beta-query") return "billable";
    if (Year(row) == "2023" && history_.contains(row.member)) return "duplicate";
    return claimed_.insert({Year(row), row.member}).second ? "billable" : "duplicate";
  }

  std::set<Member> history_;
};

TEST_F(GenerateTest, TruthIsWhatAPlainComparisonOfTheFilesFinds) {
  const GenerateTotals totals = Make(Options(11, "a"));
  uint64_t rows = 0;
  uint64_t rejected = 0;
  std::set<Member> history = ReadMembers(directory_ / "a/history", &rows, &rejected);
  const std::set<Member> gap = ReadMembers(directory_ / "a/gap", &rows, &rejected);
  history.insert(gap.begin(), gap.end());
  PlainBill bill(history);
  uint64_t transaction_rows = 0;
  for (const fs::path& file : Files(directory_ / "a/transactions")) {
    const std::vector<Row> file_rows = ReadTransactions(file);
    transaction_rows += file_rows.size();
    bill.Take(file_rows);
  }
  EXPECT_EQ(transaction_rows, totals.transaction_rows);
  EXPECT_EQ(transaction_rows, 10'000u);
  EXPECT_EQ(bill.adjusted_.size(), totals.adjustments);
  EXPECT_EQ(bill.outcomes_.size(), totals.serials);
  uint64_t told = 0;
  for (const std::string& line : Lines(directory_ / "a/truth.csv")) {
    const std::vector<std::string> fields = Split(line, ',');
    if (fields[0] == "biz_seq_no") continue;
    ++told;
    const Row& row = bill.rows_.at(fields[0]);
    EXPECT_EQ(fields[1], row.app);
    EXPECT_EQ(fields[2], row.app == "beta-query" ? "none" : PlainBill::Year(row));
    EXPECT_EQ(fields[3], bill.outcomes_.at(fields[0])) << line;
    EXPECT_EQ(fields[4], bill.adjusted_.contains(fields[0]) ? "1" : "0");
    EXPECT_EQ(fields[5], row.amount);
  }
  EXPECT_EQ(told, totals.serials);
  uint64_t members_2024 = 0;
  for (const auto& [year, member] : bill.claimed_) members_2024 += year == "2024";
  EXPECT_EQ(members_2024, totals.members_2024);
  EXPECT_EQ(history.size() + bill.claimed_.size() - members_2024, totals.members_2023);
  for (const uint64_t count : {totals.duplicates, totals.not_counting, totals.reversed,
                               totals.adjustments, bill.retries_}) {
    EXPECT_GT(count, 0u) << "every case must occur";
  }
}

TEST_F(GenerateTest, SomebodyIsBilledInTheLastMillisecondAndAgainInTheFirst) {
  Make(Options(11, "a"));
  std::vector<Row> last =
      ReadTransactions(directory_ / "a/transactions/2023-12-31/transactions-20231231-2355.txt");
  std::vector<Row> first =
      ReadTransactions(directory_ / "a/transactions/2024-01-01/transactions-20240101-0000.ndjson");
  ASSERT_FALSE(last.empty());
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(last.back().time, "2023-12-31T23:59:59.999+08:00");
  EXPECT_EQ(first.front().time, "2024-01-01T00:00:00.000+08:00");
  EXPECT_EQ(last.back().member, first.front().member);
}

TEST_F(GenerateTest, Gb18030HistoryHasDelimiterBytesInsideOfNames) {
  GenerateOptions options = Options(2, "a");
  options.encoding = "gb18030";
  Make(options);
  std::string all;
  for (const fs::path& file : Files(directory_ / "a/history")) all += Content(file);
  EXPECT_NE(all.find("\xab\x7c"), std::string::npos);  // 珅
  EXPECT_NE(all.find("\x95\x5c"), std::string::npos);  // 昞
}

TEST(PeopleTest, NoTwoHaveTheSameIdNumber) {
  const People people(9);
  Person person;
  std::set<std::string> ids;
  for (uint64_t i = 0; i < 100'000; ++i) {
    people.Get(i, &person);
    EXPECT_TRUE(ids.insert(person.id_number).second);
  }
  people.Get(people.count() - 1, &person);
  EXPECT_EQ(person.id_number.size(), 18u);
}

}  // namespace
}  // namespace firstseen::sample
