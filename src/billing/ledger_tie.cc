#include "billing/ledger_tie.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "billing/bill_file.h"
#include "billing/decisions.h"

namespace firstseen {
namespace {

constexpr std::string_view kTieMagic = "firstseen-billing-ledger 1\n";
constexpr std::string_view kAcceptFlag = "--accept-ledger";

std::string TiePath(const BillingConfig& config) {
  return fmt::format("{}/{}", config.store.data, kLedgerTieFile);
}

// The id in the data directory; empty when there is none.
absl::StatusOr<std::string> ReadTie(const BillingConfig& config, FileSystem* files) {
  const std::string path = TiePath(config);
  const absl::StatusOr<std::string> text = ReadFile(files, path);
  if (absl::IsNotFound(text.status())) return std::string();
  RETURN_IF_ERROR(text.status());
  if (!text->starts_with(kTieMagic) || !text->ends_with('\n') ||
      text->size() <= kTieMagic.size() + 1) {
    return DataLoss("{}: not what was written; restore it from the backup of the data directory",
                    path);
  }
  return text->substr(kTieMagic.size(), text->size() - kTieMagic.size() - 1);
}

absl::StatusOr<bool> HoldsAnything(FileSystem* files, const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = files->List(directory);
  if (absl::IsNotFound(names.status())) return false;
  RETURN_IF_ERROR(names.status());
  return std::ranges::any_of(*names, [](const std::string& n) { return !n.starts_with('.'); });
}

// What tells of an older ledger; empty when nothing does.
absl::StatusOr<std::string> OlderLedger(const BillingConfig& config, FileSystem* files) {
  ASSIGN_OR_RETURN(const std::string tie, ReadTie(config, files));
  if (!tie.empty()) return TiePath(config);
  for (const std::string& directory : {config.inbox.done, config.bills.directory}) {
    ASSIGN_OR_RETURN(const bool holds, HoldsAnything(files, directory));
    if (holds) return directory;
  }
  return std::string();
}

absl::Status LedgerIsGone(const BillingConfig& config, std::string_view evidence) {
  return FailedPrecondition(
      "{} is missing or empty, but {} tells of bills that went out: restore the ledger from your "
      "backup, or check ledger.connection. If it is lost for good, `firstseen bill run {}` begins "
      "a new one behind these bills (see docs/billing.md)",
      config.ledger.connection, evidence, kAcceptFlag);
}

// Where a new ledger beside older bills goes on.
class OlderBills {
 public:
  OlderBills(const BillingConfig& config, FileSystem* files) : config_(config), files_(files) {}

  absl::StatusOr<LedgerStart> Find() {
    RETURN_IF_ERROR(ReadBills(config_.bills.directory));
    RETURN_IF_ERROR(ReadDecisionFiles());
    for (const auto& [partner, next_ms] : start_.next_periods) {
      start_.purge_line_ms = std::max(start_.purge_line_ms, next_ms);
    }
    return start_;
  }

 private:
  absl::Status ReadBills(const std::string& directory) {
    const absl::StatusOr<std::vector<std::string>> names = files_->List(directory);
    if (absl::IsNotFound(names.status())) return absl::OkStatus();
    RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      const std::string path = directory + "/" + name;
      if (files_->List(path).ok()) {
        RETURN_IF_ERROR(ReadBills(path));
      } else if (!IsBesideBill(name)) {
        ASSIGN_OR_RETURN(
            const std::unique_ptr<BillFileReader> reader,
            BillFileReader::Open(files_, path, config_.zone, config_.bills.amount_decimals));
        TakeBill(reader->header());
      }
    }
    return absl::OkStatus();
  }

  void TakeBill(const BillFileHeader& header) {
    start_.bill_serial = std::max(start_.bill_serial, header.serial);
    if (header.kind != BillKind::kBill) return;
    int64_t& next_ms = start_.next_periods[header.partner];
    next_ms = std::max(next_ms, header.period_end_ms);
  }

  absl::Status ReadDecisionFiles() {
    const std::string& done = config_.inbox.done;
    ASSIGN_OR_RETURN(const bool holds, HoldsAnything(files_, done));
    if (!holds) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(done));
    for (const std::string& name : names) {
      if (!name.ends_with(kDecisionsSuffix)) continue;
      const absl::StatusOr<FileDigest> read = ReadDecisions(
          files_, done + "/" + name, [this](int64_t inbox_id, const Decision& decision) {
            start_.inbox_id = std::max(start_.inbox_id, inbox_id);
            start_.bill_serial = std::max(start_.bill_serial, decision.bill_serial);
            return absl::OkStatus();
          });
      RETURN_IF_ERROR(read.status());
    }
    return absl::OkStatus();
  }

  const BillingConfig& config_;
  FileSystem* files_;
  LedgerStart start_;
};

absl::Status CheckTie(const BillingConfig& config, FileSystem* files, bool accept, Ledger* ledger) {
  ASSIGN_OR_RETURN(const std::string tie, ReadTie(config, files));
  ASSIGN_OR_RETURN(const std::optional<std::string> id, ledger->Note(kLedgerIdNote));
  if (!id.has_value()) return DataLoss("{}: it has no id", config.ledger.connection);
  if (tie == *id) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool used, ledger->Used());
  ASSIGN_OR_RETURN(const std::string evidence, OlderLedger(config, files));
  if (!used && !evidence.empty()) {
    if (!accept) return LedgerIsGone(config, evidence);
    ASSIGN_OR_RETURN(const LedgerStart start, OlderBills(config, files).Find());
    RETURN_IF_ERROR(ledger->StartBehind(start));
    spdlog::warn(
        "a new ledger goes on behind bill {}: transactions before its period count as too "
        "old (ledger.too_old)",
        start.bill_serial);
  } else if (used && !accept) {
    return FailedPrecondition(
        "{} does not belong to the data directory {} (its file {} {}): restore both from the same "
        "backup, or check ledger.connection and store.data. `firstseen bill run {}` takes them as "
        "they are (see docs/billing.md)",
        config.ledger.connection, config.store.data, kLedgerTieFile,
        tie.empty() ? "is missing" : "names another ledger", kAcceptFlag);
  }
  if (used) spdlog::warn("ledger and data directory were brought together by {}", kAcceptFlag);
  return WriteFileAtomically(files, TiePath(config), fmt::format("{}{}\n", kTieMagic, *id));
}

struct Setting {
  std::string_view key;
  std::string value;
};

std::vector<Setting> Settings(const BillsConfig& bills) {
  return {{"bills.period_minutes", fmt::format("{}", bills.period_minutes)},
          {"bills.time_zone", bills.time_zone},
          {"bills.amount_decimals", fmt::format("{}", bills.amount_decimals)}};
}

// Periods can be cut anew only between two that are closed, on a line that both cuts share.
absl::Status CheckPeriodsCanChange(const BillingConfig& config, Ledger* ledger) {
  for (const BillState state : {BillState::kOpen, BillState::kClosed}) {
    ASSIGN_OR_RETURN(const std::vector<BillRow> bills, ledger->Bills(BillKind::kBill, state));
    if (bills.empty()) continue;
    return InvalidArgument(
        "{}: bills.period_minutes cannot change while bill {} waits for its period's end; set it "
        "back, and change it when all bills are written",
        config.path, bills.front().serial);
  }
  ASSIGN_OR_RETURN(const auto next_periods, ledger->NextPeriods());
  for (const auto& [partner, next_ms] : next_periods) {
    if (next_ms % (config.bills.period_minutes * 60'000) == 0) continue;
    return InvalidArgument(
        "{}: bills.period_minutes cannot change now: the next period of partner {} would not begin "
        "where the last one ended; set it back until it does",
        config.path, partner);
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const BillingConfig& config, bool accept, Ledger* ledger) {
  ASSIGN_OR_RETURN(const bool used, ledger->Used());
  std::vector<Setting> changed;
  for (const Setting& setting : Settings(config.bills)) {
    ASSIGN_OR_RETURN(const std::optional<std::string> known, ledger->Note(setting.key));
    if (known == setting.value) continue;
    changed.push_back(setting);
    if (!used || !known.has_value()) continue;
    if (!accept) {
      return InvalidArgument(
          "{}: {} is {}, but the ledger was begun with {}, and its rows and bills rest on that; "
          "set it back, or accept what follows (see docs/billing.md) with `firstseen bill run {}`",
          config.path, setting.key, setting.value, *known, kAcceptFlag);
    }
    if (setting.key == "bills.period_minutes") {
      RETURN_IF_ERROR(CheckPeriodsCanChange(config, ledger));
    }
    spdlog::warn("{} is {} from now on, and was {}", setting.key, setting.value, *known);
  }
  if (changed.empty()) return absl::OkStatus();
  return ledger->Transact([&]() -> absl::Status {
    for (const Setting& setting : changed) {
      RETURN_IF_ERROR(ledger->SetNote(setting.key, setting.value));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ledger>> OpenRunLedger(const BillingConfig& config,
                                                      FileSystem* files, bool accept) {
  absl::StatusOr<std::unique_ptr<Ledger>> ledger =
      Ledger::Open(files, config.ledger.connection, LedgerOpen::kExisting);
  if (absl::IsNotFound(ledger.status())) {
    ASSIGN_OR_RETURN(const std::string evidence, OlderLedger(config, files));
    if (!evidence.empty() && !accept) return LedgerIsGone(config, evidence);
    ledger = Ledger::Open(files, config.ledger.connection, LedgerOpen::kCreate);
  }
  RETURN_IF_ERROR(ledger.status());
  RETURN_IF_ERROR(CheckTie(config, files, accept, ledger->get()));
  RETURN_IF_ERROR(CheckSettings(config, accept, ledger->get()));
  return ledger;
}

}  // namespace firstseen
