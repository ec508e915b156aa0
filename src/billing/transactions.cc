#include "billing/transactions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/time_text.h"
#include "ingest/decode.h"

namespace firstseen {
namespace {

constexpr size_t kSerialBytesMax = 128;
constexpr size_t kTextBytesMax = 1'024;
constexpr size_t kColumnsMax = 512;

enum RequiredColumn : size_t { kSerial, kOrder, kApp, kTime, kAmount, kStatus };

absl::Status TooLong() {
  return InvalidArgument("the line is longer than {} bytes; split or mend it", kLineBytesMax);
}

class DelimitedReader : public TransactionReader {
 public:
  DelimitedReader(std::unique_ptr<LineReader> lines, RowParser parser,
                  const TransactionSchema& schema)
      : lines_(std::move(lines)), parser_(std::move(parser)), schema_(schema) {
    fields_.resize(kColumnsMax);
  }

  absl::Status ReadHeader(const std::string& path) {
    Line line;
    do {
      ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
      if (!more) return InvalidArgument("{}: empty; write a line of column names first", path);
    } while (parser_.IsBlank(line.text));
    if (line.too_long) return Annotate(TooLong(), path);
    parser_.Reset();
    ASSIGN_OR_RETURN(count_, parser_.Parse(line.text, fields_));
    if (count_ > kColumnsMax) {
      return InvalidArgument("{}: more than {} columns", path, kColumnsMax);
    }
    header_ = std::string(line.raw) + "\n";
    const std::vector<std::string>& wanted = schema_.columns();
    positions_.assign(wanted.size(), kColumnsMax);
    for (size_t i = 0; i < count_; ++i) {
      const auto found = std::ranges::find(wanted, fields_[i].text);
      if (found == wanted.end()) continue;
      size_t& position = positions_[found - wanted.begin()];
      if (position != kColumnsMax) {
        return InvalidArgument("{}: column {} stands twice in the header", path, *found);
      }
      position = i;
    }
    for (size_t i = 0; i < TransactionSchema::kRequired; ++i) {
      if (positions_[i] != kColumnsMax) continue;
      return InvalidArgument(
          "{}:{}: the header has no column {}; see [inbox] for the columns and the delimiter", path,
          line.number, wanted[i]);
    }
    values_.resize(wanted.size());
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(InboxRow* row) override {
    Line line;
    do {
      ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
      if (!more) return false;
    } while (!line.too_long && parser_.IsBlank(line.text));
    row->line = line.number;
    row->raw = line.raw;
    row->column.clear();
    row->status = Split(line);
    if (row->status.ok()) schema_.Interpret(values_, row);
    return true;
  }

  std::string_view header() const override { return header_; }

 private:
  absl::Status Split(const Line& line) {
    if (line.too_long) return TooLong();
    parser_.Reset();
    ASSIGN_OR_RETURN(const size_t count, parser_.Parse(line.text, fields_));
    if (count != count_) {
      return InvalidArgument("{} fields where the header has {}", count, count_);
    }
    for (size_t i = 0; i < positions_.size(); ++i) {
      const bool present = positions_[i] != kColumnsMax && !fields_[positions_[i]].null;
      values_[i] = present ? fields_[positions_[i]].text : std::string_view();
    }
    return absl::OkStatus();
  }

  std::unique_ptr<LineReader> lines_;
  RowParser parser_;
  const TransactionSchema& schema_;
  std::string header_;
  size_t count_ = 0;
  std::vector<Field> fields_;
  std::vector<size_t> positions_;  // in the row, of each wanted column; kColumnsMax = not there
  std::vector<std::string_view> values_;
};

// Takes the scalars of one flat JSON object; numbers keep their digits as written.
class ObjectHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  ObjectHandler(const std::vector<std::string>& wanted, std::vector<std::string>* values,
                std::vector<bool>* present)
      : wanted_(wanted), values_(values), present_(present) {}

  bool null() override { return depth_ == 1; }
  bool boolean(bool value) override { return Take(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Take(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Take(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Take(text); }
  bool string(string_t& value) override { return Take(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override {
    if (depth_ > 0 && column_ != wanted_.size()) return false;
    return ++depth_ > 0;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(size_t) override {
    if (depth_ == 0 || column_ != wanted_.size()) return false;
    return ++depth_ > 0;
  }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    column_ = std::ranges::find(wanted_, name) - wanted_.begin();
    doubled_ |= column_ != wanted_.size() && (*present_)[column_];
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
  bool doubled() const { return doubled_; }

 private:
  bool Take(std::string text) {
    if (depth_ == 0) return false;
    if (depth_ != 1 || column_ == wanted_.size()) return true;
    (*values_)[column_] = std::move(text);
    (*present_)[column_] = true;
    return true;
  }

  const std::vector<std::string>& wanted_;
  std::vector<std::string>* values_;
  std::vector<bool>* present_;
  int depth_ = 0;
  size_t column_ = 0;
  bool doubled_ = false;
};

class NdjsonReader : public TransactionReader {
 public:
  NdjsonReader(std::unique_ptr<LineReader> lines, const TransactionSchema& schema)
      : lines_(std::move(lines)), schema_(schema), texts_(schema.columns().size()) {}

  absl::StatusOr<bool> Next(InboxRow* row) override {
    Line line;
    do {
      ASSIGN_OR_RETURN(const bool more, lines_->Next(&line));
      if (!more) return false;
    } while (!line.too_long && line.text.find_first_not_of(" \t") == std::string_view::npos);
    row->line = line.number;
    row->raw = line.raw;
    row->column.clear();
    row->status = ParseObject(line);
    if (row->status.ok()) {
      const std::vector<std::string_view> values(texts_.begin(), texts_.end());
      schema_.Interpret(values, row);
    }
    return true;
  }

  std::string_view header() const override { return {}; }

 private:
  absl::Status ParseObject(const Line& line) {
    if (line.too_long) return TooLong();
    present_.assign(texts_.size(), false);
    for (std::string& text : texts_) text.clear();
    ObjectHandler handler(schema_.columns(), &texts_, &present_);
    if (!nlohmann::json::sax_parse(line.text.begin(), line.text.end(), &handler)) {
      return InvalidArgument("not one JSON object of texts and numbers");
    }
    if (handler.doubled()) return InvalidArgument("a key stands twice in the object");
    return absl::OkStatus();
  }

  std::unique_ptr<LineReader> lines_;
  const TransactionSchema& schema_;
  std::vector<std::string> texts_;
  std::vector<bool> present_;
};

}  // namespace

std::string_view WithoutCompression(std::string_view name) {
  for (const std::string_view extension : {".gz", ".zst", ".bz2", ".deflate"}) {
    if (name.ends_with(extension)) return name.substr(0, name.size() - extension.size());
  }
  return name;
}

InputFile PlainInput(const std::string& path) {
  InputFile file;
  file.path = path;
  return file;
}

absl::StatusOr<std::unique_ptr<TransactionReader>> TransactionReader::Open(
    FileSystem* files, const InputFile& file, const TransactionSchema& schema) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(files, file));
  const std::string_view name = WithoutCompression(file.path);
  if (name.ends_with(".ndjson") || name.ends_with(".jsonl")) {
    return std::make_unique<NdjsonReader>(std::move(lines), schema);
  }
  const InboxConfig& inbox = schema.config().inbox;
  RowFormat format;
  format.delimiter = inbox.delimiter;
  format.escape = inbox.escape;
  format.encoding = inbox.encoding == "gb18030" ? TextEncoding::kGb18030 : TextEncoding::kUtf8;
  ASSIGN_OR_RETURN(RowParser parser, RowParser::Create(format));
  auto reader = std::make_unique<DelimitedReader>(std::move(lines), std::move(parser), schema);
  RETURN_IF_ERROR(reader->ReadHeader(file.path));
  return reader;
}

TransactionSchema::TransactionSchema(const BillingConfig& config) : config_(config) {
  const InboxConfig& inbox = config.inbox;
  columns_ = {inbox.serial_column, inbox.order_column,  inbox.app_column,
              inbox.time_column,   inbox.amount_column, inbox.status_column};
  FIRSTSEEN_CHECK(columns_.size() == kRequired);
  for (const RuleConfig& rule : config.rules) {
    App app;
    app.rule = &rule;
    if (const SetConfig* set = config.FindSet(rule.set); set != nullptr) {
      for (const FieldOptions& field : set->options.fields) {
        app.fields.push_back(AddColumn(field.name));
        if (field.normalise != kOpaque) app.opaque = false;
      }
    }
    for (const std::string& id : rule.app_ids) {
      app.partner = config.PartnerOf(id);
      apps_[id] = app;
    }
  }
  for (const std::string& column : config.ledger.keep_columns) kept_.push_back(AddColumn(column));
  for (const std::string& value : config.status.counting) {
    statuses_[value] = StatusClass::kCounting;
  }
  for (const std::string& value : config.status.reversal) {
    statuses_[value] = StatusClass::kReversal;
  }
  for (const std::string& value : config.status.ignored) statuses_[value] = StatusClass::kIgnored;
}

size_t TransactionSchema::AddColumn(const std::string& name) {
  const auto found = std::ranges::find(columns_, name);
  if (found != columns_.end()) return found - columns_.begin();
  columns_.push_back(name);
  return columns_.size() - 1;
}

void TransactionSchema::Interpret(const std::vector<std::string_view>& values,
                                  InboxRow* row) const {
  row->transaction = Transaction();
  row->status = InterpretRow(values, &row->transaction, &row->column);
}

// Texts that go into decision and bill files must not break their lines.
absl::Status TransactionSchema::CheckText(std::string_view value, size_t bytes_max) const {
  if (value.size() > bytes_max) return InvalidArgument("longer than {} bytes", bytes_max);
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return InvalidArgument("has a control character");
    }
    if (c == config_.bills.delimiter) {
      return InvalidArgument(
          "has the delimiter of bill files; mend it or choose another bills.delimiter");
    }
  }
  if (!IsValidUtf8(value)) return InvalidArgument("not valid UTF-8; see inbox.encoding");
  return absl::OkStatus();
}

absl::Status TransactionSchema::InterpretRow(const std::vector<std::string_view>& values,
                                             Transaction* out, std::string* column) const {
  const auto at = [&](size_t i) {
    *column = columns_[i];
    return values[i];
  };
  for (size_t i = 0; i < kRequired; ++i) {
    if (at(i).empty() && i != kOrder) return InvalidArgument("is missing or empty");
    RETURN_IF_ERROR(CheckText(values[i], i == kSerial ? kSerialBytesMax : kTextBytesMax));
  }
  out->serial = at(kSerial);
  out->order_no = at(kOrder);
  out->app_id = at(kApp);
  const auto app = apps_.find(out->app_id);
  if (app == apps_.end()) {
    return InvalidArgument("this app_id has no rule; add it to [[rules]] and [[partners]]");
  }
  out->rule = app->second.rule;
  out->partner = app->second.partner;
  ASSIGN_OR_RETURN(out->event_time, ParseEventTime(at(kTime), config_.zone));
  ASSIGN_OR_RETURN(out->amount, ParseAmount(at(kAmount), config_.bills.amount_decimals));
  out->status = at(kStatus);
  const auto status = statuses_.find(out->status);
  if (status != statuses_.end()) {
    out->status_class = status->second;
  } else if (!config_.status.ignored.empty()) {
    return InvalidArgument("this status is in none of the lists of [status]");
  }
  for (const size_t i : app->second.fields) {
    if (at(i).empty() && out->status_class == StatusClass::kCounting) {
      return InvalidArgument("is missing or empty; a member needs all its fields");
    }
    if (!app->second.opaque && !IsValidUtf8(at(i))) {
      return InvalidArgument("not valid UTF-8; see inbox.encoding");
    }
    out->fields.emplace_back(values[i]);
  }
  for (const size_t i : kept_) {
    RETURN_IF_ERROR(CheckText(at(i), kTextBytesMax));
    out->kept.emplace_back(values[i]);
  }
  column->clear();
  return absl::OkStatus();
}

}  // namespace firstseen
