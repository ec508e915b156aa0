// A file that is there whole or not at all: written as PATH.tmp, synced, renamed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

class OutputFile {
 public:
  // The directory must exist. An older PATH.tmp is overwritten.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(FileSystem* files,
                                                            const std::string& path);

  absl::Status Append(std::string_view text);
  // Syncs and renames. Durable once the directory is synced, which is left to the caller so that
  // many files can share it.
  absl::Status Commit();
  // Removes the temporary file.
  absl::Status Abandon();
  const std::string& path() const { return path_; }

 private:
  OutputFile(FileSystem* files, std::string path, std::unique_ptr<File> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Flush();

  FileSystem* files_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::string buffer_;
  uint64_t offset_ = 0;
};

// Makes `path` and the directories above it that are missing, durably.
absl::Status MakeDirectories(FileSystem* files, const std::string& path);

// Removes `path`; OK when it is not there.
absl::Status RemoveIfThere(FileSystem* files, const std::string& path);

}  // namespace firstseen
