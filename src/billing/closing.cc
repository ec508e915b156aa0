#include "billing/closing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "billing/bill_file.h"
#include "billing/output_file.h"

namespace firstseen {

absl::Status Closing::Recover() {
  RETURN_IF_ERROR(MakeDirectories(context_.files, context_.config.bills.directory));
  for (const BillKind kind : {BillKind::kBill, BillKind::kAdjustments}) {
    ASSIGN_OR_RETURN(const std::vector<BillRow> closed,
                     context_.ledger->Bills(kind, BillState::kClosed));
    for (size_t begin = 0; begin < closed.size(); begin += kBatch) {
      const size_t end = std::min(closed.size(), begin + kBatch);
      RETURN_IF_ERROR(WriteFiles({closed.begin() + begin, closed.begin() + end}));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Closing::CloseUntil(absl::Time now) {
  const int64_t length_ms = context_.book->period_length_ms();
  const int64_t last_ms = context_.book->PeriodOf(
      absl::ToUnixMillis(now) - context_.config.bills.grace_seconds * 1'000 - length_ms);
  uint64_t closed = 0;
  for (const PartnerConfig& partner : context_.config.partners) {
    ASSIGN_OR_RETURN(const uint64_t of_partner, ClosePartner(partner.name, last_ms));
    closed += of_partner;
  }
  return closed;
}

absl::StatusOr<uint64_t> Closing::ClosePartner(const std::string& partner, int64_t last_ms) {
  const std::map<int64_t, int64_t>& open = context_.book->OpenBills(partner);
  std::optional<int64_t> next_ms = context_.book->NextPeriod(partner);
  if (!next_ms.has_value() && !open.empty()) next_ms = open.begin()->first;
  if (!next_ms.has_value()) return 0;
  const int64_t first_ms = *next_ms;
  while (*next_ms <= last_ms) {
    ASSIGN_OR_RETURN(std::vector<BillRow> bills, CloseBatch(partner, last_ms, &*next_ms));
    RETURN_IF_ERROR(WriteFiles(std::move(bills)));
  }
  return (*next_ms - first_ms) / context_.book->period_length_ms();
}

absl::StatusOr<std::vector<BillRow>> Closing::CloseBatch(const std::string& partner,
                                                         int64_t last_ms, int64_t* next_ms) {
  RETURN_IF_ERROR(context_.Step("close periods"));
  std::vector<BillRow> bills;
  const int64_t first_ms = *next_ms;
  RETURN_IF_ERROR(context_.ledger->Transact([&]() -> absl::Status {
    ASSIGN_OR_RETURN(bills, PlanBatch(partner, last_ms, next_ms));
    RETURN_IF_ERROR(AddAdjustments(partner, first_ms, &bills));
    for (const BillRow& bill : bills) context_.book->Close(partner, bill.period_ms);
    return context_.book->Advance(partner, *next_ms);
  }));
  spdlog::debug("{}: {} periods closed", partner,
                (*next_ms - first_ms) / context_.book->period_length_ms());
  return bills;
}

absl::StatusOr<std::vector<BillRow>> Closing::PlanBatch(const std::string& partner, int64_t last_ms,
                                                        int64_t* next_ms) {
  const BillsConfig& config = context_.config.bills;
  const int64_t length_ms = context_.book->period_length_ms();
  const std::map<int64_t, int64_t>& open = context_.book->OpenBills(partner);
  std::vector<BillRow> bills;
  while (*next_ms <= last_ms && bills.size() < kBatch) {
    const auto found = open.lower_bound(*next_ms);
    const int64_t silence_end_ms =
        found == open.end() ? last_ms + length_ms : std::min(found->first, last_ms + length_ms);
    const int64_t silent = (silence_end_ms - *next_ms) / length_ms;
    if (silent > 0 && (!config.empty_files || silent > config.empty_files_max)) {
      if (config.empty_files) {
        spdlog::warn("{}: {} periods without transactions get no file (bills.empty_files_max)",
                     partner, silent);
        context_.report->empty_periods_left_out += silent;
      }
      *next_ms = silence_end_ms;
      continue;
    }
    BillRow bill;
    bill.partner = partner;
    bill.period_ms = *next_ms;
    if (silent == 0) bill.serial = found->second;
    RETURN_IF_ERROR(FreezeBill(&bill, silent > 0));
    bills.push_back(std::move(bill));
    *next_ms += length_ms;
  }
  return bills;
}

absl::Status Closing::FreezeBill(BillRow* bill, bool is_new) {
  if (is_new) {
    ASSIGN_OR_RETURN(bill->serial, context_.ledger->NewBillSerial());
  }
  bill->state = BillState::kClosed;
  bill->file = BillFileName(context_.config.bills, context_.config.zone, *bill);
  return is_new ? context_.ledger->InsertBill(*bill) : context_.ledger->UpdateBill(*bill);
}

// Adjustments that wait go to a file of the first period that is closed now.
absl::Status Closing::AddAdjustments(const std::string& partner, int64_t period_ms,
                                     std::vector<BillRow>* bills) {
  ASSIGN_OR_RETURN(const std::vector<std::string> waiting, context_.ledger->PartnersToAdjust());
  if (std::ranges::count(waiting, partner) == 0) return absl::OkStatus();
  BillRow bill;
  bill.kind = BillKind::kAdjustments;
  bill.partner = partner;
  bill.period_ms = period_ms;
  RETURN_IF_ERROR(FreezeBill(&bill, true));
  RETURN_IF_ERROR(context_.ledger->AssignAdjustments(partner, bill.serial));
  bills->push_back(std::move(bill));
  return absl::OkStatus();
}

absl::Status Closing::WriteFiles(std::vector<BillRow> bills) {
  if (bills.empty()) return absl::OkStatus();
  for (BillRow& bill : bills) RETURN_IF_ERROR(WriteContent(&bill));
  RETURN_IF_ERROR(context_.Step("sync bill files"));
  RETURN_IF_ERROR(SyncDirectories(bills));
  RETURN_IF_ERROR(WriteBeside(bills, kSha256Suffix));
  RETURN_IF_ERROR(WriteBeside(bills, kMarkerSuffix));
  RETURN_IF_ERROR(context_.Step("mark bill files as written"));
  const int64_t now_ms = absl::ToUnixMillis(context_.options.now.value_or(Clock::Real()->Now()));
  RETURN_IF_ERROR(context_.ledger->Transact([&]() -> absl::Status {
    for (BillRow& bill : bills) {
      bill.state = BillState::kWritten;
      bill.written_ms = now_ms;
      RETURN_IF_ERROR(context_.ledger->UpdateBill(bill));
    }
    return absl::OkStatus();
  }));
  for (const BillRow& bill : bills) Count(bill);
  return absl::OkStatus();
}

absl::Status Closing::WriteContent(BillRow* bill) {
  const std::string path = Path(*bill);
  ASSIGN_OR_RETURN(const bool complete, context_.files->Exists(path + std::string(kMarkerSuffix)));
  if (complete) return ReadBack(bill);
  RETURN_IF_ERROR(context_.Step("write bill file"));
  ASSIGN_OR_RETURN(const std::unique_ptr<BillFileWriter> writer,
                   BillFileWriter::Create(context_.files, context_.config, *bill));
  if (bill->kind == BillKind::kAdjustments) {
    RETURN_IF_ERROR(context_.ledger->ForAdjustments(
        bill->serial, [&](const AdjustmentRow& row) { return writer->Append(row); }));
  } else {
    RETURN_IF_ERROR(context_.ledger->ForBillRows(
        bill->serial, [&](const LedgerRow& row) { return writer->Append(row); }));
  }
  RETURN_IF_ERROR(context_.Step("rename bill file"));
  return writer->Commit(bill);
}

// A run stopped after the marker and before the ledger knew: the partner may have the file.
absl::Status Closing::ReadBack(BillRow* bill) {
  const std::string path = Path(*bill);
  ASSIGN_OR_RETURN(const std::unique_ptr<BillFileReader> reader,
                   BillFileReader::Open(context_.files, path, context_.config.zone,
                                        context_.config.bills.amount_decimals));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) break;
  }
  bill->rows = static_cast<int64_t>(reader->rows());
  bill->total = FormatAmount(reader->total(), context_.config.bills.amount_decimals);
  bill->sha256 = reader->sha256();
  return CheckSha256(context_.files, path, bill->sha256);
}

absl::Status Closing::WriteBeside(const std::vector<BillRow>& bills, std::string_view suffix) {
  for (const BillRow& bill : bills) {
    const std::string path = Path(bill);
    ASSIGN_OR_RETURN(const bool complete,
                     context_.files->Exists(path + std::string(kMarkerSuffix)));
    if (complete) continue;
    RETURN_IF_ERROR(context_.Step(fmt::format("write {}", suffix)));
    ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                     OutputFile::Create(context_.files, path + std::string(suffix)));
    RETURN_IF_ERROR(file->Append(suffix == kSha256Suffix ? Sha256Line(path, bill.sha256)
                                                         : std::string(kMarkerContent)));
    RETURN_IF_ERROR(file->Commit());
  }
  RETURN_IF_ERROR(context_.Step(fmt::format("sync {}", suffix)));
  return SyncDirectories(bills);
}

absl::Status Closing::SyncDirectories(const std::vector<BillRow>& bills) {
  std::set<std::string> directories;
  for (const BillRow& bill : bills) directories.insert(ParentDirectory(Path(bill)));
  for (const std::string& directory : directories) {
    RETURN_IF_ERROR(context_.files->SyncDirectory(directory));
  }
  return absl::OkStatus();
}

void Closing::Count(const BillRow& bill) {
  BillRunReport& report = *context_.report;
  if (bill.kind == BillKind::kAdjustments) {
    ++report.adjustment_files;
    return;
  }
  ++report.bill_files;
  report.empty_bill_files += bill.rows == 0;
  report.billed_rows += bill.rows;
}

}  // namespace firstseen
