// From a row of an export to what a set wants to know: the fields of the member, the window, the
// token; or why the row cannot be used.
//
// The columns of the input are named; the set's fields, the time column and the token column are
// found by name, among them or among the column=value folders above a file. Other columns are
// ignored. A column that is needed and both in the list and in a folder is an error: Hive never
// writes a partition column into the files.
//
// A row is rejected when
//   - it is longer than kLineBytesMax, or not valid in its encoding. UTF-8 is checked in the fields
//     that the set normalises, the time and the token; an opaque field may hold any bytes;
//   - it has another number of fields than there are columns, or it is the file's first line and
//     repeats the columns' names;
//   - a field of the member, the time or the token is null (\N), or the token is empty;
//   - a field of the member is empty (once normalised) or over 64 KiB: no set would take it;
//   - its time cannot be read, or its window is not among those accepted.
// Reasons name the field and the remedy, never the value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "firstseen/types.h"
#include "ingest/row_reader.h"
#include "ingest/source.h"

namespace firstseen {

struct MappingOptions {
  RowFormat format = {};
  std::vector<std::string> columns = {};  // of the input, in order
  // One of the two, unless the set has one window for all time.
  std::optional<WindowId> window_of = std::nullopt;
  std::string time_column = {};
  std::vector<WindowId> accept_windows = {};  // empty = all
  std::string token_column = {};              // empty = rows have no owner
};

struct RejectReason {
  std::string field;  // empty: the whole row
  std::string reason;
  std::string remedy;
};
// "field: reason; remedy".
std::string DescribeReject(const RejectReason& reason);

enum class RowKind { kRow, kBlank, kRejected };

// One for each thread: holds decoded text between Reset()s.
class RowMapper {
 public:
  static constexpr size_t kColumnsMax = 1024;

  // InvalidArgument: a column that the set or the options need is in none of the lists, ... Call
  // it again for each file: `file` supplies the folders' columns. O(columns).
  static absl::StatusOr<RowMapper> Create(const SetOptions& set, const MappingOptions& options,
                                          const InputFile& file);

  size_t field_count() const { return fields_.size(); }
  // Whether a row needs something that only the folders above its file say.
  bool uses_folders() const;

  // kRow: `fields` (field_count() of them), `window` and `token` (empty without a token column)
  // are set; the views are valid until Reset() and as long as the line. kRejected: `reason` is.
  RowKind Map(const Line& line, std::string_view* fields, WindowId* window, std::string_view* token,
              RejectReason* reason);
  // Forgets the rows mapped so far; their memory is used again.
  void Reset() { parser_.Reset(); }

 private:
  // Where a value comes from: a column of the row, or a folder.
  struct Source {
    std::string name;
    std::optional<size_t> column;
    PartitionValue folder;
    bool opaque = false;
  };

  RowMapper(RowParser parser, const SetOptions& set) : parser_(std::move(parser)), set_(set) {}

  static absl::StatusOr<Source> Find(const std::string& name, const MappingOptions& options,
                                     const InputFile& file);
  Field Get(const Source& source) const;
  bool Take(const Source& source, std::string_view* text, RejectReason* reason) const;
  bool IsHeader(const Line& line) const;
  bool IsEmptyField(size_t i, std::string_view field) const;
  bool MapFields(std::string_view* fields, RejectReason* reason) const;
  bool MapWindow(WindowId* window, RejectReason* reason);

  RowParser parser_;
  SetOptions set_;
  absl::TimeZone zone_;
  std::vector<WindowId> accept_windows_;  // sorted
  std::optional<WindowId> window_of_;
  std::vector<std::string> columns_;
  std::vector<Source> fields_;
  std::optional<Source> time_;
  std::optional<Source> token_;
  std::vector<Field> row_;  // of the line in hand
  // The last time read and its window: rows of one day come together.
  std::string last_time_;
  WindowId last_window_ = 0;
};

}  // namespace firstseen
