#include "billing/verify_collect.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time_text.h"
#include "billing/bill_file.h"
#include "billing/ledger.h"
#include "billing/verify_records.h"
#include "engine/window.h"
#include "ingest/row_mapper.h"
#include "ingest/source.h"

namespace firstseen {
namespace {

constexpr uint64_t kProgressRows = 1 << 16;

// Bytes of control characters as \\xNN: serials of damaged files may hold anything.
std::string Printable(std::string_view text) {
  std::string printable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, in UTF-8 0xC2 and the byte itself, control terminals too.
    const bool second = i > 0 && text[i - 1] == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (byte < 0x20 || byte == 0x7f || second) {
      printable += fmt::format("\\x{:02x}", byte);
    } else {
      printable += text[i];
    }
  }
  return printable;
}

BillingConfig ExportConfig(const BillingConfig& config, const VerifyOptions& options) {
  BillingConfig changed = config;
  if (options.transactions_encoding.has_value()) {
    changed.inbox.encoding =
        *options.transactions_encoding == TextEncoding::kGb18030 ? "gb18030" : "utf-8";
  }
  if (options.transactions_delimiter.has_value()) {
    changed.inbox.delimiter = *options.transactions_delimiter;
  }
  return changed;
}

// Differences in files are findings; anything else means that nothing can be said.
bool IsFinding(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status) ||
         absl::IsFailedPrecondition(status);
}

}  // namespace

void AddFinding(std::string_view what, VerifyFinding* finding) {
  ++finding->count;
  if (finding->listed.size() < VerifyFinding::kListed) finding->listed.push_back(Printable(what));
}

VerifyCollector::VerifyCollector(const BillingConfig& config, const VerifyOptions& options,
                                 ExternalSorter* serials, ExternalSorter* members,
                                 VerifyReport* report)
    : config_(config),
      options_(options),
      serials_(serials),
      members_(members),
      report_(report),
      now_ms_(absl::ToUnixMillis(options.now.value_or(Clock::Real()->Now()))),
      schema_(config),
      export_config_(ExportConfig(config, options)),
      export_schema_(export_config_) {
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
    for (const std::string_view suffix : {kMarkerSuffix, kSha256Suffix}) {
      if (!name.ends_with(suffix)) continue;
      const std::string_view bill = std::string_view(name).substr(0, name.size() - suffix.size());
      if (!std::ranges::binary_search(names, bill)) {
        AddFinding(fmt::format("{}: its bill file is missing", path), &report_->bad_files);
      }
    }
    if (options_.files->List(path).ok()) {
      RETURN_IF_ERROR(ReadBillDirectory(path));
    } else if (!IsBesideBill(name)) {
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
  return NoteFault(status);
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

// The ledger knows which files were written and taken: one that is gone would otherwise, if it was
// the last of its partner, look like a period not closed yet. Without a ledger the files must do.
absl::Status VerifyCollector::CheckLedgerBills() {
  const absl::StatusOr<std::unique_ptr<Ledger>> opened =
      Ledger::Open(options_.files, config_.ledger.connection, LedgerOpen::kExisting);
  if (absl::IsNotFound(opened.status())) return absl::OkStatus();
  if (!opened.ok()) return NoteFault(opened.status());
  Ledger* ledger = opened->get();
  for (const BillKind kind : {BillKind::kBill, BillKind::kAdjustments}) {
    ASSIGN_OR_RETURN(const std::vector<BillRow> written, ledger->Bills(kind, BillState::kWritten));
    for (const BillRow& bill : written) {
      if (row_checksums_.contains(bill.serial)) continue;
      AddFinding(
          fmt::format("{}: written, says the ledger, and not there or not readable", bill.file),
          &report_->bad_files);
    }
  }
  ASSIGN_OR_RETURN(taken_, ledger->DecidedFiles());
  return absl::OkStatus();
}

absl::Status VerifyCollector::NoteFault(const absl::Status& status) {
  if (!IsFinding(status)) return status;
  AddFinding(Message(status), &report_->bad_files);
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadTransactions() {
  const std::string& done = config_.inbox.done;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.files->List(done));
  for (const std::string& name : names) {
    if (name.ends_with(kDecisionsSuffix)) {
      RETURN_IF_ERROR(ReadDoneFile(name.substr(0, name.size() - kDecisionsSuffix.size())));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> without,
                   FilesWithoutDecisions(options_.files, done, taken_));
  for (const std::string& name : without) {
    AddFinding(fmt::format("{}/{}{}: missing", done, name, kDecisionsSuffix), &report_->bad_files);
    const std::string path = done + "/" + name;
    ASSIGN_OR_RETURN(const bool there, options_.files->Exists(path));
    if (!there || !options_.transactions.empty()) continue;
    RETURN_IF_ERROR(NoteFault(ReadTransactionFile(PlainInput(path), nullptr)));
  }
  if (options_.transactions.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(options_.files, options_.transactions));
  for (const InputFile& file : listing.files) {
    if (file.path.ends_with(kDecisionsSuffix)) continue;
    RETURN_IF_ERROR(NoteFault(ReadTransactionFile(file, nullptr)));
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadDoneFile(const std::string& name) {
  const std::string path = config_.inbox.done + "/" + name;
  DecidedFile decided;
  RETURN_IF_ERROR(NoteFault(ReadDecisionFile(path + std::string(kDecisionsSuffix), &decided)));
  if (!options_.transactions.empty()) return absl::OkStatus();
  const FileDigest& input = decided.input;
  ASSIGN_OR_RETURN(const bool there, options_.files->Exists(path));
  if (!there) {
    // Decisions on held rows have no file of their own.
    if (input.sha256.empty()) return absl::OkStatus();
    AddFinding(fmt::format("{}: missing", path), &report_->bad_files);
    return absl::OkStatus();
  }
  if (!input.sha256.empty()) RETURN_IF_ERROR(NoteFault(CheckDigest(path, input)));
  return NoteFault(ReadTransactionFile(PlainInput(path), &decided));
}

absl::Status VerifyCollector::CheckDigest(const std::string& path, const FileDigest& input) {
  ASSIGN_OR_RETURN(const FileDigest there, DigestFile(options_.files, path));
  if (there == input) return absl::OkStatus();
  return DataLoss("{}: not the file that was decided ({} bytes instead of {}, or another sha256)",
                  path, there.bytes, input.bytes);
}

absl::Status VerifyCollector::ReadDecisionFile(const std::string& path, DecidedFile* decided) {
  ASSIGN_OR_RETURN(decided->input,
                   ReadDecisions(options_.files, path, [&](int64_t id, const Decision& d) {
                     decided->inbox_id = id;
                     if (d.kind == DecisionKind::kFailed) {
                       ++report_->rejected;
                       decided->failed_lines.insert(d.line);
                     }
                     if (d.serial.empty()) return absl::OkStatus();
                     return serials_->Add(PackFact(d.serial, DecisionFact{id, d}));
                   }));
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadTransactionFile(const InputFile& file,
                                                  const DecidedFile* decided) {
  const bool exported = decided == nullptr && !options_.transactions.empty();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TransactionReader> reader,
      TransactionReader::Open(options_.files, file, exported ? export_schema_ : schema_));
  std::optional<int64_t> inbox_id;
  if (decided != nullptr) inbox_id = decided->inbox_id;
  InboxRow row;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) return absl::OkStatus();
    Progress("transactions", ++report_->transaction_rows);
    if (row.status.ok()) row.status = AddTransaction(row, inbox_id);
    if (row.status.ok()) continue;
    if (!absl::IsInvalidArgument(row.status)) return row.status;
    // A row that the run rejected too is in failed/; any other must be read.
    if (decided != nullptr && decided->failed_lines.contains(row.line)) continue;
    AddFinding(fmt::format("{}:{}: {}{}{}", file.path, row.line, row.column,
                           row.column.empty() ? "" : ": ", Message(row.status)),
               &report_->unreadable);
  }
}

// InvalidArgument: a bad row, as it is to the store.
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
    RETURN_IF_ERROR(encoders_[fact.set].Encode(fields, &fact.member));
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
  for (size_t i = 0; i < options_.history.size(); ++i) {
    MappingOptions mapping = options_.history_mapping;
    if (!options_.history_encodings.empty())
      mapping.format.encoding = options_.history_encodings[i];
    ASSIGN_OR_RETURN(const InputListing listing,
                     ListInputs(options_.files, {&options_.history[i], 1}));
    for (const InputFile& file : listing.files) {
      RETURN_IF_ERROR(ReadHistoryFile(file, mapping, position));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadHistoryFile(const InputFile& file, const MappingOptions& mapping,
                                              int64_t set_position) {
  ASSIGN_OR_RETURN(RowMapper mapper,
                   RowMapper::Create(config_.sets[set_position].options, mapping, file));
  const absl::Status status = ReadHistoryRows(file, mapping, set_position, &mapper);
  if (!IsFinding(status)) return status;
  // No row that was rejected, so no count makes up for it.
  AddFinding(Message(status), &report_->unreadable);
  return absl::OkStatus();
}

absl::Status VerifyCollector::ReadHistoryRows(const InputFile& file, const MappingOptions& mapping,
                                              int64_t set_position, RowMapper* mapper) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> lines, LineReader::Open(options_.files, file));
  const bool has_token = !mapping.token_column.empty();
  std::vector<std::string_view> fields(mapper->field_count());
  Line line;
  MemberEvent event;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines->Next(&line));
    if (!more) return absl::OkStatus();
    WindowId window = 0;
    std::string_view token;
    RejectReason reason;
    const RowKind kind = mapper->Map(line, fields.data(), &window, &token, &reason);
    if (kind != RowKind::kBlank) Progress("history", ++report_->history_rows);
    if (kind == RowKind::kRejected) {
      ++report_->history_rejected;
      AddFinding(fmt::format("{}:{}: {}{}{}", file.path, line.number, reason.field,
                             reason.field.empty() ? "" : ": ", reason.reason),
                 &report_->history_unreadable);
    } else if (kind == RowKind::kRow) {
      RETURN_IF_ERROR(encoders_[set_position].Encode(fields, &member_));
      // Of equal members the first row is the owner; without tokens they are all the same.
      event.ordinal.line = has_token ? report_->history_rows : 0;
      event.serial = token;
      RETURN_IF_ERROR(members_->Add(PackEvent(set_position, window, member_, event)));
    }
    mapper->Reset();
  }
}

}  // namespace firstseen
