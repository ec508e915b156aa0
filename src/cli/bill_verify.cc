#include <memory>
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
          {"bad_files", &report.bad_files}};
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

absl::StatusOr<VerifyOptions> Options(const Flags& flags, const BillingConfig& config) {
  VerifyOptions options = flags.verify;
  if (options.history.empty()) return options;
  const SetConfig* set = HistorySet(options, config);
  if (set == nullptr) {
    return UsageError(
        InvalidArgument("name the history's set with --history-set; it must be one "
                        "of [[sets]] in {}",
                        config.path));
  }
  ASSIGN_OR_RETURN(options.history_mapping, ParseMapping(flags.mapping, set->options.window));
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
  RETURN_IF_ERROR(verified.status());
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
  const auto flags = std::make_shared<Flags>();
  VerifyOptions& verify = flags->verify;
  CLI::App* command = AddCommand(
      bill, session, "bill verify", "Prove the bill: recompute it from files alone and compare",
      "Reads history, transactions, decisions and bill files, and neither sets nor ledger.\n"
      "Prints serials of what differs, never names or id numbers, and then exits 1.\n"
      "\n"
      "Examples:\n"
      "  firstseen bill verify --config firstseen.toml --history ./history \\\n"
      "      --columns name,id_no,ds,biz_seq_no --time-column ds\n"
      "  firstseen bill verify --config firstseen.toml --history ./history \\\n"
      "      --columns name,id_no --window-of 2023 --transactions ./warehouse_export",
      [&session, flags] { return Run(session, *flags); });
  AddConfigOptions(command, session, &flags->config);
  command->add_option("--history", verify.history, "What was imported: files or directories")
      ->type_name("PATH");
  command->add_option("--history-set", verify.history_set, "Into which set, when there are several")
      ->type_name("SET");
  AddMappingOptions(command, &flags->mapping);
  command
      ->add_option("--transactions", verify.transactions,
                   "Transactions from elsewhere, instead of the done/ directory")
      ->type_name("PATH");
}

}  // namespace firstseen::cli
