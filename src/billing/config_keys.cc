#include "billing/config_keys.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/status.h"
#include "base/time_text.h"
#include "ingest/row_reader.h"

namespace firstseen {
namespace {

using Type = ConfigValue::Type;

template <typename T>
using Place = T& (*)(BillingConfig*);
using Set = std::function<absl::Status(BillingConfig*, const ConfigValue&)>;

absl::StatusOr<std::string> AsText(const ConfigValue& value) {
  if (value.type == Type::kText || value.type == Type::kUntyped) return value.text;
  return InvalidArgument("must be a text in quotes");
}

Set Text(Place<std::string> place) {
  return [place](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(place(config), AsText(value));
    return absl::OkStatus();
  };
}

// A text that must not be empty.
Set Name(Place<std::string> place) {
  return [place](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(place(config), AsText(value));
    if (place(config).empty()) return InvalidArgument("must not be empty");
    return absl::OkStatus();
  };
}

absl::StatusOr<int64_t> AsInteger(const ConfigValue& value) {
  if (value.type == Type::kInteger) return value.integer;
  int64_t number = 0;
  if (value.type == Type::kUntyped) {
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return InvalidArgument("must be a whole number");
}

template <typename T>
Set Integer(Place<T> place, int64_t low, int64_t high) {
  return [place, low, high](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t number, AsInteger(value));
    if (number < low || number > high) return InvalidArgument("must be {} to {}", low, high);
    place(config) = static_cast<T>(number);
    return absl::OkStatus();
  };
}

// Bytes of which 0 means no limit.
Set Limit(Place<uint64_t> place) {
  return [place](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t number, AsInteger(value));
    if (number < 0) return InvalidArgument("must be 0 (no limit) or more");
    place(config) = number == 0 ? ~uint64_t{0} : static_cast<uint64_t>(number);
    return absl::OkStatus();
  };
}

Set Boolean(Place<bool> place) {
  return [place](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    if (value.type == Type::kBoolean) {
      place(config) = value.boolean;
    } else if (value.type == Type::kUntyped && (value.text == "true" || value.text == "false")) {
      place(config) = value.text == "true";
    } else {
      return InvalidArgument("must be true or false");
    }
    return absl::OkStatus();
  };
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    list.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return list;
}

Set List(Place<std::vector<std::string>> place) {
  return [place](BillingConfig* config, const ConfigValue& value) -> absl::Status {
    if (value.type == Type::kList) {
      place(config) = value.list;
    } else if (value.type == Type::kUntyped) {
      place(config) = SplitList(value.text);
    } else {
      return InvalidArgument("must be a list of texts");
    }
    if (std::ranges::count(place(config), "") > 0) {
      return InvalidArgument("must not hold an empty text");
    }
    return absl::OkStatus();
  };
}

absl::Status SetCharacter(const ConfigValue& value, char* character) {
  ASSIGN_OR_RETURN(const std::string text, AsText(value));
  ASSIGN_OR_RETURN(*character, ParseDelimiter(text));
  return absl::OkStatus();
}

Set Character(Place<char> place) {
  return [place](BillingConfig* config, const ConfigValue& value) {
    return SetCharacter(value, &place(config));
  };
}

absl::Status SetEscape(BillingConfig* config, const ConfigValue& value) {
  ASSIGN_OR_RETURN(const std::string text, AsText(value));
  config->inbox.escape.reset();
  if (text.empty()) return absl::OkStatus();
  return SetCharacter(value, &config->inbox.escape.emplace());
}

absl::Status SetTooOld(BillingConfig* config, const ConfigValue& value) {
  ASSIGN_OR_RETURN(const std::string text, AsText(value));
  if (text != "fail" && text != "accept") {
    return InvalidArgument("must be \"fail\" or \"accept\"");
  }
  config->ledger.too_old = text == "fail" ? TooOldPolicy::kFail : TooOldPolicy::kAccept;
  return absl::OkStatus();
}

// Read again in bills.time_zone when the whole configuration is known; kept as text until then.
absl::Status SetFirstPeriod(BillingConfig* config, const ConfigValue& value) {
  ASSIGN_OR_RETURN(config->bills.first_period_text, AsText(value));
  return absl::OkStatus();
}

#define PLACE(member) \
  [](BillingConfig * config) -> auto& { return config->member; }

const std::vector<ConfigKey>& Table() {
  constexpr int64_t kMany = std::numeric_limits<int64_t>::max();
  constexpr int64_t kDays = 36'500;
  static const auto* const keys = new std::vector<ConfigKey>{
      {"store", "data", Name(PLACE(store.data))},
      {"store", "key_file", Text(PLACE(store.key_file))},
      {"store", "memory_bytes_max", Limit(PLACE(store.memory_bytes_max))},
      {"store", "owner_bytes_max", Limit(PLACE(store.owner_bytes_max))},
      {"inbox", "directory", Name(PLACE(inbox.directory))},
      {"inbox", "done", Name(PLACE(inbox.done))},
      {"inbox", "failed", Name(PLACE(inbox.failed))},
      {"inbox", "delimiter", Character(PLACE(inbox.delimiter))},
      {"inbox", "escape", SetEscape},
      {"inbox", "encoding", Name(PLACE(inbox.encoding))},
      {"inbox", "poll_ms", Integer<int64_t>(PLACE(inbox.poll_ms), 10, 3'600'000)},
      {"inbox", "chunk_rows", Integer<uint64_t>(PLACE(inbox.chunk_rows), 1, 1'000'000)},
      {"inbox", "done_keep_days", Integer<int64_t>(PLACE(inbox.done_keep_days), 1, kDays)},
      {"inbox", "serial_column", Name(PLACE(inbox.serial_column))},
      {"inbox", "order_column", Name(PLACE(inbox.order_column))},
      {"inbox", "app_column", Name(PLACE(inbox.app_column))},
      {"inbox", "time_column", Name(PLACE(inbox.time_column))},
      {"inbox", "amount_column", Name(PLACE(inbox.amount_column))},
      {"inbox", "status_column", Name(PLACE(inbox.status_column))},
      {"status", "counting", List(PLACE(status.counting))},
      {"status", "reversal", List(PLACE(status.reversal))},
      {"status", "ignored", List(PLACE(status.ignored))},
      {"ledger", "connection", Name(PLACE(ledger.connection))},
      {"ledger", "keep_days", Integer<int64_t>(PLACE(ledger.keep_days), 1, kDays)},
      {"ledger", "too_old", SetTooOld},
      {"ledger", "keep_columns", List(PLACE(ledger.keep_columns))},
      {"bills", "directory", Name(PLACE(bills.directory))},
      {"bills", "period_minutes", Integer<int64_t>(PLACE(bills.period_minutes), 1, 1'440)},
      {"bills", "grace_seconds", Integer<int64_t>(PLACE(bills.grace_seconds), 0, 86'400)},
      {"bills", "time_zone", Name(PLACE(bills.time_zone))},
      {"bills", "delimiter", Character(PLACE(bills.delimiter))},
      {"bills", "columns", List(PLACE(bills.columns))},
      {"bills", "name", Name(PLACE(bills.name))},
      {"bills", "adjustments_name", Name(PLACE(bills.adjustments_name))},
      {"bills", "amount_decimals", Integer<int>(PLACE(bills.amount_decimals), 0, 18)},
      {"bills", "empty_files", Boolean(PLACE(bills.empty_files))},
      {"bills", "empty_files_max", Integer<int64_t>(PLACE(bills.empty_files_max), 0, kMany)},
      {"bills", "first_period", SetFirstPeriod},
      {"bills", "keep_days", Integer<int64_t>(PLACE(bills.keep_days), 1, kDays)},
      {"verify", "temp_directory", Name(PLACE(verify.temp_directory))},
      {"verify", "memory_bytes", Integer<uint64_t>(PLACE(verify.memory_bytes), 1 << 20, kMany)},
      {"log", "level", Name(PLACE(log_level))},
  };
  return *keys;
}

#undef PLACE

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const ConfigKey> ConfigKeys() { return Table(); }

const ConfigKey* FindConfigKey(std::string_view section, std::string_view name) {
  for (const ConfigKey& key : Table()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string NearestWord(std::string_view word, std::span<const std::string_view> known) {
  std::string nearest;
  size_t best = word.size() / 2 + 2;
  for (const std::string_view candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::vector<std::string> BillingConfigKeys() {
  std::vector<std::string> names;
  for (const ConfigKey& key : Table()) names.push_back(fmt::format("{}.{}", key.section, key.name));
  return names;
}

}  // namespace firstseen
