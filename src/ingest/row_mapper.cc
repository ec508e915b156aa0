#include "ingest/row_mapper.h"

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/status.h"
#include "base/time_text.h"
#include "engine/window.h"
#include "keys/member.h"
#include "keys/normalise.h"

namespace firstseen {

std::string DescribeReject(const RejectReason& reason) {
  std::string text = reason.field.empty() ? reason.reason : reason.field + ": " + reason.reason;
  if (!reason.remedy.empty()) text += "; " + reason.remedy;
  return text;
}

absl::StatusOr<RowMapper::Source> RowMapper::Find(const std::string& name,
                                                  const MappingOptions& options,
                                                  const InputFile& file) {
  Source source;
  source.name = name;
  for (size_t i = 0; i < options.columns.size(); ++i) {
    if (options.columns[i] != name) continue;
    if (source.column.has_value()) {
      return InvalidArgument("column {} is named twice in the list of columns", name);
    }
    source.column = i;
  }
  bool in_folder = false;
  for (const PartitionValue& value : file.partition) {
    if (value.column != name) continue;
    source.folder = value;  // the innermost folder counts
    in_folder = true;
  }
  if (source.column.has_value() && in_folder) {
    return InvalidArgument(
        "{}: a folder supplies column {}, which is in the list of columns as well; leave it out "
        "of the list, or give the file's own column another name",
        file.path, name);
  }
  if (!source.column.has_value() && !in_folder) {
    return InvalidArgument(
        "{}: column {} is needed, but it is neither in the list of columns ({}) nor in a folder "
        "{}=... above the file",
        file.path, name, fmt::join(options.columns, ","), name);
  }
  return source;
}

absl::StatusOr<RowMapper> RowMapper::Create(const SetOptions& set, const MappingOptions& options,
                                            const InputFile& file) {
  if (options.columns.empty() || options.columns.size() > kColumnsMax) {
    return InvalidArgument("name the input's columns, at most {}", kColumnsMax);
  }
  if (options.window_of.has_value() && !options.time_column.empty()) {
    return InvalidArgument("give a window for all rows or a time column, not both");
  }
  if (!options.window_of.has_value() && options.time_column.empty() &&
      set.window != WindowKind::kNone) {
    return InvalidArgument(
        "the set has windows: give the window of all rows or the column with each row's time");
  }
  ASSIGN_OR_RETURN(RowParser parser, RowParser::Create(options.format));
  RowMapper mapper(std::move(parser), set);
  ASSIGN_OR_RETURN(mapper.zone_, LoadTimeZone(set.time_zone));
  for (const FieldOptions& field : set.fields) {
    ASSIGN_OR_RETURN(Source source, Find(field.name, options, file));
    source.opaque = field.normalise == kOpaque;
    mapper.fields_.push_back(std::move(source));
  }
  if (!options.time_column.empty()) {
    ASSIGN_OR_RETURN(mapper.time_, Find(options.time_column, options, file));
  }
  if (!options.token_column.empty()) {
    ASSIGN_OR_RETURN(mapper.token_, Find(options.token_column, options, file));
  }
  mapper.window_of_ = options.window_of;
  mapper.accept_windows_ = options.accept_windows;
  std::sort(mapper.accept_windows_.begin(), mapper.accept_windows_.end());
  mapper.columns_ = options.columns;
  mapper.row_.resize(options.columns.size());
  return mapper;
}

bool RowMapper::uses_folders() const {
  const auto from_folder = [](const Source& source) { return !source.column.has_value(); };
  return std::any_of(fields_.begin(), fields_.end(), from_folder) ||
         (time_.has_value() && from_folder(*time_)) || (token_.has_value() && from_folder(*token_));
}

RowKind RowMapper::Map(const Line& line, std::string_view* fields, WindowId* window,
                       std::string_view* token, RejectReason* reason) {
  if (line.too_long) {
    *reason = {"", fmt::format("the line has more than {} bytes", kLineBytesMax), "shorten it"};
    return RowKind::kRejected;
  }
  if (parser_.IsBlank(line.text)) return RowKind::kBlank;
  const absl::StatusOr<size_t> count = parser_.Parse(line.text, row_);
  if (!count.ok()) {
    *reason = {"", std::string(Message(count.status())), "correct the encoding of this line"};
    return RowKind::kRejected;
  }
  if (*count != row_.size()) {
    *reason = {
        "", fmt::format("the row has {} instead of {}", FormatCount(*count, "field"), row_.size()),
        *count > row_.size()
            ? "take the delimiter out of the values, or export with ESCAPED BY and name "
              "the escape character"
            : "complete the row, or check the delimiter"};
    return RowKind::kRejected;
  }
  if (IsHeader(line)) {
    *reason = {"", "the line repeats the names of the columns", "it is no row: leave it out"};
    return RowKind::kRejected;
  }
  if (!MapFields(fields, reason) || !MapWindow(window, reason)) return RowKind::kRejected;
  *token = {};
  if (!token_.has_value()) return RowKind::kRow;
  if (!Take(*token_, token, reason)) return RowKind::kRejected;
  if (token->empty()) {
    *reason = {token_->name, "the token is empty", "fill in the serial of this row"};
    return RowKind::kRejected;
  }
  if (token->size() > MemberEncoder::kFieldBytesMax) {
    *reason = {token_->name,
               fmt::format("the token has more than {} bytes", MemberEncoder::kFieldBytesMax),
               "check the delimiter and the columns"};
    return RowKind::kRejected;
  }
  return RowKind::kRow;
}

Field RowMapper::Get(const Source& source) const {
  if (source.column.has_value()) return row_[*source.column];
  return {source.folder.value, source.folder.null};
}

// Neither null nor, unless opaque, invalid text.
bool RowMapper::Take(const Source& source, std::string_view* text, RejectReason* reason) const {
  const Field field = Get(source);
  if (field.null) {
    *reason = {source.name, "the value is null", "fill it in, or leave the row out of the export"};
    return false;
  }
  if (!source.opaque && !IsValidUtf8(field.text)) {
    *reason = {source.name, "the value is not valid UTF-8",
               "correct it, or name the input's encoding (GBK text: gb18030)"};
    return false;
  }
  *text = field.text;
  return true;
}

bool RowMapper::IsHeader(const Line& line) const {
  return line.number == 1 &&
         std::equal(row_.begin(), row_.end(), columns_.begin(),
                    [](const Field& field, const std::string& name) { return field.text == name; });
}

// Whether nothing is left of a field after normalisation.
bool RowMapper::IsEmptyField(size_t i, std::string_view field) const {
  // No normalisation takes away printable ASCII or what begins as CJK ideographs do in UTF-8.
  if (!field.empty() &&
      ((field[0] > ' ' && field[0] <= '~') || (field[0] >= '\xe4' && field[0] <= '\xe9'))) {
    return false;
  }
  std::string normalised;
  AppendNormalised(set_.fields[i].normalise, field, &normalised);
  return normalised.empty();
}

bool RowMapper::MapFields(std::string_view* fields, RejectReason* reason) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!Take(fields_[i], &fields[i], reason)) return false;
    if (fields[i].size() > MemberEncoder::kFieldBytesMax) {
      *reason = {fields_[i].name,
                 fmt::format("the value has more than {} bytes", MemberEncoder::kFieldBytesMax),
                 "check the delimiter and the columns"};
      return false;
    }
    if (IsEmptyField(i, fields[i])) {
      *reason = {fields_[i].name, "the value is empty",
                 "fill it in: a member needs all its fields"};
      return false;
    }
  }
  return true;
}

bool RowMapper::MapWindow(WindowId* window, RejectReason* reason) {
  if (!time_.has_value()) {
    *window = window_of_.value_or(0);
  } else {
    const Field field = Get(*time_);
    if (field.null || field.text != last_time_ || last_time_.empty()) {
      std::string_view text;
      if (!Take(*time_, &text, reason)) return false;
      const absl::StatusOr<absl::Time> time = ParseEventTime(text, zone_);
      if (!time.ok()) {
        *reason = {time_->name, std::string(Message(time.status())), "correct the time"};
        return false;
      }
      last_time_.assign(text);
      last_window_ = WindowOf(set_.window, *time, zone_);
    }
    *window = last_window_;
  }
  if (accept_windows_.empty() ||
      std::binary_search(accept_windows_.begin(), accept_windows_.end(), *window)) {
    return true;
  }
  *reason = {
      time_.has_value() ? time_->name : "",
      fmt::format("window {} is not among the accepted ones", FormatWindow(set_.window, *window)),
      "accept this window, or leave the row out"};
  return false;
}

}  // namespace firstseen
