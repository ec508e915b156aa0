// Reads a file from its beginning, decompressed.
//
// The name's extension chooses: .gz (RFC 1952, any number of members), .zst (RFC 8878, any number
// of frames), .bz2 (any number of streams), .deflate (zlib, RFC 1950, as Hadoop's DefaultCodec
// writes), anything else plain. The first bytes must agree: a .gz that is none, or a gzip file
// under a plain name, is an error and never read as rows. A file of zero bytes is empty whatever
// its name. Formats that cannot be read here (.snappy, .lz4, .parquet, ...) are refused by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "ingest/source.h"

namespace firstseen {

enum class Compression { kNone, kGzip, kZstd, kBzip2, kDeflate };

// InvalidArgument for a format that is known and not supported.
absl::StatusOr<Compression> CompressionOf(std::string_view path);

// Not thread-safe.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills `out`; fewer than `size` bytes only at the end, then 0. DataLoss: truncated or corrupt
  // compressed data; Unavailable: the read failed. Both name the file.
  virtual absl::StatusOr<size_t> Read(char* out, size_t size) = 0;
  // Passes over up to `size` bytes and returns how many; fewer only at the end. O(1) for a plain
  // file, otherwise everything before is read and decompressed.
  virtual absl::StatusOr<uint64_t> Skip(uint64_t size);
  // Bytes of the file, as it is on disk, taken in so far (for progress).
  virtual uint64_t consumed_bytes() const = 0;
};

// Opens and checks the first bytes.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(FileSystem* files,
                                                           const InputFile& file);

}  // namespace firstseen
