// Sequential text output through a File: buffered, 1 MiB a write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen::sample {

class Output {
 public:
  // `encoding`: utf-8 or gb18030, into which the UTF-8 text is turned.
  static absl::StatusOr<Output> Create(FileSystem* files, const std::string& path,
                                       std::string_view encoding = "utf-8");

  // Append here, then call FlushIfFull after each row.
  std::string& text() { return text_; }
  absl::Status FlushIfFull() { return text_.size() < kBufferBytes ? absl::OkStatus() : Flush(); }
  // The rest goes to the operating system. Not synced: a sample can be made again.
  absl::Status Flush();

 private:
  static constexpr size_t kBufferBytes = 1 << 20;

  Output(std::unique_ptr<File> file, bool gb18030) : file_(std::move(file)), gb18030_(gb18030) {}

  std::unique_ptr<File> file_;
  bool gb18030_;
  std::string text_;
  uint64_t offset_ = 0;
};

// Creates `path` and the directories above it.
absl::Status CreateDirectories(FileSystem* files, const std::string& path);

}  // namespace firstseen::sample
