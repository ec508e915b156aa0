#include "sample/generate.h"

#include <memory>

#include "base/human.h"
#include "base/status.h"
#include "cli/command.h"

namespace firstseen::cli {
namespace {

Json TotalsJson(const sample::GenerateOptions& options, const sample::GenerateTotals& totals) {
  return {{"out", options.out},
          {"seed", options.seed},
          {"history_rows", totals.history_rows},
          {"history_rejected", totals.history_rejected},
          {"history_members", totals.history_members},
          {"gap_rows", totals.gap_rows},
          {"gap_new_members", totals.gap_new_members},
          {"transaction_files", totals.transaction_files},
          {"transaction_rows", totals.transaction_rows},
          {"billable", totals.billable},
          {"duplicates", totals.duplicates}};
}

absl::StatusOr<int> Run(const Session& session, const sample::GenerateOptions& options) {
  Progress bar(Bar(session, "writing", "rows", options.history_rows + options.transactions));
  ASSIGN_OR_RETURN(
      const sample::GenerateTotals totals,
      sample::Generate(options, [&bar](uint64_t done, uint64_t) { bar.Update(done, done); }));
  bar.Clear();
  if (session.json) {
    PrintJson(TotalsJson(options, totals));
    return kDone;
  }
  PrintLine(fmt::format("{}/history: {} rows of {} people, {} of the rows unreadable on purpose",
                        options.out, FormatCount(totals.history_rows),
                        FormatCount(totals.history_members), totals.history_rejected));
  PrintLine(fmt::format("{}/gap: {} rows, {} new people", options.out, FormatCount(totals.gap_rows),
                        FormatCount(totals.gap_new_members)));
  PrintLine(fmt::format("{}/transactions: {} rows in {} files", options.out,
                        FormatCount(totals.transaction_rows), totals.transaction_files));
  PrintLine(fmt::format("{}/truth.csv, truth.json: {} to bill, {} duplicates", options.out,
                        FormatCount(totals.billable), FormatCount(totals.duplicates)));
  return kDone;
}

}  // namespace

void RegisterGenerate(CLI::App& app, Session& session) {
  const auto options = std::make_shared<sample::GenerateOptions>();
  CLI::App* command = AddCommand(
      app, session, "generate", "Write an invented year to try firstseen on, with the truth",
      "The same seed gives the same files: history/ and gap/ as Hive exports them (name, id_no,\n"
      "ds, biz_seq_no, separated by '|'), transactions/ of noon to noon across the year's end in\n"
      "5-minute files, truth.csv and truth.json.\n"
      "\n"
      "Example:\n"
      "  firstseen generate --seed 1 --history-rows 100000 --transactions 10000 --out ./sample",
      [&session, options] { return Run(session, *options); });
  command->add_option("--out", options->out, "Directory to write, made, must be empty")
      ->type_name("DIR")
      ->required();
  command->add_option("--seed", options->seed, "Another seed, other people")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--history-rows", options->history_rows, "Rows of history, 1000 or more")
      ->check(WholeNumber())
      ->type_name("N")
      ->required();
  command->add_option("--transactions", options->transactions, "Rows to bill, 1000 or more")
      ->check(WholeNumber())
      ->type_name("N")
      ->required();
  command->add_option("--history-files", options->history_files, "Number of history files")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--encoding", options->encoding, "Of history and gap: utf-8 or gb18030")
      ->check(CLI::IsMember({"utf-8", "gb18030"}).description(""))
      ->type_name("utf-8|gb18030")
      ->capture_default_str();
  AddJson(command, session);
}

}  // namespace firstseen::cli
