// From bytes to lines to rows.
//
//   ByteStream --> BlockReader --> blocks of whole lines --> LineCursor --> lines
//                                                            RowParser  --> fields of a line
//   LineReader = ByteStream + BlockReader + LineCursor: one file, line by line.
//
// Lines end with '\n' alone; one '\r' before it is dropped (CRLF). The last line needs no '\n'.
// A UTF-8 (or GB18030) byte order mark at the start of a file is dropped. A blank line (empty, or
// nothing but spaces and tabs other than the delimiter) is no row. A line over kLineBytesMax
// bytes is `too_long`; memory stays bounded however long it is.
//
// Rows are split as Hive's LazySimpleSerDe does: a one-byte delimiter, `\N` for null, no quoting.
// Escapes count only if a character for them is given (ESCAPED BY): it makes the character after
// it part of the value; escape+'n' and escape+'r' are LF and CR (serialization.escape.crlf). `\N`
// is looked for before escapes are undone. The line is decoded to UTF-8 before it is split.
//
// For a file of moderate size, e.g. one with a header row:
//
//   ASSIGN_OR_RETURN(auto lines, LineReader::Open(files, path));
//   ASSIGN_OR_RETURN(auto parser, RowParser::Create({.delimiter = '|'}));
//   Line line;
//   Field fields[32];
//   while (true) {
//     ASSIGN_OR_RETURN(bool more, lines->Next(&line));
//     if (!more) break;
//     if (parser.IsBlank(line.text)) continue;
//     parser.Reset();                                  // the last row's fields are gone
//     auto count = parser.Parse(line.text, fields);    // error: not valid in the encoding
//     ...
//   }
//
// For NDJSON use LineReader alone. Nothing here is thread-safe; errors never quote a value.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "ingest/decode.h"
#include "ingest/decompress.h"

namespace firstseen {

// A line over this is no row (its whole size is never held in memory).
inline constexpr size_t kLineBytesMax = 1 << 20;
// Capacity of a block; more than a line may have.
inline constexpr size_t kBlockBytes = 2 << 20;
// Lines in a block: bounds what is made of one, however short its lines are.
inline constexpr uint64_t kBlockLinesMax = 128 << 10;

struct Line {
  std::string_view text;  // without the line end and without a byte order mark
  std::string_view raw;   // as in the file, with '\r', without '\n' and byte order mark
  uint64_t number = 0;    // from 1
  uint64_t offset = 0;    // of its first byte in the uncompressed file
  bool too_long = false;  // `text` and `raw` are its first kLineBytesMax bytes
};

// Whole lines of one file.
struct LineBlock {
  std::string_view bytes;   // in the caller's buffer; ends with '\n' but at the end of a file
  uint64_t offset = 0;      // of bytes[0] in the uncompressed file
  uint64_t line = 1;        // number of its first line
  uint64_t end_offset = 0;  // where the next block begins
  uint64_t end_line = 1;
  bool too_long = false;  // the first kLineBytesMax bytes of one endless line
};

// Cuts a stream into blocks. Where the cuts are depends only on the bytes and on the offset of the
// first block, so that a later run which starts at some block's end finds the same blocks.
class BlockReader {
 public:
  BlockReader(std::unique_ptr<ByteStream> stream, std::string name);

  // Reads the next block into `buffer`, which has kBlockBytes. False at the end of the file.
  absl::StatusOr<bool> Next(char* buffer, LineBlock* block);
  // Reads and forgets everything before `offset`, which was a block's end. DataLoss when the file
  // is shorter. To be called before Next.
  absl::Status SkipTo(uint64_t offset, uint64_t line);

  uint64_t consumed_bytes() const { return stream_->consumed_bytes(); }
  const std::string& name() const { return name_; }

 private:
  absl::Status SkipLine(LineBlock* block);

  std::unique_ptr<ByteStream> stream_;
  std::string name_;
  std::string carry_;  // the beginning of a line that the last block had no room for
  uint64_t offset_ = 0;
  uint64_t line_ = 1;
};

// Goes through the lines of a block. About one memchr a line.
class LineCursor {
 public:
  explicit LineCursor(const LineBlock& block);
  // False at the end of the block.
  bool Next(Line* line) {
    if (next_ == end_) return false;
    const auto* newline =
        static_cast<const char*>(std::memchr(next_, '\n', static_cast<size_t>(end_ - next_)));
    const char* line_end = newline != nullptr ? newline : end_;
    line->number = number_++;
    line->offset = offset_ + static_cast<uint64_t>(next_ - begin_);
    line->raw = std::string_view(next_, static_cast<size_t>(line_end - next_));
    if (line->offset == 0) line->raw.remove_prefix(ByteOrderMarkBytes(line->raw));
    line->text = line->raw;
    if (line->text.ends_with('\r')) line->text.remove_suffix(1);
    line->too_long = too_long_ || line->text.size() > kLineBytesMax;
    next_ = newline != nullptr ? newline + 1 : end_;
    return true;
  }

 private:
  static size_t ByteOrderMarkBytes(std::string_view line);

  const char* begin_;
  const char* next_;
  const char* end_;
  uint64_t offset_;
  uint64_t number_;
  bool too_long_;
};

// One file, line by line, in about kBlockBytes of memory.
class LineReader {
 public:
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(FileSystem* files,
                                                          const std::string& path);
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(FileSystem* files, const InputFile& file);

  // False at the end. The line is valid until the next call.
  absl::StatusOr<bool> Next(Line* line);
  uint64_t consumed_bytes() const { return blocks_.consumed_bytes(); }

 private:
  explicit LineReader(BlockReader blocks);

  BlockReader blocks_;
  std::unique_ptr<char[]> buffer_;
  LineCursor cursor_;
};

struct RowFormat {
  char delimiter = '\x01';  // Hive's default, ^A
  std::optional<char> escape = std::nullopt;
  TextEncoding encoding = TextEncoding::kUtf8;
};

// One ASCII character, or its name: tab, comma, pipe, space, \t, \x01, \001, ^A.
absl::StatusOr<char> ParseDelimiter(std::string_view text);

struct Field {
  std::string_view text;  // empty when null
  bool null = false;
};

class RowParser {
 public:
  // InvalidArgument: a delimiter or escape that is no ASCII character, is a line end, or both the
  // same.
  static absl::StatusOr<RowParser> Create(const RowFormat& format);

  bool IsBlank(std::string_view line) const;
  // Splits a line. Returns how many fields it has, which may be more than there is room for in
  // `fields`: the first ones are stored. InvalidArgument when the line is not valid GB18030 (UTF-8
  // is not validated here: see IsValidUtf8; fields may hold encrypted bytes). The fields point
  // into the line, or into this parser where they had to be decoded: valid until Reset().
  absl::StatusOr<size_t> Parse(std::string_view line, std::span<Field> fields);
  // Forgets the rows parsed so far; their memory is used again.
  void Reset();

 private:
  explicit RowParser(const RowFormat& format) : format_(format) {}
  char* Allocate(size_t size);
  size_t Split(std::string_view line, std::span<Field> fields) const;
  size_t SplitEscaped(std::string_view line, std::span<Field> fields);
  std::string_view Unescape(std::string_view text);

  struct Chunk {
    std::unique_ptr<char[]> bytes;
    size_t size;
  };

  RowFormat format_;
  std::unique_ptr<Gb18030Decoder> decoder_;
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;       // the one in use
  size_t chunk_used_ = 0;  // bytes of it
};

}  // namespace firstseen
