#include "keys/normalise_spec.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/status.h"

namespace firstseen {
namespace {

enum class Target { kAll, kIds, kNames };

struct Switch {
  std::string_view name;
  Normalisation bit;
  Target target;
};

constexpr Switch kSwitches[] = {
    {"trim", kTrim, Target::kAll},
    {"width", kWidth, Target::kAll},
    {"x-check-digit", kXCheckDigit, Target::kIds},
    {"id-15-to-18", kId15To18, Target::kIds},
    {"name-dot", kNameDot, Target::kNames},
    {"zero-width", kZeroWidth, Target::kAll},
};

constexpr std::string_view kOpaqueName = "opaque";

// The last words of a field name, joined, that say "id number".
constexpr std::string_view kIdWords[] = {
    "idno",          "idnum",          "idnumber",   "idcard",       "idcardno",
    "idcardnum",     "idcardnumber",   "certno",     "certnum",      "certnumber",
    "certificateno", "identity",       "identityno", "identitynum",  "identitynumber",
    "identitycard",  "identitycardno", "nationalid", "nationalidno", "nationalidnumber",
    "citizenid",     "citizenidno",    "sfzh",       "sfzhm",        "证件号",
    "证件号码",      "身份证",         "身份证号",   "身份证号码",
};
constexpr std::string_view kNameWords[] = {"name", "fullname", "realname", "username",
                                           "xm",   "姓名",     "名字"};

std::string_view TrimSpaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(TrimSpaces(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <typename Parts, typename Format>
std::string Join(const Parts& parts, std::string_view separator, Format format) {
  std::string joined;
  for (const auto& part : parts) {
    if (!joined.empty()) joined += separator;
    joined += format(part);
  }
  return joined;
}

// Lower-case words of a field name; bytes above 0x7F count as letters.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      words.back().push_back(static_cast<char>(c - 'A' + 'a'));
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) {
      words.back().push_back(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// True when the last words of `name`, joined, are in `list`.
bool EndsInOneOf(std::string_view name, std::span<const std::string_view> list) {
  const std::vector<std::string> words = Words(name);
  std::string tail;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    tail.insert(0, *word);
    if (std::find(list.begin(), list.end(), tail) != list.end()) return true;
  }
  return false;
}

bool Fits(Target target, std::string_view field) {
  switch (target) {
    case Target::kAll:
      return true;
    case Target::kIds:
      return Words(field) == std::vector<std::string>{"id"} || EndsInOneOf(field, kIdWords);
    case Target::kNames:
      return EndsInOneOf(field, kNameWords);
  }
  return false;
}

const Switch* FindSwitch(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSwitches), std::end(kSwitches),
                                   [&](const Switch& s) { return s.name == name; });
  return found == std::end(kSwitches) ? nullptr : found;
}

absl::Status UnknownSwitch(std::string_view name) {
  return InvalidArgument("unknown normalisation '{}'; there are {}, and {} for none", name,
                         Join(kSwitches, ", ", [](const Switch& s) { return s.name; }),
                         kOpaqueName);
}

absl::Status SpoiltByOpaque(std::string_view list) {
  return InvalidArgument("normalisation '{}': {} means none, so it must stand alone", list,
                         kOpaqueName);
}

// An example of the form by field, for error messages.
std::string FormByField(std::span<const std::string> names) {
  return Join(names, ";", [](const std::string& name) { return name + ":trim"; });
}

absl::StatusOr<uint32_t> ParseMask(std::string_view list) {
  if (list == kOpaqueName) return kOpaque;
  uint32_t mask = kOpaque;
  for (const std::string_view name : Split(list, ',')) {
    if (name == kOpaqueName) return SpoiltByOpaque(list);
    ASSIGN_OR_RETURN(const Normalisation bit, ParseNormalisation(name));
    mask |= bit;
  }
  return mask;
}

absl::Status ParsePlain(std::string_view spec, std::span<const std::string> names,
                        std::vector<FieldOptions>* fields) {
  if (spec == kOpaqueName) return absl::OkStatus();
  for (const std::string_view name : Split(spec, ',')) {
    if (name == kOpaqueName) return SpoiltByOpaque(spec);
    const Switch* const found = FindSwitch(name);
    if (found == nullptr) return UnknownSwitch(name);
    bool used = false;
    for (FieldOptions& field : *fields) {
      if (!Fits(found->target, field.name)) continue;
      field.normalise |= found->bit;
      used = true;
    }
    if (!used) {
      return InvalidArgument(
          "normalisation {} is for {}, and no field's name says that it is one; name the "
          "normalisations of each field, for example '{}'",
          name, found->target == Target::kIds ? "id numbers" : "persons' names",
          FormByField(names));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseByField(std::string_view spec, std::span<const std::string> names,
                          std::vector<FieldOptions>* fields) {
  std::vector<bool> seen(fields->size());
  for (const std::string_view part : Split(spec, ';')) {
    if (part.empty()) continue;
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      return InvalidArgument("'{}' in '{}' has no field name; write '{}'", part, spec,
                             FormByField(names));
    }
    const std::string_view name = TrimSpaces(part.substr(0, colon));
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return InvalidArgument("normalisation for '{}', which is not a field; the fields are {}",
                             name, Join(names, ", ", [](const std::string& n) { return n; }));
    }
    const size_t index = found - names.begin();
    if (seen[index]) return InvalidArgument("the normalisation of field {} is given twice", name);
    seen[index] = true;
    ASSIGN_OR_RETURN((*fields)[index].normalise, ParseMask(TrimSpaces(part.substr(colon + 1))));
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      return InvalidArgument("no normalisation given for field {}; add ';{}:{}' if it has none",
                             names[i], names[i], kOpaqueName);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Normalisation> ParseNormalisation(std::string_view name) {
  const Switch* const found = FindSwitch(name);
  if (found == nullptr) return UnknownSwitch(name);
  return found->bit;
}

std::string FormatNormalisation(uint32_t mask) {
  std::vector<std::string_view> names;
  for (const Switch& s : kSwitches) {
    if ((mask & s.bit) != 0) names.push_back(s.name);
  }
  if (names.empty()) return std::string(kOpaqueName);
  return Join(names, ",", [](std::string_view name) { return name; });
}

absl::StatusOr<std::vector<FieldOptions>> ParseNormaliseSpec(std::string_view spec,
                                                             std::span<const std::string> names) {
  std::vector<FieldOptions> fields;
  for (const std::string& name : names) fields.push_back({name, kOpaque});
  spec = TrimSpaces(spec);
  RETURN_IF_ERROR(spec.find(':') == std::string_view::npos ? ParsePlain(spec, names, &fields)
                                                           : ParseByField(spec, names, &fields));
  return fields;
}

std::string FormatNormaliseSpec(std::span<const FieldOptions> fields) {
  return Join(fields, ";", [](const FieldOptions& field) {
    return field.name + ":" + FormatNormalisation(field.normalise);
  });
}

}  // namespace firstseen
