#include "billing/config_check.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time_text.h"
#include "engine/window.h"

namespace firstseen {
namespace {

// Names that appear in file names and as ids: letters, digits, '-', '_', '.', not first a '.'.
bool IsPlainName(std::string_view name) {
  if (name.empty() || name.front() == '.') return false;
  return std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

void MakeAbsolute(std::string_view directory, std::string* path) {
  if (path->empty() || path->front() == '/' || directory.empty()) return;
  *path = fmt::format("{}/{}", directory, *path);
}

absl::Status ResolvePaths(BillingConfig* config) {
  const size_t slash = config->path.rfind('/');
  const std::string directory = slash == std::string::npos ? ""
                                : slash == 0               ? "/"
                                                           : config->path.substr(0, slash);
  for (std::string* path :
       {&config->store.data, &config->store.key_file, &config->inbox.directory, &config->inbox.done,
        &config->inbox.failed, &config->bills.directory, &config->verify.temp_directory}) {
    MakeAbsolute(directory, path);
  }
  constexpr std::string_view kSqlite = "sqlite3://";
  if (!config->ledger.connection.starts_with(kSqlite)) {
    return InvalidArgument("ledger.connection must begin with {}", kSqlite);
  }
  std::string database = config->ledger.connection.substr(kSqlite.size());
  if (database.empty()) return InvalidArgument("ledger.connection names no file");
  MakeAbsolute(directory, &database);
  config->ledger.connection = std::string(kSqlite) + database;
  const std::set<std::string> places = {config->inbox.directory, config->inbox.done,
                                        config->inbox.failed, config->bills.directory};
  if (places.size() != 4) {
    return InvalidArgument(
        "inbox.directory, inbox.done, inbox.failed and bills.directory must be four directories");
  }
  return absl::OkStatus();
}

bool IsLogLevel(std::string_view level) {
  static constexpr std::string_view kLevels[] = {"trace", "debug", "info", "warn", "error", "off"};
  return std::ranges::count(kLevels, level) > 0;
}

absl::Status CheckStatus(const StatusConfig& status) {
  if (status.counting.empty()) return InvalidArgument("status.counting must name a status");
  std::set<std::string> seen;
  for (const auto* list : {&status.counting, &status.reversal, &status.ignored}) {
    for (const std::string& value : *list) {
      if (!seen.insert(value).second) {
        return InvalidArgument("status '{}' is named twice in [status]", value);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNamePattern(std::string_view key, std::string_view pattern) {
  if (pattern.find("{serial}") == std::string_view::npos ||
      pattern.find("{partner}") == std::string_view::npos ||
      pattern.find("{period}") == std::string_view::npos) {
    return InvalidArgument("{} must hold {{partner}}, {{period}} and {{serial}}", key);
  }
  if (pattern.front() == '/' || pattern.find("..") != std::string_view::npos ||
      pattern.ends_with(".ok") || pattern.ends_with(".sha256") || pattern.ends_with(".tmp")) {
    return InvalidArgument(
        "{} must be a relative path without '..' that does not end in .ok, .sha256 or .tmp", key);
  }
  std::string rest(pattern);
  for (const std::string_view word : {"{partner}", "{period}", "{serial}", "{date}"}) {
    for (size_t at; (at = rest.find(word)) != std::string::npos;) rest.erase(at, word.size());
  }
  if (rest.find_first_of("{}") != std::string::npos) {
    return InvalidArgument("{}: only {{partner}}, {{period}}, {{serial}} and {{date}} are replaced",
                           key);
  }
  return absl::OkStatus();
}

absl::Status CheckBills(BillingConfig* config) {
  BillsConfig& bills = config->bills;
  absl::StatusOr<absl::TimeZone> zone = LoadTimeZone(bills.time_zone);
  if (!zone.ok()) return Annotate(zone.status(), "bills.time_zone");
  config->zone = *zone;
  if (1'440 % bills.period_minutes != 0) {
    return InvalidArgument("bills.period_minutes must divide a day (1440 minutes)");
  }
  for (const std::string_view needed : {"biz_seq_no", "amount"}) {
    if (std::ranges::count(bills.columns, needed) != 1) {
      return InvalidArgument("bills.columns must hold {}, once", needed);
    }
  }
  for (const std::string& column : bills.columns) {
    if (std::ranges::count(kBillColumns, column) == 0 &&
        std::ranges::count(config->ledger.keep_columns, column) == 0) {
      return InvalidArgument("bills.columns: '{}' must be named in ledger.keep_columns too",
                             column);
    }
  }
  RETURN_IF_ERROR(CheckNamePattern("bills.name", bills.name));
  RETURN_IF_ERROR(CheckNamePattern("bills.adjustments_name", bills.adjustments_name));
  if (bills.name == bills.adjustments_name) {
    return InvalidArgument("bills.name and bills.adjustments_name are the same");
  }
  if (!bills.first_period_text.empty()) {
    absl::StatusOr<absl::Time> first = ParseEventTime(bills.first_period_text, config->zone);
    if (!first.ok()) return Annotate(first.status(), "bills.first_period");
    bills.first_period = *first;
  }
  return absl::OkStatus();
}

std::string_view WindowKindName(WindowKind kind) {
  switch (kind) {
    case WindowKind::kYear:
      return "year";
    case WindowKind::kMonth:
      return "month";
    case WindowKind::kDay:
      return "day";
    case WindowKind::kNone:
      break;
  }
  return "none";
}

absl::Status CheckRules(const BillingConfig& config) {
  std::set<std::string> sets;
  for (const SetConfig& set : config.sets) {
    if (!IsPlainName(set.name))
      return InvalidArgument("[[sets]] name '{}' is not usable", set.name);
    if (!sets.insert(set.name).second) return InvalidArgument("set '{}' stands twice", set.name);
  }
  std::set<std::string> ruled;
  for (const RuleConfig& rule : config.rules) {
    if (rule.app_ids.empty()) return InvalidArgument("[[rules]] needs app_ids");
    const SetConfig* set = config.FindSet(rule.set);
    if (!rule.set.empty() && set == nullptr) {
      return InvalidArgument("[[rules]] names set '{}', which is not in [[sets]]", rule.set);
    }
    if (!rule.window.empty() &&
        rule.window != (set == nullptr ? "none" : WindowKindName(set->options.window))) {
      return InvalidArgument("[[rules]] has window '{}', which is not that of its set",
                             rule.window);
    }
    for (const std::string& app : rule.app_ids) {
      if (!ruled.insert(app).second) return InvalidArgument("app_id '{}' has two rules", app);
      if (config.PartnerOf(app) == nullptr) {
        return InvalidArgument("app_id '{}' has a rule and belongs to no partner", app);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPartners(const BillingConfig& config) {
  if (config.partners.empty()) return InvalidArgument("[[partners]] is missing");
  std::set<std::string> names;
  std::set<std::string> apps;
  for (const PartnerConfig& partner : config.partners) {
    if (!IsPlainName(partner.name)) {
      return InvalidArgument("[[partners]] name '{}': use letters, digits, '-', '_' and '.'",
                             partner.name);
    }
    if (!names.insert(partner.name).second) {
      return InvalidArgument("partner '{}' stands twice", partner.name);
    }
    if (partner.app_ids.empty()) {
      return InvalidArgument("partner '{}' needs app_ids", partner.name);
    }
    for (const std::string& app : partner.app_ids) {
      if (!apps.insert(app).second) {
        return InvalidArgument("app_id '{}' belongs to two partners", app);
      }
      if (config.RuleOf(app) == nullptr) {
        return InvalidArgument("app_id '{}' belongs to a partner and has no rule in [[rules]]",
                               app);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseWindowKind(std::string_view text, WindowKind* kind) {
  for (const WindowKind known :
       {WindowKind::kNone, WindowKind::kYear, WindowKind::kMonth, WindowKind::kDay}) {
    if (text != WindowKindName(known)) continue;
    *kind = known;
    return absl::OkStatus();
  }
  return InvalidArgument("window must be year, month, day or none");
}

absl::Status ParseMemberEncoding(std::string_view text, MemberEncoding* encoding) {
  if (!text.empty() && text != "fields" && text != "concat") {
    return InvalidArgument("member_encoding must be fields or concat");
  }
  *encoding = text == "concat" ? MemberEncoding::kConcat : MemberEncoding::kFields;
  return absl::OkStatus();
}

absl::Status CheckBillingConfig(BillingConfig* config) {
  if (config->store.data.empty()) return InvalidArgument("store.data is missing");
  if (config->inbox.encoding != "utf-8" && config->inbox.encoding != "gb18030") {
    return InvalidArgument("inbox.encoding must be utf-8 or gb18030");
  }
  if (!IsLogLevel(config->log_level)) {
    return InvalidArgument("log.level must be trace, debug, info, warn, error or off");
  }
  RETURN_IF_ERROR(CheckStatus(config->status));
  RETURN_IF_ERROR(CheckBills(config));
  RETURN_IF_ERROR(CheckPartners(*config));
  RETURN_IF_ERROR(CheckRules(*config));
  return ResolvePaths(config);
}

}  // namespace firstseen
