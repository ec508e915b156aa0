#include "sample/generate.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/status.h"
#include "sample/history.h"
#include "sample/output.h"
#include "sample/people.h"
#include "sample/transactions.h"

namespace firstseen::sample {
namespace {

absl::Status CheckRange(std::string_view option, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidArgument("{} is {}; give {} to {}", option, value, low, high);
}

absl::Status CheckOptions(const GenerateOptions& options) {
  RETURN_IF_ERROR(CheckRange("history rows", options.history_rows, 1'000, 500'000'000));
  RETURN_IF_ERROR(CheckRange("transactions", options.transactions, 1'000, 20'000'000));
  RETURN_IF_ERROR(CheckRange("history files", options.history_files, 4, 1'000));
  if (options.encoding != "utf-8" && options.encoding != "gb18030") {
    return InvalidArgument("the encoding must be utf-8 or gb18030");
  }
  if (options.out.empty()) return InvalidArgument("no output directory given");
  return absl::OkStatus();
}

absl::Status WriteTotals(const GenerateOptions& options, const GenerateTotals& totals) {
  const nlohmann::ordered_json json = {
      {"seed", options.seed},
      {"history",
       {{"rows", totals.history_rows},
        {"rejected", totals.history_rejected},
        {"members", totals.history_members}}},
      {"gap", {{"rows", totals.gap_rows}, {"new_members", totals.gap_new_members}}},
      {"transactions",
       {{"files", totals.transaction_files},
        {"rows", totals.transaction_rows},
        {"serials", totals.serials},
        {"billable", totals.billable},
        {"billable_amount",
         fmt::format("{}.{:02}", totals.billable_cents / 100, totals.billable_cents % 100)},
        {"duplicates", totals.duplicates},
        {"not_counting", totals.not_counting},
        {"reversed", totals.reversed},
        {"adjustments", totals.adjustments}}},
      {"members", {{"2023", totals.members_2023}, {"2024", totals.members_2024}}}};
  ASSIGN_OR_RETURN(Output output, Output::Create(options.files, options.out + "/truth.json"));
  output.text() = json.dump(2) + "\n";
  return output.Flush();
}

}  // namespace

absl::StatusOr<GenerateTotals> Generate(const GenerateOptions& options, GenerateProgress progress) {
  RETURN_IF_ERROR(CheckOptions(options));
  RETURN_IF_ERROR(CreateDirectories(options.files, options.out));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options.files->List(options.out));
  if (!names.empty()) {
    return AlreadyExists("{} is not empty; remove it or choose another directory", options.out);
  }
  const People people(options.seed);
  GenerateTotals totals;
  RETURN_IF_ERROR(WriteHistory(options, people, progress, &totals));
  RETURN_IF_ERROR(WriteGap(options, people, &totals));
  RETURN_IF_ERROR(WriteTransactions(options, people, progress, &totals));
  RETURN_IF_ERROR(WriteTotals(options, totals));
  return totals;
}

}  // namespace firstseen::sample
