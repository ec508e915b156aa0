// A place to bill in: a data directory with set `kyc`, a configuration and an inbox, all below one
// directory; and what the bill files there say.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time_text.h"
#include "billing/bill_file.h"
#include "billing/bill_run.h"
#include "billing/config.h"
#include "billing/decisions.h"
#include "billing/verify.h"
#include "store/embedded_store.h"
#include "support/directory.h"

namespace firstseen {

inline constexpr std::string_view kInboxHeader =
    "biz_seq_no|order_no|app_id|event_time|amount|status|name|id_no";

// A row of an inbox file with that header.
inline std::string Row(std::string_view serial, std::string_view time,
                       std::string_view person = "1", std::string_view app = "loan",
                       std::string_view status = "SUCCESS", std::string_view amount = "1.00") {
  return fmt::format("{0}|o{0}|{1}|{2}|{3}|{4}|Person {5}|ID{5}", serial, app, time, amount, status,
                     person);
}

struct PlaceOptions {
  std::string set = R"(
[[sets]]
name = "kyc"
window = "year"
fields = ["name", "id_no"]
normalise = "trim,x-check-digit"
)";
  std::string rules = R"(
[[rules]]
app_ids = ["loan", "wallet"]
set = "kyc"
CLOSED
[[rules]]
app_ids = ["free"]

[[partners]]
name = "acme"
app_ids = ["loan", "wallet"]
[[partners]]
name = "beta"
app_ids = ["free"]
)";
  std::string closed_window = "hold";
  std::vector<std::string> settings = {};  // "section.key=value"
};

// What verify found, for messages.
inline std::string DescribeFindings(const VerifyReport& report) {
  std::string text;
  const auto add = [&](const char* name, const VerifyFinding& finding) {
    if (finding.count == 0) return;
    text += fmt::format("{} ({}): {}\n", name, finding.count, fmt::join(finding.listed, " "));
  };
  add("missing", report.missing);
  add("billed twice", report.billed_twice);
  add("wrongly billed", report.wrongly_billed);
  add("wrongly dropped", report.wrongly_dropped);
  add("undecided", report.undecided);
  add("unknown", report.unknown);
  add("altered", report.altered);
  add("adjustment faults", report.adjustment_faults);
  add("bad files", report.bad_files);
  add("unreadable", report.unreadable);
  return text;
}

class BillingPlace {
 public:
  explicit BillingPlace(const PlaceOptions& options = {}, std::string directory = {})
      : options_(options), path_(directory.empty() ? own_.path() : directory) {
    std::string rules = options.rules;
    if (const size_t at = rules.find("CLOSED"); at != std::string::npos) {
      rules.replace(at, 6, "closed_window = \"" + options.closed_window + "\"");
    }
    Write("firstseen.toml", "[store]\ndata = \"data\"\n" + options.set + rules);
    EmbeddedStoreOptions store;
    store.directory = path_ + "/data";
    Check(InitEmbeddedStore(store));
    const BillingConfig config = Config();
    WithStore([&](Store* opened) {
      for (const SetConfig& set : config.sets) Check(opened->CreateSet(set.name, set.options));
    });
    std::filesystem::create_directories(path_ + "/inbox");
    std::filesystem::permissions(path_ + "/inbox", std::filesystem::perms::owner_all);
  }

  const std::string& path() const { return path_; }

  BillingConfig Config() const {
    auto config =
        LoadBillingConfig(FileSystem::Posix(), path_ + "/firstseen.toml", options_.settings);
    Check(config.status());
    return *std::move(config);
  }
  void Set(const std::string& setting) { options_.settings.push_back(setting); }

  template <typename Body>
  void WithStore(Body body) const {
    EmbeddedStoreOptions options;
    options.directory = path_ + "/data";
    auto store = OpenEmbeddedStore(options);
    Check(store.status());
    body(store->get());
    Check((*store)->Close());
  }

  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(path_ + "/" + name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  bool Exists(const std::string& name) const { return std::filesystem::exists(path_ + "/" + name); }

  // Rows without the header.
  void Deliver(const std::string& name, const std::vector<std::string>& rows) const {
    std::string text = fmt::format("{}\n", kInboxHeader);
    for (const std::string& row : rows) text.append(row).append("\n");
    Write("inbox/" + name, text);
  }

  absl::StatusOr<BillRunReport> TryRun(const std::string& now, BillRunOptions options = {}) const {
    const BillingConfig config = Config();
    options.once = true;
    auto time = ParseEventTime(now, config.zone);
    Check(time.status());
    options.now = *time;
    last_now_ = *time;
    return RunBilling(config, options);
  }
  BillRunReport Run(const std::string& now) const {
    auto report = TryRun(now);
    Check(report.status());
    return report.ok() ? *report : BillRunReport();
  }

  // Paths of the complete files below bills/ of one kind, in name order.
  std::vector<std::string> Files(BillKind kind, const std::string& partner = {}) const {
    std::vector<std::string> found;
    if (!Exists("bills")) return found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_ + "/bills")) {
      const std::string path = entry.path();
      if (!path.ends_with(".txt") || !std::filesystem::exists(path + ".ok")) continue;
      auto reader = BillFileReader::Open(FileSystem::Posix(), path, absl::UTCTimeZone(), 18);
      Check(reader.status());
      if ((*reader)->header().kind == kind &&
          (partner.empty() || (*reader)->header().partner == partner)) {
        found.push_back(path);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // The serials in a file, in its order, after all its checks.
  std::vector<std::string> Serials(const std::string& path) const {
    std::vector<std::string> serials;
    auto reader = BillFileReader::Open(FileSystem::Posix(), path, absl::UTCTimeZone(), 18);
    Check(reader.status());
    while (true) {
      auto more = (*reader)->Next();
      Check(more.status());
      if (!more.ok() || !*more) break;
      serials.emplace_back((*reader)->values()[(*reader)->Column("biz_seq_no")]);
    }
    Check(CheckSha256(FileSystem::Posix(), path, (*reader)->sha256()));
    return serials;
  }

  // In how many bill files each serial is.
  std::map<std::string, int> Billed(BillKind kind = BillKind::kBill) const {
    std::map<std::string, int> billed;
    for (const std::string& path : Files(kind)) {
      for (const std::string& serial : Serials(path)) ++billed[serial];
    }
    return billed;
  }
  std::set<std::string> BilledOnce() const {
    std::set<std::string> serials;
    for (const auto& [serial, count] : Billed()) {
      EXPECT_EQ(count, 1) << serial;
      serials.insert(serial);
    }
    return serials;
  }

  // As of the last run.
  VerifyReport Verify(const std::vector<std::string>& history = {}) const {
    const VerifyOptions options = HistoryOptions(history);
    auto report = VerifyBills(Config(), options);
    Check(report.status());
    return report.ok() ? *report : VerifyReport();
  }
  VerifyOptions HistoryOptions(const std::vector<std::string>& history) const {
    VerifyOptions options;
    options.now = last_now_;
    options.history = history;
    options.history_mapping.columns = {"name", "id_no", "ds"};
    options.history_mapping.format.delimiter = '|';
    options.history_mapping.time_column = "ds";
    return options;
  }

  // Makes the last line of a decision file fit its rows and its transaction file: a forger's work.
  void ResealDecisions(const std::string& file) const {
    const std::string name = "done/" + file + ".decisions";
    const std::string text = Read(name);
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    auto writer = DecisionsWriter::Create(FileSystem::Posix(), path_ + "/done/" + file,
                                          *ParseDecisionsHeader(line));
    Check(writer.status());
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.starts_with("end\t")) {
      Check((*writer)->Append(*ParseDecision(line)));
    }
    auto digest = DigestFile(FileSystem::Posix(), path_ + "/done/" + file);
    Check((*writer)->Commit(digest.ok() ? *digest : FileDigest()));
  }

  // Decision column of each line of a decision file, by serial; the last one of each.
  std::map<std::string, std::string> Decisions(const std::string& file) const {
    std::map<std::string, std::string> decisions;
    std::istringstream lines(Read("done/" + file + ".decisions"));
    std::string line;
    while (std::getline(lines, line) && !line.starts_with("end\t")) {
      std::istringstream values(line);
      std::string number, serial, kind;
      std::getline(values, number, '\t');
      std::getline(values, serial, '\t');
      std::getline(values, kind, '\t');
      decisions[serial] = kind;
    }
    return decisions;
  }

 private:
  static void Check(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  TestDirectory own_;
  PlaceOptions options_;
  std::string path_;
  mutable std::optional<absl::Time> last_now_;  // of the last run
};

}  // namespace firstseen
