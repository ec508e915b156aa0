#include "billing/bill_run.h"

#include <atomic>
#include <csignal>
#include <string>

#include "cli/bill.h"

namespace firstseen::cli {
namespace {

struct Flags {
  ConfigFlags config;
  bool once = false;
  std::string now;
  bool accept_ledger = false;
};

// The only way from a signal handler into the program; lock-free.
std::atomic<bool> stop_requested = false;

void RequestStop(int) { stop_requested = true; }

Json ReportJson(const BillRunReport& report) {
  return {{"files_done", report.files_done},
          {"files_failed", report.files_failed},
          {"rows", report.rows},
          {"rejected", report.rejected},
          {"billable", report.billable},
          {"duplicates", report.duplicates},
          {"again", report.again},
          {"not_counting", report.not_counting},
          {"held", report.held},
          {"released", report.released},
          {"adjusted", report.adjusted},
          {"late", report.late},
          {"bill_files", report.bill_files},
          {"empty_bill_files", report.empty_bill_files},
          {"adjustment_files", report.adjustment_files},
          {"billed_rows", report.billed_rows},
          {"empty_periods_left_out", report.empty_periods_left_out},
          {"purged_rows", report.purged_rows},
          {"removed_files", report.removed_files},
          {"seconds", report.seconds}};
}

void PrintText(const BillRunReport& report) {
  PrintLine(fmt::format("taken: {} files, {} rows ({} rejected, {} files failed)",
                        report.files_done, report.rows, report.rejected, report.files_failed));
  PrintLine(fmt::format(
      "found: {} billable, {} duplicates, {} met before, {} not counting, {} held", report.billable,
      report.duplicates, report.again, report.not_counting, report.held));
  PrintLine(fmt::format("reversed: {} before their bill file, {} after it", report.released,
                        report.adjusted));
  PrintLine(
      fmt::format("written: {} bill files with {} rows ({} of them empty), {} adjustment "
                  "files; {:.1f} s",
                  report.bill_files, report.billed_rows, report.empty_bill_files,
                  report.adjustment_files, report.seconds));
}

absl::StatusOr<int> Run(const Session& session, const Flags& flags) {
  ASSIGN_OR_RETURN(const BillingConfig config, LoadConfig(flags.config));
  BillRunOptions options;
  options.once = flags.once;
  options.accept_ledger = flags.accept_ledger;
  ASSIGN_OR_RETURN(options.now, NowOption(flags.now, config));
  options.stop = &stop_requested;
  std::signal(SIGTERM, RequestStop);
  std::signal(SIGINT, RequestStop);
  const absl::StatusOr<BillRunReport> ran = RunBilling(config, options);
  if (!ran.ok()) return BillError(ran.status());
  const BillRunReport& report = *ran;
  if (session.json) {
    PrintJson(ReportJson(report));
  } else {
    PrintText(report);
  }
  if (report.rejected + report.files_failed == 0) return kDone;
  Note(session, fmt::format("{} rows and {} files are in {} with their reasons; mend them and put "
                            "them into {} again",
                            report.rejected, report.files_failed, config.inbox.failed,
                            config.inbox.directory));
  // A service that was told to stop has done its work; who runs it once wants to be told.
  return flags.once ? kFailed : kDone;
}

}  // namespace

void RegisterBillRun(CLI::App& bill, Session& session) {
  const auto [command, flags] = AddBillCommand(
      bill, session, "run", "Take transaction files, write bill files",
      "Without --once it is a service: it looks into the inbox every few seconds, writes each\n"
      "period's bill files when the period and its grace time are over, and on SIGTERM finishes\n"
      "the file in hand and exits 0. With --once it exits 1 when rows or files went to failed/.\n"
      "\n"
      "Examples:\n"
      "  firstseen bill run --config firstseen.toml\n"
      "  firstseen bill run --config firstseen.toml --once --now 2024-01-01T13:00:00+08:00",
      Run);
  CLI::Option* once = command->add_flag("--once", flags->once, "One pass, then exit");
  command
      ->add_option("--now", flags->now, "Stands for the clock: periods that end before are closed")
      ->type_name("TIME")
      ->needs(once);
  command->add_flag("--accept-ledger", flags->accept_ledger,
                    "Begin a new ledger beside older bills, or take one that was begun with other "
                    "settings; see docs/billing.md");
}

}  // namespace firstseen::cli
