#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/human.h"
#include "billing/verify.h"
#include "cli/bill.h"
#include "cli/mapping.h"

namespace firstseen::cli {
namespace {

struct Flags {
  ConfigFlags config;
  VerifyOptions verify;
  MappingFlags mapping;
  std::string transactions_encoding;
  std::string transactions_delimiter;
  std::string now;
};

std::vector<std::pair<const char*, const VerifyFinding*>> Findings(const VerifyReport& report) {
  return {{"missing", &report.missing},
          {"billed_twice", &report.billed_twice},
          {"wrongly_billed", &report.wrongly_billed},
          {"wrongly_dropped", &report.wrongly_dropped},
          {"undecided", &report.undecided},
          {"unknown", &report.unknown},
          {"altered", &report.altered},
          {"adjustment_faults", &report.adjustment_faults},
          {"bad_files", &report.bad_files},
          {"unreadable", &report.unreadable},
          {"history_unreadable", &report.history_unreadable}};
}

std::vector<std::pair<const char*, uint64_t>> Counts(const VerifyReport& report) {
  return {{"history_rows", report.history_rows},
          {"history_rejected", report.history_rejected},
          {"transaction_rows", report.transaction_rows},
          {"transactions", report.transactions},
          {"members", report.members},
          {"bill_files", report.bill_files},
          {"billed", report.billed},
          {"duplicate", report.duplicate},
          {"pending", report.pending},
          {"held", report.held},
          {"closed_window", report.closed_window},
          {"released", report.released},
          {"adjusted", report.adjusted},
          {"rejected", report.rejected}};
}

void PrintReportJson(const VerifyReport& report) {
  Json json = {{"verified", report.ok()}};
  for (const auto& [name, count] : Counts(report)) json[name] = count;
  for (const auto& [name, finding] : Findings(report)) {
    json[name] = {{"count", finding->count}, {"listed", finding->listed}};
  }
  json["seconds"] = report.seconds;
  PrintJson(json);
}

void PrintText(const VerifyReport& report) {
  for (const auto& [name, count] : Counts(report)) {
    PrintLine(fmt::format("{:<18} {:>14}", name, FormatCount(count)));
  }
  for (const auto& [name, finding] : Findings(report)) {
    if (finding->count == 0) continue;
    PrintLine(fmt::format("{:<18} {:>14}", name, FormatCount(finding->count)));
    for (const std::string& serial : finding->listed) PrintLine("  " + serial);
    if (finding->listed.size() < finding->count) PrintLine("  ...");
  }
  PrintLine(report.ok() ? "verified" : "NOT VERIFIED");
}

// The set that the history belongs to.
const SetConfig* HistorySet(const VerifyOptions& options, const BillingConfig& config) {
  const bool only = options.history_set.empty() && config.sets.size() == 1;
  return only ? config.sets.data() : config.FindSet(options.history_set);
}

// --encoding may name one for each --history path.
absl::Status ParseEncodings(MappingFlags* mapping, VerifyOptions* options) {
  const std::vector<std::string> names = CLI::detail::split(mapping->format.encoding, ',');
  if (names.size() == 1) return absl::OkStatus();
  if (names.size() != options->history.size()) {
    return UsageError(
        InvalidArgument("--encoding names {} encodings and --history {} paths: write "
                        "one for all, or one for each",
                        names.size(), options->history.size()));
  }
  for (const std::string& name : names) {
    const absl::StatusOr<TextEncoding> encoding = ParseTextEncoding(name);
    if (!encoding.ok()) return UsageError(Annotate(encoding.status(), "--encoding"));
    options->history_encodings.push_back(*encoding);
  }
  mapping->format.encoding = names.front();
  return absl::OkStatus();
}

absl::Status ParseTransactionsFormat(const Flags& flags, VerifyOptions* options) {
  if (!flags.transactions_encoding.empty()) {
    const absl::StatusOr<TextEncoding> encoding = ParseTextEncoding(flags.transactions_encoding);
    if (!encoding.ok()) return UsageError(Annotate(encoding.status(), "--transactions-encoding"));
    options->transactions_encoding = *encoding;
  }
  if (!flags.transactions_delimiter.empty()) {
    const absl::StatusOr<char> delimiter = ParseDelimiter(flags.transactions_delimiter);
    if (!delimiter.ok()) {
      return UsageError(Annotate(delimiter.status(), "--transactions-delimiter"));
    }
    options->transactions_delimiter = *delimiter;
  }
  return absl::OkStatus();
}

absl::StatusOr<VerifyOptions> Options(const Flags& flags, const BillingConfig& config) {
  VerifyOptions options = flags.verify;
  ASSIGN_OR_RETURN(options.now, NowOption(flags.now, config));
  RETURN_IF_ERROR(ParseTransactionsFormat(flags, &options));
  if (options.history.empty()) return options;
  const SetConfig* set = HistorySet(options, config);
  if (set == nullptr) {
    return UsageError(
        InvalidArgument("name the history's set with --history-set; it must be one "
                        "of [[sets]] in {}",
                        config.path));
  }
  MappingFlags mapping = flags.mapping;
  RETURN_IF_ERROR(ParseEncodings(&mapping, &options));
  ASSIGN_OR_RETURN(options.history_mapping, ParseMapping(mapping, set->options.window));
  return options;
}

absl::StatusOr<int> Run(const Session& session, const Flags& flags) {
  ASSIGN_OR_RETURN(const BillingConfig config, LoadConfig(flags.config));
  ASSIGN_OR_RETURN(VerifyOptions options, Options(flags, config));
  std::optional<Progress> bar;  // of the phase
  std::string phase_shown;
  options.progress = [&](std::string_view phase, uint64_t rows) {
    if (!bar.has_value() || phase != phase_shown) {
      phase_shown = phase;
      bar.emplace(Bar(session, phase_shown, "rows", 0));
    }
    bar->Update(rows, rows);
  };
  const absl::StatusOr<VerifyReport> verified = VerifyBills(config, options);
  bar.reset();
  if (!verified.ok()) return BillError(verified.status());
  const VerifyReport& report = *verified;
  if (session.json) {
    PrintReportJson(report);
  } else {
    PrintText(report);
  }
  return report.ok() ? kDone : kFailed;
}

}  // namespace

void RegisterBillVerify(CLI::App& bill, Session& session) {
  const auto [command, flags] = AddBillCommand(
      bill, session, "verify", "Prove the bill: recompute it from files alone and compare",
      "Reads history, transactions, decisions and bill files; never a set, and of the ledger only\n"
      "which files there must be.\n"
      "Prints serials of what differs, and rows that cannot be read, never names or id numbers,\n"
      "and then exits 1. --encoding takes one name for all --history paths, or one for each:\n"
      "gb18030,utf-8.\n"
      "\n"
      "Examples:\n"
      "  firstseen bill verify --config firstseen.toml --history ./history \\\n"
      "      --columns name,id_no,ds,biz_seq_no --time-column ds\n"
      "  firstseen bill verify --config firstseen.toml --history ./history \\\n"
      "      --columns name,id_no --window-of 2023 --transactions ./warehouse_export",
      Run);
  VerifyOptions& verify = flags->verify;
  command->add_option("--history", verify.history, "What was imported: files or directories")
      ->type_name("PATH");
  command->add_option("--history-set", verify.history_set, "Into which set, when there are several")
      ->type_name("SET");
  command
      ->add_option("--history-rejected", verify.history_rejected_max,
                   "So many rows of it may be unusable: those that `import` reported rejected")
      ->type_name("ROWS")
      ->capture_default_str();
  AddMappingOptions(command, &flags->mapping);
  CLI::Option* transactions =
      command
          ->add_option("--transactions", verify.transactions,
                       "Transactions from elsewhere, instead of the done/ directory")
          ->type_name("PATH");
  command
      ->add_option("--transactions-encoding", flags->transactions_encoding,
                   "Of these files, when it is not inbox.encoding")
      ->type_name("NAME")
      ->needs(transactions);
  command
      ->add_option("--transactions-delimiter", flags->transactions_delimiter,
                   "Of these files, when it is not inbox.delimiter")
      ->type_name("CHAR")
      ->needs(transactions);
  command
      ->add_option("--now", flags->now,
                   "Stands for the clock: what is to be billed by then must be in a file")
      ->type_name("TIME");
}

}  // namespace firstseen::cli
