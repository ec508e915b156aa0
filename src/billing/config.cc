#include "billing/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/time_text.h"
#include "billing/config_check.h"
#include "billing/config_keys.h"
#include "keys/normalise_spec.h"

namespace firstseen {
namespace {

absl::Status At(const std::string& path, const toml::source_region& source,
                const absl::Status& status) {
  return Annotate(status, fmt::format("{}:{}", path, source.begin.line));
}

absl::StatusOr<ConfigValue> ReadValue(const toml::node& node) {
  ConfigValue value;
  if (const auto* text = node.as_string()) {
    value.type = ConfigValue::Type::kText;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.type = ConfigValue::Type::kInteger;
    value.integer = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.type = ConfigValue::Type::kBoolean;
    value.boolean = boolean->get();
  } else if (const auto* list = node.as_array()) {
    value.type = ConfigValue::Type::kList;
    for (const toml::node& element : *list) {
      if (!element.is_string()) return InvalidArgument("must be a list of texts");
      value.list.push_back(element.as_string()->get());
    }
  } else {
    return InvalidArgument("must be a text, a whole number, true or false, or a list of texts");
  }
  return value;
}

absl::Status UnknownWord(std::string_view what, std::string_view word,
                         std::span<const std::string_view> known) {
  const std::string nearest = NearestWord(word, known);
  if (nearest.empty()) return InvalidArgument("unknown {} '{}'", what, word);
  return InvalidArgument("unknown {} '{}'; did you mean '{}'?", what, word, nearest);
}

// Reads the file's tree into a BillingConfig; knows where each node stands.
class FileReader {
 public:
  FileReader(const std::string& path, BillingConfig* config) : path_(path), config_(config) {}

  absl::Status Read(const toml::table& root) {
    std::vector<std::string_view> sections = {"sets", "rules", "partners"};
    for (const ConfigKey& key : ConfigKeys()) {
      if (std::ranges::count(sections, key.section) == 0) sections.push_back(key.section);
    }
    for (const auto& [key, node] : root) {
      const absl::Status status = ReadSection(key.str(), node, sections);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadSection(std::string_view name, const toml::node& node,
                           std::span<const std::string_view> sections) {
    if (std::ranges::count(sections, name) == 0) {
      return At(path_, node.source(), UnknownWord("section", name, sections));
    }
    if (name == "sets" || name == "rules" || name == "partners") return ReadList(name, node);
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return At(path_, node.source(), InvalidArgument("[{}] must be a section", name));
    }
    std::vector<std::string_view> known;
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.section == name) known.push_back(key.name);
    }
    for (const auto& [key, value_node] : *table) {
      const ConfigKey* found = FindConfigKey(name, key.str());
      if (found == nullptr) {
        return At(path_, key.source(),
                  UnknownWord(fmt::format("key in [{}]:", name), key.str(), known));
      }
      absl::StatusOr<ConfigValue> value = ReadValue(value_node);
      absl::Status status = value.ok() ? found->set(config_, *value) : value.status();
      if (!status.ok()) {
        return At(path_, key.source(), Annotate(status, fmt::format("{}.{}", name, key.str())));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadList(std::string_view name, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_array_of_tables()) {
      return At(path_, node.source(), InvalidArgument("write [[{}]], once for each", name));
    }
    for (const toml::node& element : *list) {
      const toml::table& table = *element.as_table();
      absl::Status status = name == "sets"    ? ReadSet(table)
                            : name == "rules" ? ReadRule(table)
                                              : ReadPartner(table);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // The texts and lists of one [[...]] table; keys outside of `known` are errors.
  absl::Status ReadEntries(std::string_view section, const toml::table& table,
                           std::span<const std::string_view> texts,
                           std::span<const std::string_view> lists,
                           std::map<std::string, ConfigValue, std::less<>>* entries) {
    std::vector<std::string_view> known(texts.begin(), texts.end());
    known.insert(known.end(), lists.begin(), lists.end());
    for (const auto& [key, node] : table) {
      if (std::ranges::count(known, key.str()) == 0) {
        return At(path_, key.source(),
                  UnknownWord(fmt::format("key in [[{}]]:", section), key.str(), known));
      }
      absl::StatusOr<ConfigValue> value = ReadValue(node);
      if (!value.ok()) return At(path_, key.source(), value.status());
      const bool is_list = std::ranges::count(lists, key.str()) > 0;
      if (value->type != (is_list ? ConfigValue::Type::kList : ConfigValue::Type::kText)) {
        return At(path_, key.source(),
                  InvalidArgument("{} must be a {}", std::string(key.str()),
                                  is_list ? "list of texts" : "text in quotes"));
      }
      (*entries)[std::string(key.str())] = *std::move(value);
    }
    return absl::OkStatus();
  }

  absl::Status ReadSet(const toml::table& table) {
    static constexpr std::string_view kTexts[] = {"name", "window", "time_zone", "normalise",
                                                  "member_encoding"};
    static constexpr std::string_view kLists[] = {"fields"};
    std::map<std::string, ConfigValue, std::less<>> entries;
    RETURN_IF_ERROR(ReadEntries("sets", table, kTexts, kLists, &entries));
    for (const char* required : {"name", "window", "fields", "normalise"}) {
      if (!entries.contains(required)) {
        return At(path_, table.source(), InvalidArgument("[[sets]] needs {}", required));
      }
    }
    SetConfig set;
    set.name = entries["name"].text;
    absl::Status status = ParseWindowKind(entries["window"].text, &set.options.window);
    if (status.ok()) {
      status = ParseMemberEncoding(entries["member_encoding"].text, &set.options.member_encoding);
    }
    if (status.ok() && entries.contains("time_zone")) {
      set.options.time_zone = entries["time_zone"].text;
      status = LoadTimeZone(set.options.time_zone).status();
    }
    if (status.ok()) {
      auto fields = ParseNormaliseSpec(entries["normalise"].text, entries["fields"].list);
      status = fields.status();
      if (fields.ok()) set.options.fields = *std::move(fields);
    }
    if (!status.ok()) return At(path_, table.source(), status);
    config_->sets.push_back(std::move(set));
    return absl::OkStatus();
  }

  absl::Status ReadRule(const toml::table& table) {
    static constexpr std::string_view kTexts[] = {"set", "window", "closed_window"};
    static constexpr std::string_view kLists[] = {"app_ids"};
    std::map<std::string, ConfigValue, std::less<>> entries;
    RETURN_IF_ERROR(ReadEntries("rules", table, kTexts, kLists, &entries));
    RuleConfig rule;
    rule.app_ids = entries["app_ids"].list;
    rule.set = entries["set"].text;
    rule.window = entries["window"].text;
    const std::string& closed = entries["closed_window"].text;
    if (closed == "default") {
      rule.closed_window = ClosedWindowPolicy::kDefault;
    } else if (closed == "bill") {
      rule.closed_window = ClosedWindowPolicy::kBill;
    } else if (!closed.empty() && closed != "hold") {
      return At(path_, table.source(),
                InvalidArgument("closed_window must be \"hold\", \"default\" or \"bill\""));
    }
    config_->rules.push_back(std::move(rule));
    return absl::OkStatus();
  }

  absl::Status ReadPartner(const toml::table& table) {
    static constexpr std::string_view kTexts[] = {"name"};
    static constexpr std::string_view kLists[] = {"app_ids"};
    std::map<std::string, ConfigValue, std::less<>> entries;
    RETURN_IF_ERROR(ReadEntries("partners", table, kTexts, kLists, &entries));
    config_->partners.push_back({entries["name"].text, entries["app_ids"].list});
    return absl::OkStatus();
  }

  const std::string& path_;
  BillingConfig* config_;
};

absl::Status SetFromText(BillingConfig* config, const ConfigKey& key, std::string_view text) {
  ConfigValue value;
  value.text = text;
  return key.set(config, value);
}

std::string EnvironmentName(const ConfigKey& key) {
  std::string name = fmt::format("FIRSTSEEN_{}_{}", key.section, key.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

absl::Status ReadEnvironment(BillingConfig* config) {
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string name = EnvironmentName(key);
    const char* text = std::getenv(name.c_str());
    if (text == nullptr) continue;
    RETURN_IF_ERROR(Annotate(SetFromText(config, key, text), "environment variable " + name));
  }
  return absl::OkStatus();
}

absl::Status ReadOverrides(BillingConfig* config, std::span<const std::string> overrides) {
  std::vector<std::string> names = BillingConfigKeys();
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& entry : overrides) {
    const size_t equals = entry.find('=');
    const std::string_view name = std::string_view(entry).substr(0, equals);
    const size_t dot = name.find('.');
    const ConfigKey* key = dot == std::string_view::npos
                               ? nullptr
                               : FindConfigKey(name.substr(0, dot), name.substr(dot + 1));
    if (key == nullptr) return UnknownWord("setting", name, known);
    if (equals == std::string::npos) {
      return InvalidArgument("write {}=VALUE", name);
    }
    RETURN_IF_ERROR(
        Annotate(SetFromText(config, *key, std::string_view(entry).substr(equals + 1)), name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BillingConfig> LoadBillingConfig(FileSystem* files, const std::string& path,
                                                std::span<const std::string> overrides) {
  ASSIGN_OR_RETURN(const bool exists, files->Exists(path));
  ASSIGN_OR_RETURN(const bool regular, files->IsRegularFile(path));
  if (exists && !regular) return InvalidArgument("{}: no regular file; name one", path);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(files, path));
  BillingConfig config;
  config.path = path;
  try {
    const toml::table root = toml::parse(text, path);
    RETURN_IF_ERROR(FileReader(path, &config).Read(root));
  } catch (const toml::parse_error& error) {
    return InvalidArgument("{}:{}: {}", path, error.source().begin.line, error.description());
  }
  RETURN_IF_ERROR(ReadEnvironment(&config));
  RETURN_IF_ERROR(ReadOverrides(&config, overrides));
  RETURN_IF_ERROR(Annotate(CheckBillingConfig(&config), path));
  return config;
}

const SetConfig* BillingConfig::FindSet(std::string_view name) const {
  for (const SetConfig& set : sets) {
    if (set.name == name) return &set;
  }
  return nullptr;
}

const RuleConfig* BillingConfig::RuleOf(std::string_view app_id) const {
  for (const RuleConfig& rule : rules) {
    if (std::ranges::count(rule.app_ids, app_id) > 0) return &rule;
  }
  return nullptr;
}

const PartnerConfig* BillingConfig::PartnerOf(std::string_view app_id) const {
  for (const PartnerConfig& partner : partners) {
    if (std::ranges::count(partner.app_ids, app_id) > 0) return &partner;
  }
  return nullptr;
}

}  // namespace firstseen
