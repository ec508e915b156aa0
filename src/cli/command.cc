#include "cli/command.h"

#include <charconv>
#include <cstdio>
#include <utility>

#include "base/human.h"
#include "base/status.h"
#include "billing/config_keys.h"

namespace firstseen::cli {
namespace {

constexpr char kUsagePayload[] = "firstseen/usage";

void Write(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fputc('\n', file);
}

}  // namespace

CLI::App* AddCommand(CLI::App& parent, Session& session, const std::string& name,
                     const std::string& description, const std::string& footer,
                     std::function<absl::StatusOr<int>()> run) {
  // "bill run" is the subcommand `run` of `bill`.
  CLI::App* command = parent.add_subcommand(name.substr(name.rfind(' ') + 1), description);
  command->footer(footer);
  command->callback([&session, name, run = std::move(run)] {
    session.command = name;
    session.run = run;
  });
  return command;
}

void AddDataOptions(CLI::App* command, Session& session) {
  command->add_option("--data", session.data, "Data directory, made by `firstseen init`")
      ->type_name("DIR")
      ->envname("FIRSTSEEN_DATA")
      ->required();
  command->add_option("--key-file", session.key_file, "Key file, when it is not DIR/key")
      ->type_name("FILE")
      ->envname("FIRSTSEEN_KEY_FILE");
  const CLI::Validator size(
      [](const std::string& text) {
        const absl::StatusOr<uint64_t> bytes = ParseBytes(text);
        return bytes.ok() ? std::string() : std::string(Message(bytes.status()));
      },
      "");
  command
      ->add_option("--memory-bytes-max", session.memory_bytes_max,
                   "Memory that all sets may take, e.g. 16GiB; no limit by default")
      ->type_name("SIZE")
      ->envname("FIRSTSEEN_STORE_MEMORY_BYTES_MAX")
      ->check(size);
  command
      ->add_option("--owner-bytes-max", session.owner_bytes_max,
                   "Memory that owners of claims may take; 4GiB by default")
      ->type_name("SIZE")
      ->envname("FIRSTSEEN_STORE_OWNER_BYTES_MAX")
      ->check(size);
}

CLI::Option* AddSet(CLI::App* command, Session& session) {
  return command->add_option("set", session.set, "Name of the set, e.g. kyc")->type_name("SET");
}

absl::StatusOr<SetOptions> FindSet(const Store& store, const Session& session) {
  absl::StatusOr<SetOptions> options = store.Options(session.set);
  if (options.ok() || !absl::IsNotFound(options.status())) return options;
  const std::vector<std::string> sets = store.ListSets();
  const std::string meant = NearestOf(session.set, sets);
  std::string advice = "`firstseen stats` lists those there are";
  if (sets.empty()) advice = "there is none yet: make it with `firstseen create`";
  if (!meant.empty()) advice = fmt::format("did you mean {}?", meant);
  return UsageError(NotFound("there is no set {}; {}", session.set, advice));
}

std::string NearestOf(std::string_view word, const std::vector<std::string>& known) {
  return NearestWord(word, std::vector<std::string_view>(known.begin(), known.end()));
}

CLI::Validator WholeNumber() {
  const auto check = [](const std::string& text) -> std::string {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) return "";
    return text + " is no whole number from 0 to 18446744073709551615";
  };
  return CLI::Validator(check, "");
}

void AddJson(CLI::App* command, Session& session) {
  command->add_flag("--json", session.json, "Print one JSON object instead of text");
}

EmbeddedStoreOptions StoreOptions(const Session& session) {
  EmbeddedStoreOptions options;
  options.directory = session.data;
  options.key_file = session.key_file;
  options.holder = "firstseen " + session.command;
  // The command line has checked that they are sizes. 0 = no limit, as in firstseen.toml.
  const uint64_t memory = ParseBytes(session.memory_bytes_max).value_or(0);
  const uint64_t owners = ParseBytes(session.owner_bytes_max).value_or(0);
  if (memory != 0) options.memory_bytes_max = memory;
  if (owners != 0) options.owner_bytes_max = owners;
  return options;
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Session& session) {
  return OpenEmbeddedStore(StoreOptions(session));
}

absl::Status UsageError(const absl::Status& status) {
  absl::Status usage = status;
  usage.SetPayload(kUsagePayload, absl::Cord());
  return usage;
}

bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsagePayload).has_value();
}

void PrintLine(std::string_view text) { Write(stdout, text); }

void PrintJson(const Json& json) {
  // Texts that are no UTF-8 (file names may be anything) must not stop the answer.
  Write(stdout, json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void Note(const Session& session, std::string_view text) {
  std::fflush(stdout);  // in the order of events where both go to one place
  Write(stderr, fmt::format("firstseen {}: {}", session.command, text));
}

Progress::Options Bar(const Session& session, const std::string& label, const std::string& unit,
                      uint64_t total) {
  Progress::Options options;
  options.label = label;
  options.unit = unit;
  options.total = total;
  options.shown = StderrIsTerminal() && !session.json;
  return options;
}

int Fail(const Session& session, const absl::Status& status) {
  if (session.json) {
    PrintJson({{"error", Message(status)}, {"code", absl::StatusCodeToString(status.code())}});
  }
  Note(session, Message(status));
  if (!IsUsageError(status)) return kFailed;
  Note(session, "see --help for examples");
  return kUsage;
}

void AddFormatOptions(CLI::App* command, FormatFlags* flags) {
  command
      ->add_option("--delimiter", flags->delimiter,
                   "Between fields: one character, or tab, \\x01, ^A, ...")
      ->type_name("CHAR")
      ->capture_default_str();
  command
      ->add_option("--escape", flags->escape,
                   "Escape character (Hive's ESCAPED BY); none by default")
      ->type_name("CHAR");
  command->add_option("--encoding", flags->encoding, "utf-8 or gb18030 (GBK, GB2312)")
      ->type_name("NAME")
      ->capture_default_str();
}

absl::StatusOr<RowFormat> ParseFormat(const FormatFlags& flags) {
  RowFormat format;
  const absl::StatusOr<char> delimiter = ParseDelimiter(flags.delimiter);
  if (!delimiter.ok()) return UsageError(Annotate(delimiter.status(), "--delimiter"));
  format.delimiter = *delimiter;
  if (!flags.escape.empty()) {
    const absl::StatusOr<char> escape = ParseDelimiter(flags.escape);
    if (!escape.ok()) return UsageError(Annotate(escape.status(), "--escape"));
    format.escape = *escape;
  }
  const absl::StatusOr<TextEncoding> encoding = ParseTextEncoding(flags.encoding);
  if (!encoding.ok()) return UsageError(Annotate(encoding.status(), "--encoding"));
  format.encoding = *encoding;
  return format;
}

}  // namespace firstseen::cli
