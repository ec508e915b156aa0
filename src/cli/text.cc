#include "cli/text.h"

#include "base/check.h"
#include "fmt/format.h"
#include "keys/normalise_spec.h"

namespace firstseen::cli {
namespace {

template <typename Value>
std::string_view NameOf(const std::map<std::string, Value>& names, Value value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  FIRSTSEEN_CHECK(false);
  return "";
}

}  // namespace

const std::map<std::string, WindowKind>& WindowKindNames() {
  static const auto* names = new std::map<std::string, WindowKind>{{"year", WindowKind::kYear},
                                                                   {"month", WindowKind::kMonth},
                                                                   {"day", WindowKind::kDay},
                                                                   {"none", WindowKind::kNone}};
  return *names;
}

const std::map<std::string, MemberEncoding>& MemberEncodingNames() {
  static const auto* names = new std::map<std::string, MemberEncoding>{
      {"fields", MemberEncoding::kFields}, {"concat", MemberEncoding::kConcat}};
  return *names;
}

const std::map<std::string, Durability>& DurabilityNames() {
  static const auto* names =
      new std::map<std::string, Durability>{{"fsync", Durability::kFsync},
                                            {"interval", Durability::kInterval},
                                            {"none", Durability::kNone}};
  return *names;
}

std::string_view WindowKindName(WindowKind kind) { return NameOf(WindowKindNames(), kind); }
std::string_view MemberEncodingName(MemberEncoding encoding) {
  return NameOf(MemberEncodingNames(), encoding);
}
std::string_view DurabilityName(Durability durability) {
  return NameOf(DurabilityNames(), durability);
}

Json SetJson(std::string_view name, const SetOptions& options) {
  Json fields = Json::array();
  for (const FieldOptions& field : options.fields) {
    fields.push_back({{"name", field.name}, {"normalise", FormatNormalisation(field.normalise)}});
  }
  return {{"set", name},
          {"window_kind", WindowKindName(options.window)},
          {"time_zone", options.time_zone},
          {"fields", fields},
          {"member_encoding", MemberEncodingName(options.member_encoding)},
          {"bits", options.bits},
          {"expected", options.expected},
          {"durability", DurabilityName(options.durability)}};
}

std::string Grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, " ");
  return text;
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string HumanSeconds(int64_t seconds) {
  if (seconds < 0) return "none";
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7'200) return fmt::format("{} min", seconds / 60);
  if (seconds < 172'800) return fmt::format("{} h", seconds / 3'600);
  return fmt::format("{} d", seconds / 86'400);
}

}  // namespace firstseen::cli
