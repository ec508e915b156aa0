// The keys of firstseen.toml that have one value: name, type, limits and place, in one table from
// which the file, the environment and flags are read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "billing/config.h"

namespace firstseen {

// A value before it is put into its place: TOML's type, or text (environment, flags).
struct ConfigValue {
  enum class Type { kText, kInteger, kBoolean, kList, kUntyped };
  Type type = Type::kUntyped;
  std::string text;  // kText, kUntyped
  int64_t integer = 0;
  bool boolean = false;
  std::vector<std::string> list;
};

struct ConfigKey {
  std::string_view section;
  std::string_view name;
  // InvalidArgument says what the value must be; the caller adds where it stands.
  std::function<absl::Status(BillingConfig*, const ConfigValue&)> set;
};

std::span<const ConfigKey> ConfigKeys();
const ConfigKey* FindConfigKey(std::string_view section, std::string_view name);

// The known word nearest to `word` by edit distance; empty when none is near.
std::string NearestWord(std::string_view word, std::span<const std::string_view> known);

}  // namespace firstseen
