#include "sample/output.h"

#include "base/status.h"

namespace firstseen::sample {

absl::StatusOr<Output> Output::Create(FileSystem* files, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(path, OpenMode::kCreate));
  return Output(std::move(file));
}

absl::Status Output::Flush() {
  RETURN_IF_ERROR(file_->Write(offset_, text_));
  offset_ += text_.size();
  text_.clear();
  return absl::OkStatus();
}

absl::Status CreateDirectories(FileSystem* files, const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    RETURN_IF_ERROR(files->CreateDirectory(path.substr(0, at)));
  }
  return files->CreateDirectory(path);
}

}  // namespace firstseen::sample
