// `bill resend`: see bill_run.h.
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time_text.h"
#include "billing/bill_book.h"
#include "billing/bill_file.h"
#include "billing/bill_run.h"
#include "billing/ledger.h"
#include "billing/output_file.h"

namespace firstseen {
namespace {

absl::StatusOr<absl::Time> ParsePeriod(const std::string& text, absl::TimeZone zone) {
  constexpr size_t kMinuteDigits = 12;  // yyyyMMddHHmm
  if (text.size() == kMinuteDigits && text.find_first_not_of("0123456789") == std::string::npos) {
    return ParseEventTime(fmt::format("{}-{}-{} {}:{}:00", text.substr(0, 4), text.substr(4, 2),
                                      text.substr(6, 2), text.substr(8, 2), text.substr(10, 2)),
                          zone);
  }
  return ParseEventTime(text, zone);
}

absl::Status CheckPartner(const BillingConfig& config, const std::string& name) {
  std::vector<std::string_view> names;
  for (const PartnerConfig& partner : config.partners) {
    if (partner.name == name) return absl::OkStatus();
    names.push_back(partner.name);
  }
  return InvalidArgument("--partner: no partner of this name in {}; there are {}", config.path,
                         fmt::join(names, ", "));
}

absl::Status CopyRows(FileSystem* files, const BillingConfig& config, const BillRow& original,
                      BillRow* resend) {
  const std::string path = config.bills.directory + "/" + original.file;
  ASSIGN_OR_RETURN(const std::unique_ptr<BillFileReader> reader,
                   BillFileReader::Open(files, path, config.zone, config.bills.amount_decimals));
  ASSIGN_OR_RETURN(const std::unique_ptr<BillFileWriter> writer,
                   BillFileWriter::Create(files, config, *resend, reader->delimiter()));
  RETURN_IF_ERROR(writer->SetColumns(reader->header().columns_line));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) break;
    RETURN_IF_ERROR(writer->AppendRaw(reader->line(), reader->amount()));
  }
  if (reader->sha256() != original.sha256) {
    return DataLoss("{}: not what was written: its sha256 differs from the ledger's", path);
  }
  return writer->Commit(resend);
}

// What an earlier run began and did not end. The caller holds the lock, so none is in the making.
absl::Status RemoveUnfinished(FileSystem* files, const BillingConfig& config, Ledger* ledger) {
  ASSIGN_OR_RETURN(const std::vector<BillRow> unfinished,
                   ledger->Bills(BillKind::kResend, BillState::kClosed));
  for (const BillRow& bill : unfinished) {
    const std::string path = config.bills.directory + "/" + bill.file;
    for (const std::string& name : {path + std::string(kMarkerSuffix),
                                    path + std::string(kSha256Suffix), path, path + ".tmp"}) {
      RETURN_IF_ERROR(RemoveIfThere(files, name));
    }
    RETURN_IF_ERROR(ledger->ForgetBill(bill.serial));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResendReport> ResendBill(const BillingConfig& config, const ResendOptions& options) {
  const absl::StatusOr<absl::Time> period = ParsePeriod(options.period, config.zone);
  if (!period.ok()) {
    return InvalidArgument("--period: {}; or yyyyMMddHHmm, as in the names of bill files",
                           Message(period.status()));
  }
  RETURN_IF_ERROR(CheckPartner(config, options.partner));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<FileLock> lock,
      options.files->Lock(config.bills.directory + "/.resend.lock", "firstseen bill resend"));
  ASSIGN_OR_RETURN(const std::unique_ptr<Ledger> ledger,
                   Ledger::Open(options.files, config.ledger.connection, LedgerOpen::kExisting));
  RETURN_IF_ERROR(RemoveUnfinished(options.files, config, ledger.get()));
  const int64_t period_ms = BillBook(config, ledger.get()).PeriodOf(absl::ToUnixMillis(*period));
  ASSIGN_OR_RETURN(const std::optional<BillRow> original,
                   ledger->FindPeriod(options.partner, period_ms, BillKind::kBill));
  if (!original.has_value() || original->state != BillState::kWritten) {
    return NotFound(
        "no bill file of partner {} for the period that begins {}: it is not closed, had no "
        "transactions (bills.empty_files), or is older than bills.keep_days",
        options.partner, FormatEventTime(absl::FromUnixMillis(period_ms), config.zone));
  }
  BillRow resend;
  resend.kind = BillKind::kResend;
  resend.partner = original->partner;
  resend.period_ms = period_ms;
  resend.original = original->serial;
  resend.state = BillState::kClosed;
  RETURN_IF_ERROR(ledger->Transact([&]() -> absl::Status {
    ASSIGN_OR_RETURN(resend.serial, ledger->NewBillSerial());
    resend.file = BillFileName(config.bills, config.zone, resend);
    return ledger->InsertBill(resend);
  }));
  const std::string path = config.bills.directory + "/" + resend.file;
  const std::string directory = ParentDirectory(path);
  RETURN_IF_ERROR(CopyRows(options.files, config, *original, &resend));
  RETURN_IF_ERROR(options.files->SyncDirectory(directory));
  RETURN_IF_ERROR(WriteFileAtomically(options.files, path + std::string(kSha256Suffix),
                                      Sha256Line(path, resend.sha256)));
  RETURN_IF_ERROR(
      WriteFileAtomically(options.files, path + std::string(kMarkerSuffix), kMarkerContent));
  resend.state = BillState::kWritten;
  resend.written_ms = absl::ToUnixMillis(Clock::Real()->Now());
  RETURN_IF_ERROR(ledger->UpdateBill(resend));
  spdlog::info("{}: sent again as {}", original->file, resend.file);
  return ResendReport{path, resend.serial, original->serial, static_cast<uint64_t>(resend.rows),
                      resend.total};
}

}  // namespace firstseen
