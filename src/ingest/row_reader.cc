#include "ingest/row_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kNull = "\\N";
constexpr size_t kChunkBytes = 256 << 10;

// Counts the line ends in `bytes`, and stops behind number kBlockLinesMax: *taken says where.
uint64_t CountLineEnds(std::string_view bytes, size_t* taken) {
  uint64_t count = 0;
  const char* p = bytes.data();
  const char* end = p + bytes.size();
  while (count < kBlockLinesMax) {
    const void* found = std::memchr(p, '\n', static_cast<size_t>(end - p));
    if (found == nullptr) {
      *taken = bytes.size();
      return count;
    }
    ++count;
    p = static_cast<const char*>(found) + 1;
  }
  *taken = static_cast<size_t>(p - bytes.data());
  return count;
}

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

}  // namespace

// ---- Blocks.

BlockReader::BlockReader(std::unique_ptr<ByteStream> stream, std::string name)
    : stream_(std::move(stream)), name_(std::move(name)) {}

absl::StatusOr<bool> BlockReader::Next(char* buffer, LineBlock* block) {
  size_t size = carry_.size();
  std::memcpy(buffer, carry_.data(), size);
  carry_.clear();
  ASSIGN_OR_RETURN(const size_t n, stream_->Read(buffer + size, kBlockBytes - size));
  size += n;
  if (size == 0) return false;
  const bool ended = size < kBlockBytes;
  *block = LineBlock{.bytes = {}, .offset = offset_, .line = line_};
  const auto* newline = static_cast<const char*>(memrchr(buffer, '\n', size));
  size_t taken = size;
  if (newline != nullptr && !ended) taken = static_cast<size_t>(newline - buffer) + 1;
  if (newline == nullptr && size > kLineBytesMax) {
    block->too_long = true;
    block->bytes = std::string_view(buffer, kLineBytesMax);
    block->end_offset = offset_ + size;
    block->end_line = line_ + 1;
    if (!ended) RETURN_IF_ERROR(SkipLine(block));
  } else {
    block->end_line = line_ + CountLineEnds({buffer, taken}, &taken);
    block->bytes = std::string_view(buffer, taken);
    block->end_offset = offset_ + taken;
    carry_.assign(buffer + taken, size - taken);
  }
  offset_ = block->end_offset;
  line_ = block->end_line;
  return true;
}

absl::Status BlockReader::SkipLine(LineBlock* block) {
  std::vector<char> buffer(kBlockBytes / 8);
  while (true) {
    ASSIGN_OR_RETURN(const size_t n, stream_->Read(buffer.data(), buffer.size()));
    const auto* newline = static_cast<const char*>(std::memchr(buffer.data(), '\n', n));
    if (newline != nullptr) {
      const size_t taken = static_cast<size_t>(newline - buffer.data()) + 1;
      carry_.assign(buffer.data() + taken, n - taken);
      block->end_offset += taken;
      return absl::OkStatus();
    }
    block->end_offset += n;
    if (n < buffer.size()) return absl::OkStatus();
  }
}

absl::Status BlockReader::SkipTo(uint64_t offset, uint64_t line) {
  FIRSTSEEN_CHECK(offset_ == 0 && carry_.empty());
  ASSIGN_OR_RETURN(offset_, stream_->Skip(offset));
  if (offset_ < offset) {
    return DataLoss("{}: has only {} bytes, but {} were read before; was it changed?", name_,
                    offset_, offset);
  }
  line_ = line;
  return absl::OkStatus();
}

// ---- Lines.

LineCursor::LineCursor(const LineBlock& block)
    : begin_(block.bytes.data()),
      next_(begin_),
      end_(begin_ + block.bytes.size()),
      offset_(block.offset),
      number_(block.line),
      too_long_(block.too_long) {}

size_t LineCursor::ByteOrderMarkBytes(std::string_view line) {
  if (line.starts_with("\xef\xbb\xbf")) return 3;
  if (line.starts_with("\x84\x31\x95\x33")) return 4;
  return 0;
}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(FileSystem* files,
                                                             const std::string& path) {
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(files, std::span(&path, 1)));
  if (listing.files.size() != 1 || listing.files.front().path != path) {
    return InvalidArgument("{}: not a file", path);
  }
  return Open(files, listing.files.front());
}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(FileSystem* files,
                                                             const InputFile& file) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, OpenByteStream(files, file));
  return std::unique_ptr<LineReader>(new LineReader(BlockReader(std::move(stream), file.path)));
}

LineReader::LineReader(BlockReader blocks)
    : blocks_(std::move(blocks)), buffer_(new char[kBlockBytes]), cursor_(LineBlock{}) {}

absl::StatusOr<bool> LineReader::Next(Line* line) {
  while (!cursor_.Next(line)) {
    LineBlock block;
    ASSIGN_OR_RETURN(const bool more, blocks_.Next(buffer_.get(), &block));
    if (!more) return false;
    cursor_ = LineCursor(block);
  }
  return true;
}

// ---- Rows.

absl::StatusOr<char> ParseDelimiter(std::string_view text) {
  if (text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80 && !IsLineEnd(text[0])) {
    return text[0];
  }
  if (text == "tab" || text == "\\t") return '\t';
  if (text == "comma") return ',';
  if (text == "pipe") return '|';
  if (text == "space") return ' ';
  if (text == "\\\\") return '\\';
  if (text.size() == 2 && text[0] == '^' && text[1] >= 'A' && text[1] <= 'Z') {
    const char c = static_cast<char>(text[1] - 'A' + 1);
    if (!IsLineEnd(c)) return c;
  }
  int base = 0;
  if (text.starts_with("\\x") && text.size() > 2 && text.size() <= 4) base = 16;
  if (text.starts_with("\\0") && text.size() == 4) base = 8;
  if (base != 0) {
    int value = 0;
    bool valid = true;
    for (const char c : text.substr(base == 16 ? 2 : 1)) {
      const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const int digit = lower >= '0' && lower <= '9'   ? lower - '0'
                        : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                       : 99;
      valid = valid && digit < base;
      value = value * base + digit;
    }
    if (valid && value < 0x80 && !IsLineEnd(static_cast<char>(value))) {
      return static_cast<char>(value);
    }
  }
  return InvalidArgument(
      "the delimiter must be one ASCII character other than a line end, such as '|', ',', tab or "
      "\\x01");
}

absl::StatusOr<RowParser> RowParser::Create(const RowFormat& format) {
  for (const char c : {format.delimiter, format.escape.value_or('\\')}) {
    if (static_cast<unsigned char>(c) >= 0x80 || IsLineEnd(c)) {
      return InvalidArgument(
          "the delimiter and the escape character must be ASCII and no line ends");
    }
  }
  if (format.escape == format.delimiter) {
    return InvalidArgument("the delimiter and the escape character are the same");
  }
  RowParser parser(format);
  if (format.encoding == TextEncoding::kGb18030) {
    ASSIGN_OR_RETURN(parser.decoder_, Gb18030Decoder::Create());
  }
  return parser;
}

bool RowParser::IsBlank(std::string_view line) const {
  if (line.empty()) return true;
  if (line.front() != ' ' && line.front() != '\t') return false;
  return std::all_of(line.begin(), line.end(),
                     [this](char c) { return (c == ' ' || c == '\t') && c != format_.delimiter; });
}

absl::StatusOr<size_t> RowParser::Parse(std::string_view line, std::span<Field> fields) {
  if (decoder_ != nullptr && !IsAscii(line)) {
    char* out = Allocate(Gb18030Decoder::DecodedBytesMax(line.size()));
    const size_t size = decoder_->Decode(line, out);
    if (size == SIZE_MAX) {
      return InvalidArgument("the line is not valid GB18030");
    }
    line = std::string_view(out, size);
  }
  if (format_.escape.has_value() && line.find(*format_.escape) != std::string_view::npos) {
    return SplitEscaped(line, fields);
  }
  return Split(line, fields);
}

size_t RowParser::Split(std::string_view line, std::span<Field> fields) const {
  const char* next = line.data();
  const char* end = next + line.size();
  size_t count = 0;
  while (true) {
    const auto* found = static_cast<const char*>(
        std::memchr(next, format_.delimiter, static_cast<size_t>(end - next)));
    const char* field_end = found != nullptr ? found : end;
    if (count < fields.size()) {
      const std::string_view text(next, static_cast<size_t>(field_end - next));
      const bool null = text == kNull;
      fields[count] = {null ? std::string_view() : text, null};
    }
    ++count;
    if (found == nullptr) return count;
    next = found + 1;
  }
}

size_t RowParser::SplitEscaped(std::string_view line, std::span<Field> fields) {
  const char escape = *format_.escape;
  size_t count = 0;
  size_t start = 0;
  bool escaped = false;  // the field has an escape in it
  for (size_t i = 0;; ++i) {
    if (i < line.size() && line[i] == escape) {
      escaped = true;
      ++i;  // the next character, whatever it is, belongs to the value
      continue;
    }
    if (i < line.size() && line[i] != format_.delimiter) continue;
    const size_t end = std::min(i, line.size());
    if (count < fields.size()) {
      const std::string_view text = line.substr(start, end - start);
      const bool null = text == kNull;
      fields[count] = {null ? std::string_view() : escaped ? Unescape(text) : text, null};
    }
    ++count;
    if (i >= line.size()) return count;
    start = i + 1;
    escaped = false;
  }
}

std::string_view RowParser::Unescape(std::string_view text) {
  char* out = Allocate(text.size());
  size_t size = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == *format_.escape && i + 1 < text.size()) {
      c = text[++i];
      if (c == 'n') c = '\n';
      if (c == 'r') c = '\r';
    }
    out[size++] = c;
  }
  return {out, size};
}

char* RowParser::Allocate(size_t size) {
  while (chunk_ < chunks_.size() && chunks_[chunk_].size - chunk_used_ < size) {
    ++chunk_;
    chunk_used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    const size_t bytes = std::max(size, kChunkBytes);
    chunks_.push_back({std::make_unique_for_overwrite<char[]>(bytes), bytes});
    chunk_used_ = 0;
  }
  char* result = chunks_[chunk_].bytes.get() + chunk_used_;
  chunk_used_ += size;
  return result;
}

void RowParser::Reset() {
  chunk_ = 0;
  chunk_used_ = 0;
}

}  // namespace firstseen
