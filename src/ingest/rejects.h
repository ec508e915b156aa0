// Rejected rows: set aside while an import goes on, written out when it ends. See import.h for what
// the user gets.
//
// Each lane of an import has a spool, a file to which frames are appended; its length is recorded
// with the import's position, so that after a crash it is cut back to what is recorded, and each
// rejected row is in it exactly once. At the end the spools, each in order, are merged.
//
// Frame, numbers little-endian:
//   file:u64 line:u64 field_bytes:u32 reason_bytes:u32 remedy_bytes:u32 raw_bytes:u32
//   field reason remedy raw
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "ingest/row_mapper.h"
#include "ingest/source.h"

namespace firstseen {

// Appends a frame to `frames`; `file` is an index into the import's list of files.
void AppendRejectFrame(uint64_t file, uint64_t line, const RejectReason& reason,
                       std::string_view raw, std::string* frames);

class RejectSpool {
 public:
  RejectSpool(FileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}

  // Goes on behind the first `bytes` and forgets the rest. DataLoss when there are fewer.
  absl::Status Resume(uint64_t bytes);
  // Appends and syncs: the frames are on disk when this returns.
  absl::Status Append(std::string_view frames);
  // OK when there is no such file.
  absl::Status Remove();

  uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  FileSystem* files_;
  std::string path_;
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
};

// What is known of each file of the import when its rejects are written.
struct RejectSource {
  std::string path;
  std::string folder;  // "ds=2023-01-01/region=x" if its rows need the folders, else empty
};

// Of the rejected rows, the ones that were rejected for the reason given most often.
struct CommonReject {
  std::string reason;  // see DescribeReject; empty when nothing was rejected
  uint64_t rows = 0;
};

// Merges the spools into `path` and `path`.reasons (and `path`.d), each written under another name,
// synced and renamed. With `keep_empty` false files that would be empty are removed instead.
// Memory: about 64 KiB and the longest row for each spool.
absl::StatusOr<CommonReject> WriteRejects(FileSystem* files,
                                          std::span<const RejectSpool* const> spools,
                                          std::span<const RejectSource> sources,
                                          const std::string& path, bool keep_empty);

}  // namespace firstseen
