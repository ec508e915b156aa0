// firstseen.toml: what `bill run`, `bill resend` and `bill verify` need to know.
//
// firstseen.example.toml documents every key and is the manual. A value comes from, the later the
// stronger: the default, the file, the environment variable FIRSTSEEN_<SECTION>_<KEY> in capitals
// (FIRSTSEEN_LEDGER_KEEP_DAYS=20), an override "section.key=value" (flags). Lists are written
// comma-separated there; [[sets]], [[rules]] and [[partners]] can stand only in the file.
// Relative paths are relative to the directory of the configuration file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "firstseen/types.h"

namespace firstseen {

struct StoreConfig {
  std::string data;      // directory
  std::string key_file;  // empty = DATA/key
  uint64_t memory_bytes_max = ~uint64_t{0};
  uint64_t owner_bytes_max = 4ull << 30;
};

// How transaction files look.
struct InboxConfig {
  std::string directory = "inbox";
  std::string done = "done";
  std::string failed = "failed";
  char delimiter = '|';
  std::optional<char> escape;
  std::string encoding = "utf-8";  // or gb18030
  int64_t poll_ms = 5'000;         // between two looks into the inbox
  int64_t done_keep_days = 400;    // done/ and the decisions in it
  uint64_t chunk_rows = 10'000;    // claimed and committed together
  // Column names in the files.
  std::string serial_column = "biz_seq_no";
  std::string order_column = "order_no";
  std::string app_column = "app_id";
  std::string time_column = "event_time";
  std::string amount_column = "amount";
  std::string status_column = "status";
};

struct StatusConfig {
  std::vector<std::string> counting = {"SUCCESS"};   // a bill is due
  std::vector<std::string> reversal = {"REVERSED"};  // takes back the transaction with this serial
  // Neither; when the list is not empty, a value in none of the three lists is a bad row.
  std::vector<std::string> ignored = {"FAILED"};
};

enum class TooOldPolicy { kFail, kAccept };

struct LedgerConfig {
  std::string connection = "sqlite3://ledger.db";  // sqlite3://PATH
  int64_t keep_days = 10;
  std::vector<std::string>
      keep_columns;  // further columns to keep, personal ones only if so wished
  TooOldPolicy too_old = TooOldPolicy::kFail;
};

struct BillsConfig {
  std::string directory = "bills";
  int64_t period_minutes = 5;  // divides a day
  int64_t grace_seconds = 60;
  char delimiter = '|';
  std::vector<std::string> columns = {"biz_seq_no", "order_no", "app_id",
                                      "event_time", "amount",   "status"};
  std::string name = "{partner}/{date}/bill_{partner}_{period}_{serial}.txt";
  std::string adjustments_name = "{partner}/{date}/adjustments_{partner}_{period}_{serial}.txt";
  std::string time_zone = "Asia/Shanghai";
  int amount_decimals = 2;
  bool empty_files = true;
  // A silence of more periods than this is left out as a whole, with a warning.
  int64_t empty_files_max = 2'016;
  std::string first_period_text;
  std::optional<absl::Time> first_period;  // of the text; nullopt = that of the first transaction
  int64_t keep_days = 400;
};

struct VerifyConfig {
  std::string temp_directory = "verify.tmp";  // made when it is not there
  uint64_t memory_bytes = 256ull << 20;
};

struct SetConfig {
  std::string name;
  SetOptions options;  // window, time_zone, fields and member_encoding are compared with the set's
};

enum class ClosedWindowPolicy {
  kHold,     // wait until the window is reopened
  kDefault,  // as seen before: origin 5, not billed
  kBill,     // origin 0
};

struct RuleConfig {
  std::vector<std::string> app_ids;
  std::string set;     // empty = every transaction is billed
  std::string window;  // empty = the set's, otherwise the same
  ClosedWindowPolicy closed_window = ClosedWindowPolicy::kHold;
};

struct PartnerConfig {
  std::string name;
  std::vector<std::string> app_ids;
};

struct BillingConfig {
  std::string path;  // of the file
  StoreConfig store;
  InboxConfig inbox;
  StatusConfig status;
  LedgerConfig ledger;
  BillsConfig bills;
  VerifyConfig verify;
  std::string log_level = "info";
  std::vector<SetConfig> sets;
  std::vector<RuleConfig> rules;
  std::vector<PartnerConfig> partners;

  absl::TimeZone zone;  // of bills.time_zone

  const SetConfig* FindSet(std::string_view name) const;
  // nullptr when no rule / partner names the app.
  const RuleConfig* RuleOf(std::string_view app_id) const;
  const PartnerConfig* PartnerOf(std::string_view app_id) const;
};

// InvalidArgument names the file, the line, and for an unknown key the nearest known one.
// `overrides` are "section.key=value". Reads the environment.
absl::StatusOr<BillingConfig> LoadBillingConfig(FileSystem* files, const std::string& path,
                                                std::span<const std::string> overrides);

// Every key that can be overridden, as "section.key", in the order of the sample.
std::vector<std::string> BillingConfigKeys();

}  // namespace firstseen
