#include "ingest/decompress.h"

#include <bzlib.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kMagicBytes = 10;

// ---- Bytes as they are on disk.

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<File> file) : file_(std::move(file)) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    ASSIGN_OR_RETURN(const size_t n, file_->Read(offset_, out, size));
    offset_ += n;
    return n;
  }
  absl::StatusOr<uint64_t> Skip(uint64_t size) override {
    ASSIGN_OR_RETURN(const uint64_t file_size, file_->Size());
    const uint64_t n = std::min(size, file_size - std::min(file_size, offset_));
    offset_ += n;
    return n;
  }
  uint64_t consumed_bytes() const override { return offset_; }

 private:
  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
};

// Standard input, pipes, devices.
class DescriptorStream : public ByteStream {
 public:
  DescriptorStream(std::string name, int fd, bool owned)
      : name_(std::move(name)), fd_(fd), owned_(owned) {}
  ~DescriptorStream() override {
    if (owned_) ::close(fd_);
  }
  DescriptorStream(const DescriptorStream&) = delete;
  DescriptorStream& operator=(const DescriptorStream&) = delete;

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = ::read(fd_, out + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Unavailable("{}: cannot read: {}", name_, std::strerror(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    consumed_ += done;
    return done;
  }
  uint64_t consumed_bytes() const override { return consumed_; }

 private:
  std::string name_;
  int fd_;
  bool owned_;
  uint64_t consumed_ = 0;
};

// Gives back the bytes that were read to look at them, then goes on.
class PeekedStream : public ByteStream {
 public:
  PeekedStream(std::string head, std::unique_ptr<ByteStream> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    const size_t n = std::min(size, head_.size() - used_);
    std::memcpy(out, head_.data() + used_, n);
    used_ += n;
    if (n == size) return n;
    ASSIGN_OR_RETURN(const size_t more, rest_->Read(out + n, size - n));
    return n + more;
  }
  absl::StatusOr<uint64_t> Skip(uint64_t size) override {
    const uint64_t n = std::min<uint64_t>(size, head_.size() - used_);
    used_ += n;
    ASSIGN_OR_RETURN(const uint64_t more, rest_->Skip(size - n));
    return n + more;
  }
  uint64_t consumed_bytes() const override { return rest_->consumed_bytes(); }

 private:
  std::string head_;
  size_t used_ = 0;
  std::unique_ptr<ByteStream> rest_;
};

// ---- Decoders. One step of each: takes from `in`, writes to `out`.

struct Buffers {
  const char* in;
  size_t in_size;
  char* out;
  size_t out_size;

  void Advance(size_t used, size_t made) {
    in += used;
    in_size -= used;
    out += made;
    out_size -= made;
  }
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Advances all four members of `buffers`. False: the data are corrupt.
  virtual bool Step(Buffers* buffers) = 0;
  // Whether the input may end here.
  virtual bool complete() const = 0;
};

// gzip and zlib. Several gzip members may follow each other, and zero bytes after the last (tapes,
// block devices) are ignored, as gzip itself does.
class ZlibDecoder : public Decoder {
 public:
  explicit ZlibDecoder(bool gzip) : gzip_(gzip) {
    FIRSTSEEN_CHECK(inflateInit2(&stream_, gzip ? 15 + 16 : 15) == Z_OK);
  }
  ~ZlibDecoder() override { inflateEnd(&stream_); }

  bool Step(Buffers* buffers) override {
    if (between_members_) {
      if (!gzip_) return false;  // bytes after the end
      while (buffers->in_size > 0 && *buffers->in == 0) {
        padded_ = true;
        ++buffers->in;
        --buffers->in_size;
      }
      if (buffers->in_size == 0) return true;
      if (padded_ || inflateReset(&stream_) != Z_OK) return false;
      between_members_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(buffers->in));
    stream_.avail_in = static_cast<uInt>(buffers->in_size);
    stream_.next_out = reinterpret_cast<Bytef*>(buffers->out);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(buffers->out_size, 1u << 30));
    const uInt out_before = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    buffers->Advance(buffers->in_size - stream_.avail_in, out_before - stream_.avail_out);
    if (result == Z_STREAM_END) between_members_ = true;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
  }
  bool complete() const override { return between_members_; }

 private:
  const bool gzip_;
  z_stream stream_ = {};
  bool between_members_ = false;
  bool padded_ = false;
};

class Bzip2Decoder : public Decoder {
 public:
  ~Bzip2Decoder() override {
    if (open_) BZ2_bzDecompressEnd(&stream_);
  }
  bool Step(Buffers* buffers) override {
    if (!open_) {
      stream_ = {};
      if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) return false;
      open_ = true;
    }
    stream_.next_in = const_cast<char*>(buffers->in);
    stream_.avail_in = static_cast<unsigned>(buffers->in_size);
    stream_.next_out = buffers->out;
    stream_.avail_out = static_cast<unsigned>(std::min<size_t>(buffers->out_size, 1u << 30));
    const unsigned out_before = stream_.avail_out;
    const int result = BZ2_bzDecompress(&stream_);
    buffers->Advance(buffers->in_size - stream_.avail_in, out_before - stream_.avail_out);
    if (result == BZ_STREAM_END) {
      BZ2_bzDecompressEnd(&stream_);
      open_ = false;
    }
    return result == BZ_OK || result == BZ_STREAM_END;
  }
  bool complete() const override { return !open_; }

 private:
  bz_stream stream_ = {};
  bool open_ = false;
};

// Frames that ask for a window over 128 MiB (zstd --long=28 and more) are refused as corrupt:
// memory stays bounded.
class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDStream()) { FIRSTSEEN_CHECK(stream_ != nullptr); }
  ~ZstdDecoder() override { ZSTD_freeDStream(stream_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  bool Step(Buffers* buffers) override {
    ZSTD_inBuffer in = {buffers->in, buffers->in_size, 0};
    ZSTD_outBuffer out = {buffers->out, buffers->out_size, 0};
    const size_t result = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(result)) return false;
    buffers->Advance(in.pos, out.pos);
    complete_ = result == 0;
    return true;
  }
  bool complete() const override { return complete_; }

 private:
  ZSTD_DStream* stream_;
  bool complete_ = true;
};

class CompressedStream : public ByteStream {
 public:
  CompressedStream(std::string name, std::unique_ptr<ByteStream> raw,
                   std::unique_ptr<Decoder> decoder)
      : name_(std::move(name)),
        raw_(std::move(raw)),
        decoder_(std::move(decoder)),
        input_(kInputBytes) {}

  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    Buffers buffers = {next_, available_, out, size};
    while (buffers.out_size > 0) {
      if (buffers.in_size == 0 && !raw_ended_) {
        ASSIGN_OR_RETURN(buffers.in_size, raw_->Read(input_.data(), input_.size()));
        buffers.in = input_.data();
        raw_ended_ = buffers.in_size < input_.size();
      }
      // With no input left a decoder may still hold output.
      const size_t out_before = buffers.out_size;
      const size_t in_before = buffers.in_size;
      if (in_before == 0 && decoder_->complete()) break;
      if (!decoder_->Step(&buffers)) {
        return DataLoss("{}: compressed data are corrupt near byte {}; export or copy it again",
                        name_, raw_->consumed_bytes() - buffers.in_size);
      }
      if (in_before == 0 && buffers.out_size == out_before) {
        if (decoder_->complete()) break;
        return DataLoss("{}: compressed data end too early (cut off?); export or copy it again",
                        name_);
      }
    }
    next_ = buffers.in;
    available_ = buffers.in_size;
    return size - buffers.out_size;
  }
  uint64_t consumed_bytes() const override { return raw_->consumed_bytes() - available_; }

 private:
  std::string name_;
  std::unique_ptr<ByteStream> raw_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<char> input_;
  const char* next_ = nullptr;
  size_t available_ = 0;
  bool raw_ended_ = false;
};

// ---- Names and first bytes.

struct Format {
  Compression compression;
  std::string_view extension;
  std::string_view name;
};
constexpr std::array<Format, 4> kFormats = {{
    {Compression::kGzip, ".gz", "gzip"},
    {Compression::kZstd, ".zst", "Zstandard"},
    {Compression::kBzip2, ".bz2", "bzip2"},
    {Compression::kDeflate, ".deflate", "zlib (deflate)"},
}};
constexpr std::array<std::string_view, 10> kUnsupported = {
    ".snappy", ".lz4", ".lzo", ".xz", ".zip", ".parquet", ".orc", ".avro", ".br", ".7z"};

bool HasMagic(Compression compression, std::string_view head) {
  switch (compression) {
    case Compression::kGzip:
      return head.starts_with("\x1f\x8b\x08");
    case Compression::kZstd:  // a frame, or a skippable frame
      return head.starts_with("\x28\xb5\x2f\xfd") ||
             (head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18");
    case Compression::kBzip2:  // a block, or the end mark of an empty file
      return head.size() >= 10 && head.starts_with("BZh") && head[3] >= '1' && head[3] <= '9' &&
             (head.substr(4, 6) == "1AY&SY" || head.substr(4, 6) == "\x17\x72\x45\x38\x50\x90");
    case Compression::kDeflate: {
      if (head.size() < 2) return false;
      const auto cmf = static_cast<unsigned char>(head[0]);
      const auto flags = static_cast<unsigned char>(head[1]);
      return (cmf & 0x0f) == 8 && (cmf >> 4) <= 7 && (cmf * 256 + flags) % 31 == 0;
    }
    case Compression::kNone:
      return true;
  }
  return false;
}

absl::Status CheckMagic(const std::string& path, Compression compression, std::string_view head) {
  for (const Format& format : kFormats) {
    if (format.compression == compression && !HasMagic(compression, head)) {
      return DataLoss(
          "{}: the name ends in {} but the content is not {}; rename it, or export or copy it "
          "again",
          path, format.extension, format.name);
    }
    // Two bytes of zlib are no proof: only the others are looked for under a plain name.
    if (compression == Compression::kNone && format.compression != Compression::kDeflate &&
        HasMagic(format.compression, head)) {
      return InvalidArgument(
          "{}: the content is {} but the name does not end in {}; {}", path, format.name,
          format.extension, path == kStandardInput ? "decompress it before the pipe" : "rename it");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenRaw(FileSystem* files, const InputFile& input) {
  if (input.path == kStandardInput) {
    return std::make_unique<DescriptorStream>("standard input", STDIN_FILENO, /*owned=*/false);
  }
  if (input.stream) {
    const int fd = ::open(input.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Unavailable("{}: cannot open: {}", input.path, std::strerror(errno));
    return std::make_unique<DescriptorStream>(input.path, fd, /*owned=*/true);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(input.path, OpenMode::kRead));
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace

absl::StatusOr<uint64_t> ByteStream::Skip(uint64_t size) {
  std::vector<char> buffer(std::min<uint64_t>(size, kInputBytes));
  uint64_t done = 0;
  while (done < size) {
    const size_t want = std::min<uint64_t>(buffer.size(), size - done);
    ASSIGN_OR_RETURN(const size_t n, Read(buffer.data(), want));
    done += n;
    if (n < want) break;
  }
  return done;
}

absl::StatusOr<Compression> CompressionOf(std::string_view path) {
  for (const Format& format : kFormats) {
    if (path.ends_with(format.extension)) return format.compression;
  }
  for (const std::string_view extension : kUnsupported) {
    if (path.ends_with(extension)) {
      return InvalidArgument(
          "{}: {} files cannot be read; export as text, plain or .gz, .zst, .bz2, .deflate", path,
          extension);
    }
  }
  return Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(FileSystem* files,
                                                           const InputFile& file) {
  ASSIGN_OR_RETURN(const Compression compression, CompressionOf(file.path));
  ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> raw, OpenRaw(files, file));
  std::string head(kMagicBytes, '\0');
  ASSIGN_OR_RETURN(const size_t n, raw->Read(head.data(), head.size()));
  head.resize(n);
  if (n > 0) RETURN_IF_ERROR(CheckMagic(file.path, compression, head));
  raw = std::make_unique<PeekedStream>(std::move(head), std::move(raw));
  std::unique_ptr<Decoder> decoder;
  switch (compression) {
    case Compression::kNone:
      return raw;
    case Compression::kGzip:
    case Compression::kDeflate:
      decoder = std::make_unique<ZlibDecoder>(compression == Compression::kGzip);
      break;
    case Compression::kZstd:
      decoder = std::make_unique<ZstdDecoder>();
      break;
    case Compression::kBzip2:
      decoder = std::make_unique<Bzip2Decoder>();
      break;
  }
  if (n == 0) return raw;
  return std::make_unique<CompressedStream>(file.path, std::move(raw), std::move(decoder));
}

}  // namespace firstseen
