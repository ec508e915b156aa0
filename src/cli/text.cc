#include "cli/text.h"

#include "base/check.h"
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

}  // namespace firstseen::cli
