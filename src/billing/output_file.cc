#include "billing/output_file.h"

#include <utility>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(FileSystem* files,
                                                               const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(path + ".tmp", OpenMode::kCreate));
  return std::unique_ptr<OutputFile>(new OutputFile(files, path, std::move(file)));
}

absl::Status OutputFile::Append(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::Flush() {
  RETURN_IF_ERROR(file_->Write(offset_, buffer_));
  offset_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(file_->Sync());
  file_.reset();
  return files_->Rename(path_ + ".tmp", path_);
}

absl::Status OutputFile::Abandon() {
  file_.reset();
  return files_->Remove(path_ + ".tmp");
}

absl::Status MakeDirectories(FileSystem* files, const std::string& path) {
  ASSIGN_OR_RETURN(const bool exists, files->Exists(path));
  if (exists) return absl::OkStatus();
  const std::string parent = ParentDirectory(path);
  if (parent != path) RETURN_IF_ERROR(MakeDirectories(files, parent));
  RETURN_IF_ERROR(files->CreateDirectory(path));
  return files->SyncDirectory(parent);
}

absl::Status RemoveIfThere(FileSystem* files, const std::string& path) {
  const absl::Status status = files->Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace firstseen
