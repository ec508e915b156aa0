#include "sample/output.h"

#include <iconv.h>

#include "base/check.h"
#include "base/status.h"

namespace firstseen::sample {
namespace {

absl::StatusOr<std::string> ToGb18030(std::string& utf8) {
  iconv_t converter = iconv_open("GB18030", "UTF-8");
  if (converter == reinterpret_cast<iconv_t>(-1)) {
    return Unavailable("the C library has no GB18030 converter; install libc-bin's gconv modules");
  }
  std::string out(utf8.size() * 4 / 3 + 16, '\0');
  char* from = utf8.data();
  char* to = out.data();
  size_t from_left = utf8.size();
  size_t to_left = out.size();
  const size_t failed = iconv(converter, &from, &from_left, &to, &to_left);
  iconv_close(converter);
  FIRSTSEEN_CHECK(failed != static_cast<size_t>(-1));  // any UTF-8 text has a GB18030 form
  out.resize(out.size() - to_left);
  return out;
}

}  // namespace

absl::StatusOr<Output> Output::Create(FileSystem* files, const std::string& path,
                                      std::string_view encoding) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(path, OpenMode::kCreate));
  return Output(std::move(file), encoding == "gb18030");
}

absl::Status Output::Flush() {
  if (gb18030_) {
    ASSIGN_OR_RETURN(text_, ToGb18030(text_));
  }
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
