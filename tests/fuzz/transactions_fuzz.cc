// Transaction files of any bytes are read to their end, and a row that is taken cannot break the
// lines of decision and bill files. Decision lines are refused or read back as they were written.
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "billing/amount.h"
#include "billing/decisions.h"
#include "billing/transactions.h"

namespace firstseen {
namespace {

constexpr std::string_view kHeader =
    "biz_seq_no|order_no|app_id|event_time|amount|status|name|id_no\n";

BillingConfig MakeConfig() {
  BillingConfig config;
  SetConfig set;
  set.name = "kyc";
  set.options.fields = {{"name", kTrim}, {"id_no", kTrim}};
  config.sets = {set};
  config.rules = {{.app_ids = {"a"}, .set = "kyc", .window = {}},
                  {.app_ids = {"b"}, .set = {}, .window = {}}};
  config.partners = {{"p", {"a", "b"}}};
  config.ledger.keep_columns = {"name"};
  config.zone = absl::UTCTimeZone();
  return config;
}

bool BreaksLines(std::string_view text, char delimiter) {
  return text.find_first_of("\n\r\t") != std::string_view::npos ||
         text.find(delimiter) != std::string_view::npos;
}

void CheckRow(const InboxRow& row, const BillingConfig& config) {
  const Transaction& t = row.transaction;
  FIRSTSEEN_CHECK(!t.serial.empty() && !t.app_id.empty() && t.rule != nullptr);
  for (const std::string* text : {&t.serial, &t.order_no, &t.app_id, &t.status}) {
    FIRSTSEEN_CHECK(!BreaksLines(*text, config.bills.delimiter));
  }
  for (const std::string& text : t.kept) {
    FIRSTSEEN_CHECK(!BreaksLines(text, config.bills.delimiter));
  }
  const int decimals = config.bills.amount_decimals;
  FIRSTSEEN_CHECK(*ParseAmount(FormatAmount(t.amount, decimals), decimals) == t.amount);
}

void RunDecision(std::string_view line) {
  const absl::StatusOr<Decision> decision = ParseDecision(line);
  if (!decision.ok()) return;
  const std::string text = FormatDecision(*decision);
  const absl::StatusOr<Decision> again =
      ParseDecision(std::string_view(text).substr(0, text.size() - 1));
  FIRSTSEEN_CHECK(again.ok() && FormatDecision(*again) == text);
}

void Run(uint8_t choice, std::string_view bytes) {
  static const BillingConfig* const config = new BillingConfig(MakeConfig());
  static const TransactionSchema* const schema = new TransactionSchema(*config);
  if ((choice & 2) != 0) return RunDecision(bytes);
  const std::string path =
      "/tmp/firstseen_fuzz." + std::to_string(getpid()) + ((choice & 1) != 0 ? ".ndjson" : ".txt");
  std::string content((choice & 5) == 0 ? kHeader : std::string_view());
  content += bytes;
  {
    auto file = FileSystem::Posix()->Open(path, OpenMode::kCreate);
    FIRSTSEEN_CHECK(file.ok() && (*file)->Write(0, content).ok());
  }
  auto reader = TransactionReader::Open(FileSystem::Posix(), PlainInput(path), *schema);
  InboxRow row;
  while (reader.ok()) {
    const absl::StatusOr<bool> more = (*reader)->Next(&row);
    FIRSTSEEN_CHECK(more.ok());
    if (!*more) break;
    if (row.status.ok()) CheckRow(row, *config);
  }
  FIRSTSEEN_CHECK(FileSystem::Posix()->Remove(path).ok());
}

}  // namespace
}  // namespace firstseen

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  firstseen::Run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
