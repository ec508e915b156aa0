#include "billing/bill_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/status.h"
#include "base/time_text.h"

namespace firstseen {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"bill", "adjustments", "resend"};
constexpr std::string_view kReversalTime = "reversal_time";
constexpr std::string_view kBilledSerial = "billed_serial";

std::vector<std::string_view> Split(std::string_view line, char delimiter) {
  std::vector<std::string_view> values;
  while (true) {
    const size_t at = line.find(delimiter);
    values.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return values;
    line.remove_prefix(at + 1);
  }
}

bool ReadNumber(std::string_view text, int64_t* number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size() && *number >= 0;
}

void ReplaceAll(std::string_view word, std::string_view by, std::string* text) {
  for (size_t at = 0; (at = text->find(word, at)) != std::string::npos; at += by.size()) {
    text->replace(at, word.size(), by);
  }
}

std::string TimeText(int64_t ms, absl::TimeZone zone) {
  return FormatEventTime(absl::FromUnixMillis(ms), zone);
}

std::string ColumnsLine(const BillingConfig& config, BillKind kind) {
  std::string line;
  for (const std::string& column : config.bills.columns) {
    if (!line.empty()) line += config.bills.delimiter;
    line += column;
  }
  if (kind == BillKind::kAdjustments) {
    line += fmt::format("{0}{1}{0}{2}", config.bills.delimiter, kReversalTime, kBilledSerial);
  }
  return line;
}

}  // namespace

std::string_view BillKindName(BillKind kind) { return kKinds[static_cast<size_t>(kind)]; }

bool IsBesideBill(std::string_view name) {
  return name.starts_with('.') || name.ends_with(kSha256Suffix) || name.ends_with(kMarkerSuffix) ||
         name.ends_with(".tmp");
}

std::string BillFileName(const BillsConfig& bills, absl::TimeZone zone, const BillRow& bill) {
  const absl::CivilSecond start = absl::ToCivilSecond(absl::FromUnixMillis(bill.period_ms), zone);
  std::string name = bill.kind == BillKind::kAdjustments ? bills.adjustments_name : bills.name;
  ReplaceAll("{partner}", bill.partner, &name);
  ReplaceAll("{serial}", fmt::format("{:010}", bill.serial), &name);
  ReplaceAll("{date}", fmt::format("{:04}-{:02}-{:02}", start.year(), start.month(), start.day()),
             &name);
  ReplaceAll("{period}",
             fmt::format("{:04}{:02}{:02}{:02}{:02}", start.year(), start.month(), start.day(),
                         start.hour(), start.minute()),
             &name);
  return name;
}

absl::StatusOr<std::unique_ptr<BillFileWriter>> BillFileWriter::Create(
    FileSystem* files, const BillingConfig& config, const BillRow& bill,
    std::optional<char> other_delimiter) {
  const char delimiter = other_delimiter.value_or(config.bills.delimiter);
  const std::string path = config.bills.directory + "/" + bill.file;
  RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(path)));
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Create(files, path));
  auto writer =
      std::unique_ptr<BillFileWriter>(new BillFileWriter(config, delimiter, std::move(file)));
  const int64_t end_ms = bill.period_ms + config.bills.period_minutes * 60'000;
  RETURN_IF_ERROR(writer->Put(
      fmt::format("H{0}{1}{0}{2}{0}{3}{0}{4}{0}{5}{0}{6}\n", delimiter, BillKindName(bill.kind),
                  bill.partner, TimeText(bill.period_ms, config.zone),
                  TimeText(end_ms, config.zone), bill.serial, bill.original)));
  writer->columns_ = ColumnsLine(config, bill.kind);
  return writer;
}

absl::Status BillFileWriter::Put(std::string_view text) {
  sha256_.Add(text);
  return file_->Append(text);
}

absl::Status BillFileWriter::SetColumns(std::string_view line) {
  FIRSTSEEN_CHECK(rows_ == 0);
  columns_ = line;
  return absl::OkStatus();
}

absl::Status BillFileWriter::BeginRows() {
  if (columns_.empty()) return absl::OkStatus();
  return Put(std::exchange(columns_, "") + "\n");
}

absl::Status BillFileWriter::AppendValues(const LedgerRow& row) {
  nlohmann::json kept;
  bool first = true;
  for (const std::string& column : config_.bills.columns) {
    if (!std::exchange(first, false)) line_ += delimiter_;
    if (column == "biz_seq_no") {
      line_ += row.serial;
    } else if (column == "order_no") {
      line_ += row.order_no;
    } else if (column == "app_id") {
      line_ += row.app_id;
    } else if (column == "event_time") {
      line_ += TimeText(row.event_ms, config_.zone);
    } else if (column == "amount") {
      line_ += row.amount;
    } else if (column == "status") {
      line_ += row.status;
    } else if (column == "window") {
      line_ += fmt::format("{}", row.window);
    } else if (column == "claim_sequence") {
      line_ += fmt::format("{}", row.claim_sequence);
    } else {
      if (kept.is_null()) kept = nlohmann::json::parse(row.kept, nullptr, false);
      if (!kept.is_object()) return DataLoss("ledger: kept columns of a row cannot be read");
      // A row that came before the column was configured has none.
      if (kept.contains(column)) line_ += kept[column].get<std::string>();
    }
  }
  return absl::OkStatus();
}

absl::Status BillFileWriter::Append(const LedgerRow& row) {
  line_.clear();
  RETURN_IF_ERROR(AppendValues(row));
  ASSIGN_OR_RETURN(const AmountUnits amount,
                   ParseAmount(row.amount, config_.bills.amount_decimals));
  return AppendRaw(line_, amount);
}

absl::Status BillFileWriter::Append(const AdjustmentRow& row) {
  line_.clear();
  RETURN_IF_ERROR(AppendValues(row.row));
  line_ += fmt::format("{0}{1}{0}{2}", delimiter_, TimeText(row.reversed_ms, config_.zone),
                       row.row.bill_serial);
  ASSIGN_OR_RETURN(const AmountUnits amount,
                   ParseAmount(row.row.amount, config_.bills.amount_decimals));
  return AppendRaw(line_, amount);
}

absl::Status BillFileWriter::AppendRaw(std::string_view line, AmountUnits amount) {
  RETURN_IF_ERROR(BeginRows());
  RETURN_IF_ERROR(AddAmount(amount, &total_));
  ++rows_;
  RETURN_IF_ERROR(Put(line));
  return Put("\n");
}

absl::Status BillFileWriter::Commit(BillRow* bill) {
  RETURN_IF_ERROR(BeginRows());
  bill->rows = static_cast<int64_t>(rows_);
  bill->total = FormatAmount(total_, config_.bills.amount_decimals);
  RETURN_IF_ERROR(Put(fmt::format("T{0}{1}{0}{2}\n", delimiter_, bill->rows, bill->total)));
  bill->sha256 = sha256_.Finish();
  return file_->Commit();
}

std::string Sha256Line(const std::string& path, std::string_view sha256) {
  return fmt::format("{}  {}\n", sha256, path.substr(path.rfind('/') + 1));
}

absl::StatusOr<std::unique_ptr<BillFileReader>> BillFileReader::Open(FileSystem* files,
                                                                     const std::string& path,
                                                                     absl::TimeZone zone,
                                                                     int decimals) {
  auto reader = std::unique_ptr<BillFileReader>(new BillFileReader(files, path, decimals));
  ASSIGN_OR_RETURN(reader->lines_, LineReader::Open(files, path));
  RETURN_IF_ERROR(reader->ReadHeader(zone));
  return reader;
}

absl::StatusOr<bool> BillFileReader::Advance() {
  Line line;
  if (current_number_ == 0) {
    ASSIGN_OR_RETURN(const bool first, lines_->Next(&line));
    if (first) next_ = line.text;
  }
  if (!next_.has_value()) return false;
  current_ = *std::exchange(next_, std::nullopt);
  ++current_number_;
  ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
  if (!more) return true;
  if (line.too_long) return DataLoss("{}:{}: line too long", path_, line.number);
  next_ = line.text;
  return true;
}

absl::Status BillFileReader::ReadHeader(absl::TimeZone zone) {
  ASSIGN_OR_RETURN(bool more, Advance());
  const absl::Status bad = DataLoss("{}:1: not a bill file", path_);
  if (!more || current_.size() < 2 || current_[0] != 'H') return bad;
  delimiter_ = current_[1];
  const std::vector<std::string_view> head = Split(current_, delimiter_);
  if (head.size() != 7) return bad;
  const auto kind = std::ranges::find(kKinds, head[1]);
  const absl::StatusOr<absl::Time> start = ParseEventTime(head[3], zone);
  const absl::StatusOr<absl::Time> end = ParseEventTime(head[4], zone);
  if (kind == kKinds.end() || !start.ok() || !end.ok() || !ReadNumber(head[5], &header_.serial) ||
      !ReadNumber(head[6], &header_.original)) {
    return bad;
  }
  header_.kind = static_cast<BillKind>(kind - kKinds.begin());
  header_.partner = head[2];
  header_.period_ms = absl::ToUnixMillis(*start);
  header_.period_end_ms = absl::ToUnixMillis(*end);
  ASSIGN_OR_RETURN(more, Advance());
  if (!more) return DataLoss("{}:2: the line of columns is missing", path_);
  header_.columns_line = current_;
  for (const std::string_view column : Split(current_, delimiter_)) {
    header_.columns.emplace_back(column);
  }
  if (Column("biz_seq_no") == header_.columns.size() ||
      Column("amount") == header_.columns.size()) {
    return DataLoss("{}:2: no column biz_seq_no or amount", path_);
  }
  return absl::OkStatus();
}

size_t BillFileReader::Column(std::string_view name) const {
  return std::ranges::find(header_.columns, name) - header_.columns.begin();
}

absl::StatusOr<bool> BillFileReader::Next() {
  ASSIGN_OR_RETURN(const bool more, Advance());
  if (!more) return DataLoss("{}: cut: the trailer is missing", path_);
  values_ = Split(current_, delimiter_);
  if (!next_.has_value()) {
    RETURN_IF_ERROR(CheckTrailer());
    return false;
  }
  if (values_.size() != header_.columns.size()) {
    return DataLoss("{}:{}: {} values where there are {} columns", path_, current_number_,
                    values_.size(), header_.columns.size());
  }
  const absl::StatusOr<AmountUnits> amount = ParseAmount(values_[Column("amount")], decimals_);
  if (!amount.ok()) {
    return DataLoss("{}:{}: amount: {}", path_, current_number_, Message(amount.status()));
  }
  amount_ = *amount;
  ++rows_;
  RETURN_IF_ERROR(AddAmount(amount_, &total_));
  return true;
}

absl::Status BillFileReader::CheckTrailer() {
  if (values_.size() != 3 || values_[0] != "T") {
    return DataLoss("{}:{}: cut: the last line is no trailer", path_, current_number_);
  }
  int64_t rows = 0;
  const absl::StatusOr<AmountUnits> total = ParseAmount(values_[2], decimals_);
  if (!ReadNumber(values_[1], &rows) || !total.ok()) {
    return DataLoss("{}:{}: the trailer is malformed", path_, current_number_);
  }
  if (static_cast<uint64_t>(rows) != rows_) {
    return DataLoss("{}: the trailer counts {} rows, there are {}", path_, rows, rows_);
  }
  if (*total != total_) return DataLoss("{}: the trailer's total is not that of the rows", path_);
  ASSIGN_OR_RETURN(FileDigest digest, DigestFile(files_, path_));
  sha256_ = std::move(digest.sha256);
  return absl::OkStatus();
}

absl::Status CheckSha256(FileSystem* files, const std::string& path, std::string_view sha256) {
  ASSIGN_OR_RETURN(const bool marked, files->Exists(path + std::string(kMarkerSuffix)));
  if (!marked) return FailedPrecondition("{}: has no marker {}", path, kMarkerSuffix);
  ASSIGN_OR_RETURN(const std::string marker, ReadFile(files, path + std::string(kMarkerSuffix)));
  if (marker != kMarkerContent) {
    return DataLoss("{}: its marker {} is not what was written", path, kMarkerSuffix);
  }
  const absl::StatusOr<std::string> text = ReadFile(files, path + std::string(kSha256Suffix));
  if (!text.ok()) return DataLoss("{}: its {} cannot be read", path, kSha256Suffix);
  if (*text != Sha256Line(path, sha256)) {
    return DataLoss("{}: its content is not that of its {}", path, kSha256Suffix);
  }
  return absl::OkStatus();
}

}  // namespace firstseen
