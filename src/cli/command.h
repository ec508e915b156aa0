// What all subcommands share: the common options, opening the store, and how results, messages
// and errors leave. Results go to standard output, everything else to standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/progress.h"
#include "ingest/row_reader.h"
#include "store/embedded_store.h"
#include "store/store.h"

namespace firstseen::cli {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are explained

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

// What the command line says, for the one subcommand that was given.
struct Session {
  std::string command;  // "import"
  std::string data;     // --data
  std::string key_file;
  std::string memory_bytes_max;  // sizes as text; empty = the default
  std::string owner_bytes_max;
  std::string set;
  bool json = false;
  // Set by the subcommand's callback; returns the exit status.
  std::function<absl::StatusOr<int>()> run;
};

// Adds subcommand `name` under `parent`. Its `footer` shows examples.
CLI::App* AddCommand(CLI::App& parent, Session& session, const std::string& name,
                     const std::string& description, const std::string& footer,
                     std::function<absl::StatusOr<int>()> run);
// --data DIR, --key-file FILE, --memory-bytes-max SIZE, --owner-bytes-max SIZE
void AddDataOptions(CLI::App* command, Session& session);
// Positional SET
CLI::Option* AddSet(CLI::App* command, Session& session);
// Its options; a set that is not there is wrong usage, and the error says which there are.
absl::StatusOr<SetOptions> FindSet(const Store& store, const Session& session);
// The one of `known` that `word` was probably meant to be, or "".
std::string NearestOf(std::string_view word, const std::vector<std::string>& known);
// For options: a whole number from 0 to 2^64 - 1 (the parser alone takes -1 as well).
CLI::Validator WholeNumber();
// For options: one of these names, which an error lists.
template <typename Value>
CLI::Validator OneOf(const std::map<std::string, Value>& names) {
  const auto transform = [names](std::string& text) -> std::string {
    const auto found = names.find(text);
    if (found != names.end()) {
      text = std::to_string(static_cast<int>(found->second));
      return "";
    }
    std::string list;
    for (const auto& [name, value] : names) list += (list.empty() ? "" : ", ") + name;
    return text + " is none of " + list;
  };
  return CLI::Validator(transform, "");
}
// --json
void AddJson(CLI::App* command, Session& session);

EmbeddedStoreOptions StoreOptions(const Session& session);
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Session& session);

// The same error, to be answered with exit status 2.
absl::Status UsageError(const absl::Status& status);
bool IsUsageError(const absl::Status& status);

// One line on standard output.
void PrintLine(std::string_view text);
void PrintJson(const Json& json);
// One line on standard error, after "firstseen COMMAND: ".
void Note(const Session& session, std::string_view text);
// A progress bar on standard error: drawn only on a terminal, and not beside --json. `total` 0 =
// unknown.
Progress::Options Bar(const Session& session, const std::string& label, const std::string& unit,
                      uint64_t total);
// Prints the error as the conventions say and returns the exit status.
int Fail(const Session& session, const absl::Status& status);

// How delimited rows look.
struct FormatFlags {
  std::string delimiter = "|";
  std::string escape;
  std::string encoding = "utf-8";
};
// --delimiter, --escape, --encoding
void AddFormatOptions(CLI::App* command, FormatFlags* flags);
absl::StatusOr<RowFormat> ParseFormat(const FormatFlags& flags);

// The subcommands, one a file.
void RegisterInit(CLI::App& app, Session& session);
void RegisterCreate(CLI::App& app, Session& session);
void RegisterImport(CLI::App& app, Session& session);
void RegisterClaim(CLI::App& app, Session& session);
void RegisterCheck(CLI::App& app, Session& session);
void RegisterRemove(CLI::App& app, Session& session);
void RegisterSettle(CLI::App& app, Session& session);
void RegisterStats(CLI::App& app, Session& session);
void RegisterDrop(CLI::App& app, Session& session);
void RegisterReopen(CLI::App& app, Session& session);
void RegisterSnapshot(CLI::App& app, Session& session);
void RegisterRepair(CLI::App& app, Session& session);
void RegisterGenerate(CLI::App& app, Session& session);
void RegisterBill(CLI::App& app, Session& session);
void RegisterVersion(CLI::App& app, Session& session);

}  // namespace firstseen::cli
