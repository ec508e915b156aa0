// Sequential text output through a File: buffered, 1 MiB a write.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen::sample {

class Output {
 public:
  static absl::StatusOr<Output> Create(FileSystem* files, const std::string& path);

  // Append here, then call FlushIfFull after each row.
  std::string& text() { return text_; }
  absl::Status FlushIfFull() { return text_.size() < kBufferBytes ? absl::OkStatus() : Flush(); }
  // The rest goes to the operating system. Not synced: a sample can be made again.
  absl::Status Flush();

 private:
  static constexpr size_t kBufferBytes = 1 << 20;

  explicit Output(std::unique_ptr<File> file) : file_(std::move(file)) {}

  std::unique_ptr<File> file_;
  std::string text_;
  uint64_t offset_ = 0;
};

// Creates `path` and the directories above it.
absl::Status CreateDirectories(FileSystem* files, const std::string& path);

}  // namespace firstseen::sample
