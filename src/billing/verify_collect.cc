#include "billing/verify_collect.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/checksum.h"
#include "base/status.h"
#include "base/time_text.h"
#include "billing/bill_file.h"
#include "billing/ledger.h"
#include "billing/ledger_dialect.h"
#include "billing/verify_records.h"
#include "engine/window.h"
#include "ingest/row_mapper.h"
#include "ingest/source.h"

namespace firstseen {
namespace {

constexpr uint64_t kProgressRows = 1 << 16;

bool IsBeside(std::string_view name) {
  return name.starts_with('.') || name.ends_with(kSha256Suffix) || name.ends_with(kMarkerSuffix) ||
         name.ends_with(".tmp");
}

// Differences in files are findings; anything else means that nothing can be said.
bool IsFinding(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

void AddFinding(std::string_view what, VerifyFinding* finding) {
  ++finding->count;
  if (finding->listed.size() < VerifyFinding::kListed) finding->listed.emplace_back(what);
}

VerifyCollector::VerifyCollector(const BillingConfig& config, const VerifyOptions& options,
                                 ExternalSorter* serials, ExternalSorter* members,
                                 VerifyReport* report)
    : config_(config),
      options_(options),
      serials_(serials),
      members_(members),
      report_(report),
      schema_(config) {
  for (const SetConfig& set : config.sets) {
    encoders_.emplace_back(set.options.fields, set.options.member_encoding);
    zones_.push_back(LoadTimeZone(set.options.time_zone).value_or(absl::UTCTimeZone()));
  }
}

void VerifyCollector::Progress(std::string_view phase, uint64_t rows) {
  if (rows % kProgressRows == 0 && options_.progress) options_.progress(phase, rows);
}

int64_t VerifyCollector::ClosedUntil(const std::string& partner) const {
  const auto found = closed_until_.find(partner);
  return found == closed_until_.end() ? 0 : found->second;
}

absl::Status VerifyCollector::ReadBills() {
  RETURN_IF_ERROR(ReadBillDirectory(config_.bills.directory));
  CheckResent();
  return CheckLedgerBills();
}

absl::Status VerifyCollector::ReadBillDirectory(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.files->List(directory));
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    if (options_.files->List(path).ok()) {
      RETURN_IF_ERROR(ReadBillDirectory(path));
    } else if (!IsBeside(name)) {
      RETURN_IF_ERROR(ReadBillFile(path));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadBillFile(const std::string& path) {
  absl::StatusOr<std::unique_ptr<BillFileReader>> reader =
      BillFileReader::Open(options_.files, path, config_.zone, config_.bills.amount_decimals);
  absl::Status status = reader.status();
  if (status.ok()) status = ReadBillRows(path, reader->get());
  if (status.ok()) status = CheckSha256(options_.files, path, (*reader)->sha256());
  if (!IsFinding(status)) return status;
  AddFinding(Message(status), &report_->bad_files);
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadBillRows(const std::string& path, BillFileReader* reader) {
  const BillFileHeader& header = reader->header();
  ++report_->bill_files;
  const size_t serial = reader->Column("biz_seq_no");
  const size_t order_no = reader->Column("order_no");
  const size_t app_id = reader->Column("app_id");
  const size_t event_time = reader->Column("event_time");
  const size_t none = header.columns.size();
  if (header.kind != BillKind::kResend && !row_checksums_.try_emplace(header.serial, 0).second) {
    return DataLoss("{}: another file has the same serial", path);
  }
  uint64_t checksum = Checksum(header.columns_line);
  BilledFact fact;
  fact.kind = header.kind;
  fact.bill_serial = header.serial;
  fact.partner = header.partner;
  int64_t last_event_ms = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (!more) break;
    checksum = Checksum(reader->line(), checksum);
    if (header.kind == BillKind::kResend) continue;
    fact.amount = reader->amount();
    if (order_no != none) fact.order_no = reader->values()[order_no];
    if (app_id != none) fact.app_id = reader->values()[app_id];
    if (event_time != none) {
      ASSIGN_OR_RETURN(const absl::Time time,
                       ParseEventTime(reader->values()[event_time], config_.zone));
      fact.event_ms = absl::ToUnixMillis(time);
      if (*fact.event_ms < last_event_ms) {
        return DataLoss("{}: rows are not in the order of event time", path);
      }
      last_event_ms = *fact.event_ms;
    }
    RETURN_IF_ERROR(serials_->Add(PackFact(reader->values()[serial], fact)));
  }
  if (header.kind == BillKind::kResend) {
    resent_.push_back({path, header.original, checksum});
    return absl::OkStatus();
  }
  if (header.kind == BillKind::kBill) {
    int64_t& until = closed_until_[header.partner];
    until = std::max(until, header.period_end_ms);
  }
  row_checksums_[header.serial] = checksum;
  return absl::OkStatus();
}

void VerifyCollector::CheckResent() {
  for (const Resent& resent : resent_) {
    const auto original = row_checksums_.find(resent.original);
    if (original == row_checksums_.end() || original->second != resent.checksum) {
      AddFinding(fmt::format("{}: not the rows of the file it repeats", resent.path),
                 &report_->bad_files);
    }
  }
}

// The ledger knows which files were written: one that is gone would otherwise, if it was the last
// of its partner, look like a period not closed yet.
absl::Status VerifyCollector::CheckLedgerBills() {
  ASSIGN_OR_RETURN(const LedgerDialect* dialect, LedgerDialect::Find(config_.ledger.connection));
  const std::string file = dialect->DatabaseFile(config_.ledger.connection);
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const bool exists, options_.files->Exists(file));
    if (!exists) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Ledger> ledger,
                   Ledger::Open(options_.files, config_.ledger.connection));
  for (const BillKind kind : {BillKind::kBill, BillKind::kAdjustments}) {
    ASSIGN_OR_RETURN(const std::vector<BillRow> written, ledger->Bills(kind, BillState::kWritten));
    for (const BillRow& bill : written) {
      if (row_checksums_.contains(bill.serial)) continue;
      AddFinding(
          fmt::format("{}: written, says the ledger, and not there or not readable", bill.file),
          &report_->bad_files);
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadTransactions() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.files->List(config_.inbox.done));
  for (const std::string& name : names) {
    if (name.ends_with(".tmp")) continue;
    if (name.ends_with(kDecisionsSuffix)) {
      const std::string base = name.substr(0, name.size() - kDecisionsSuffix.size());
      int64_t inbox_id = 0;
      RETURN_IF_ERROR(ReadDecisionFile(config_.inbox.done + "/" + name, &inbox_id));
      ASSIGN_OR_RETURN(const bool there, options_.files->Exists(config_.inbox.done + "/" + base));
      if (!there || !options_.transactions.empty()) continue;
      RETURN_IF_ERROR(ReadTransactionFile(PlainInput(config_.inbox.done + "/" + base), inbox_id));
    } else if (options_.transactions.empty()) {
      ASSIGN_OR_RETURN(const bool decided, options_.files->Exists(config_.inbox.done + "/" + name +
                                                                  std::string(kDecisionsSuffix)));
      if (!decided) {
        RETURN_IF_ERROR(
            ReadTransactionFile(PlainInput(config_.inbox.done + "/" + name), std::nullopt));
      }
    }
  }
  if (options_.transactions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(options_.files, options_.transactions));
  for (const InputFile& file : listing.files) {
    if (file.path.ends_with(kDecisionsSuffix)) continue;
    RETURN_IF_ERROR(ReadTransactionFile(file, std::nullopt));
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadDecisionFile(const std::string& path, int64_t* inbox_id) {
  return ReadDecisions(options_.files, path, [&](int64_t id, const Decision& decision) {
    *inbox_id = id;
    if (decision.kind == DecisionKind::kFailed) ++report_->rejected;
    if (decision.serial.empty()) return absl::OkStatus();
    return serials_->Add(PackFact(decision.serial, DecisionFact{id, decision}));
  });
}

absl::Status VerifyCollector::ReadTransactionFile(const InputFile& file,
                                                  std::optional<int64_t> inbox_id) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TransactionReader> reader,
                   TransactionReader::Open(options_.files, file, schema_));
  InboxRow row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) return absl::OkStatus();
    Progress("transactions", ++report_->transaction_rows);
    // Bad rows have no decision but "failed"; a good one that looks bad by now is found missing.
    if (row.status.ok()) RETURN_IF_ERROR(AddTransaction(row, inbox_id));
  }
}

absl::Status VerifyCollector::AddTransaction(const InboxRow& row, std::optional<int64_t> inbox_id) {
  const Transaction& t = row.transaction;
  TransactionFact fact;
  if (inbox_id.has_value()) fact.ordinal = Ordinal{*inbox_id, row.line};
  fact.status_class = t.status_class;
  fact.order_no = t.order_no;
  fact.app_id = t.app_id;
  fact.event_ms = absl::ToUnixMillis(t.event_time);
  fact.amount = t.amount;
  if (t.status_class == StatusClass::kCounting && !t.rule->set.empty()) {
    const SetConfig* set = config_.FindSet(t.rule->set);
    fact.set = set - config_.sets.data();
    fact.window = WindowOf(set->options.window, t.event_time, zones_[fact.set]);
    const std::vector<std::string_view> fields(t.fields.begin(), t.fields.end());
    const absl::Status encoded = encoders_[fact.set].Encode(fields, &fact.member);
    if (!encoded.ok()) return absl::OkStatus();  // as the store: a bad row
  }
  return serials_->Add(PackFact(t.serial, fact));
}

absl::StatusOr<int64_t> VerifyCollector::HistorySet() const {
  if (options_.history_set.empty()) {
    if (config_.sets.size() == 1) return 0;
    return InvalidArgument("there are {} sets in the configuration: say whose history it is",
                           config_.sets.size());
  }
  const SetConfig* set = config_.FindSet(options_.history_set);
  if (set == nullptr) return InvalidArgument("no set {} in [[sets]]", options_.history_set);
  return set - config_.sets.data();
}

absl::Status VerifyCollector::ReadHistory() {
  if (options_.history.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t position, HistorySet());
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(options_.files, options_.history));
  for (const InputFile& file : listing.files) {
    RETURN_IF_ERROR(ReadHistoryFile(file, config_.sets[position], position));
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadHistoryFile(const InputFile& file, const SetConfig& set,
                                              int64_t set_position) {
  ASSIGN_OR_RETURN(RowMapper mapper,
                   RowMapper::Create(set.options, options_.history_mapping, file));
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(options_.files, file));
  const bool has_token = !options_.history_mapping.token_column.empty();
  std::vector<std::string_view> fields(mapper.field_count());
  Line line;
  MemberEvent event;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
    if (!more) return absl::OkStatus();
    WindowId window = 0;
    std::string_view token;
    RejectReason reason;
    const RowKind kind = mapper.Map(line, fields.data(), &window, &token, &reason);
    if (kind != RowKind::kBlank) Progress("history", ++report_->history_rows);
    if (kind == RowKind::kRejected) ++report_->history_rejected;
    if (kind == RowKind::kRow) {
      RETURN_IF_ERROR(encoders_[set_position].Encode(fields, &member_));
      // Of equal members the first row is the owner; without tokens they are all the same.
      event.ordinal.line = has_token ? report_->history_rows : 0;
      event.serial = token;
      RETURN_IF_ERROR(members_->Add(PackEvent(set_position, window, member_, event)));
    }
    mapper.Reset();
  }
}

}  // namespace firstseen
