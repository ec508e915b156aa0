#include "ingest/rejects.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kWriteBytes = 256 << 10;
constexpr size_t kTalliedMax = 1000;
constexpr std::string_view kFolderFile = "rejects";
constexpr std::string_view kReasonsHeader = "file\tline\tfield\treason\tremedy\n";

// Reads a spool's frames one after the other.
class SpoolReader {
 public:
  static absl::StatusOr<std::unique_ptr<SpoolReader>> Open(FileSystem* files,
                                                           const RejectSpool& spool) {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(spool.path(), OpenMode::kRead));
    return std::unique_ptr<SpoolReader>(
        new SpoolReader(std::move(file), spool.path(), spool.bytes()));
  }

  // False at the end.
  absl::StatusOr<bool> Next() {
    position_ += frame_bytes_;
    frame_bytes_ = 0;
    if (position_ == buffer_.size() && offset_ == bytes_) return false;
    RETURN_IF_ERROR(Fill(kHeaderBytes));
    size_t size = kHeaderBytes;
    for (int i = 0; i < 4; ++i) size += Number32(16 + 4 * i);
    RETURN_IF_ERROR(Fill(size));
    frame_bytes_ = size;
    return true;
  }

  uint64_t file() const { return LoadLittle<uint64_t>(frame()); }
  uint64_t line() const { return LoadLittle<uint64_t>(frame() + 8); }
  // 0 field, 1 reason, 2 remedy, 3 raw.
  std::string_view Text(int which) const {
    size_t start = kHeaderBytes;
    for (int i = 0; i < which; ++i) start += Number32(16 + 4 * i);
    return {frame() + start, Number32(16 + 4 * which)};
  }

 private:
  SpoolReader(std::unique_ptr<File> file, std::string path, uint64_t bytes)
      : file_(std::move(file)), path_(std::move(path)), bytes_(bytes) {}

  const char* frame() const { return buffer_.data() + position_; }
  size_t Number32(int at) const { return LoadLittle<uint32_t>(frame() + at); }

  // Makes `size` bytes of the frame at hand available.
  absl::Status Fill(size_t size) {
    if (buffer_.size() - position_ >= size) return absl::OkStatus();
    buffer_.erase(0, position_);
    position_ = 0;
    const size_t old_size = buffer_.size();
    const size_t want = std::min<uint64_t>(std::max(size, kReadBytes), bytes_ - offset_);
    buffer_.resize(old_size + want);
    ASSIGN_OR_RETURN(const size_t n, file_->Read(offset_, buffer_.data() + old_size, want));
    buffer_.resize(old_size + n);
    offset_ += n;
    if (buffer_.size() >= size) return absl::OkStatus();
    return DataLoss("{}: set-aside rows are damaged; delete it and import again", path_);
  }

  std::unique_ptr<File> file_;
  std::string path_;
  uint64_t bytes_;
  uint64_t offset_ = 0;  // of what is not yet in the buffer
  std::string buffer_;
  size_t position_ = 0;  // of the frame at hand
  size_t frame_bytes_ = 0;
};

// Appends to a file under a temporary name.
class Output {
 public:
  static absl::StatusOr<Output> Open(FileSystem* files, const std::string& path, uint64_t size) {
    ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                     files->Open(path, size == 0 ? OpenMode::kCreate : OpenMode::kReadWrite));
    return Output(std::move(file), size);
  }
  absl::Status Write(std::string_view text) {
    text_.append(text);
    return text_.size() < kWriteBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Finish() {
    RETURN_IF_ERROR(Flush());
    return file_->Sync();
  }
  uint64_t size() const { return size_ + text_.size(); }

 private:
  Output(std::unique_ptr<File> file, uint64_t size) : file_(std::move(file)), size_(size) {}
  absl::Status Flush() {
    RETURN_IF_ERROR(file_->Write(size_, text_));
    size_ += text_.size();
    text_.clear();
    return absl::OkStatus();
  }

  std::unique_ptr<File> file_;
  uint64_t size_;
  std::string text_;
};

// Tabs and line ends would break the reasons' lines.
std::string OneLine(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\t') {
      result += "\\t";
    } else if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

absl::Status CreateFolders(FileSystem* files, const std::string& base, std::string_view folder) {
  RETURN_IF_ERROR(files->CreateDirectory(base));
  for (size_t end = folder.find('/'); end != std::string_view::npos;
       end = folder.find('/', end + 1)) {
    RETURN_IF_ERROR(files->CreateDirectory(fmt::format("{}/{}", base, folder.substr(0, end))));
  }
  return files->CreateDirectory(fmt::format("{}/{}", base, folder));
}

// The rejects of an earlier import, below `directory`.
absl::Status RemoveFolderFiles(FileSystem* files, const std::string& directory) {
  ASSIGN_OR_RETURN(const bool exists, files->Exists(directory));
  if (!exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    if (name == kFolderFile) RETURN_IF_ERROR(files->Remove(path));
    if (name.find('=') != std::string::npos) RETURN_IF_ERROR(RemoveFolderFiles(files, path));
  }
  return absl::OkStatus();
}

// The files being written; each has its final name in `names_` and stands under Temporary(name).
class RejectWriter {
 public:
  RejectWriter(FileSystem* files, std::span<const RejectSource> sources, std::string path)
      : files_(files), sources_(sources), path_(std::move(path)) {}

  absl::Status Start() {
    ASSIGN_OR_RETURN(Output reasons, Output::Open(files_, Temporary(path_ + ".reasons"), 0));
    reasons_ = std::make_unique<Output>(std::move(reasons));
    RETURN_IF_ERROR(reasons_->Write(kReasonsHeader));
    return Select("");
  }

  absl::Status Write(const SpoolReader& reject) {
    const RejectSource& source = sources_[reject.file()];
    if (source.folder != folder_) RETURN_IF_ERROR(Select(source.folder));
    RETURN_IF_ERROR(rows_->Write(reject.Text(3)));
    RETURN_IF_ERROR(rows_->Write("\n"));
    ++count_;
    Tally(reject);
    return reasons_->Write(fmt::format("{}\t{}\t{}\t{}\t{}\n", OneLine(source.path), reject.line(),
                                       OneLine(reject.Text(0)), OneLine(reject.Text(1)),
                                       OneLine(reject.Text(2))));
  }

  absl::Status Finish(bool keep_empty) {
    RETURN_IF_ERROR(CloseRows());
    RETURN_IF_ERROR(reasons_->Finish());
    reasons_.reset();
    RETURN_IF_ERROR(RemoveFolderFiles(files_, path_ + ".d"));
    const bool keep = keep_empty || count_ > 0;
    for (const auto& [folder, size] : sizes_) RETURN_IF_ERROR(Publish(Name(folder), keep));
    return Publish(path_ + ".reasons", keep);
  }

  CommonReject commonest() const {
    CommonReject commonest;
    for (const auto& [reason, rows] : tally_) {
      if (rows > commonest.rows) commonest = {reason, rows};
    }
    return commonest;
  }

 private:
  // There are few different reasons, as they hold no values; should there be many, those met late
  // are not the common ones.
  void Tally(const SpoolReader& reject) {
    const std::string reason = DescribeReject({.field = std::string(reject.Text(0)),
                                               .reason = std::string(reject.Text(1)),
                                               .remedy = std::string(reject.Text(2))});
    const auto found = tally_.find(reason);
    if (found != tally_.end()) {
      ++found->second;
    } else if (tally_.size() < kTalliedMax) {
      tally_.emplace(reason, 1);
    }
  }

  std::string Name(const std::string& folder) const {
    return folder.empty() ? path_ : fmt::format("{}.d/{}/{}", path_, folder, kFolderFile);
  }
  // Hidden, so that an import of the directory does not read half a file.
  static std::string Temporary(const std::string& path) {
    const size_t slash = path.rfind('/');
    const size_t name = slash == std::string::npos ? 0 : slash + 1;
    return path.substr(0, name) + "." + path.substr(name) + ".tmp";
  }

  absl::Status Select(const std::string& folder) {
    if (rows_ != nullptr) RETURN_IF_ERROR(CloseRows());
    if (!folder.empty()) RETURN_IF_ERROR(CreateFolders(files_, path_ + ".d", folder));
    ASSIGN_OR_RETURN(Output rows, Output::Open(files_, Temporary(Name(folder)), sizes_[folder]));
    rows_ = std::make_unique<Output>(std::move(rows));
    folder_ = folder;
    return absl::OkStatus();
  }

  absl::Status CloseRows() {
    RETURN_IF_ERROR(rows_->Finish());
    sizes_[folder_] = rows_->size();
    rows_.reset();
    return absl::OkStatus();
  }

  absl::Status Publish(const std::string& path, bool keep) {
    if (keep) {
      RETURN_IF_ERROR(files_->Rename(Temporary(path), path));
    } else {
      RETURN_IF_ERROR(files_->Remove(Temporary(path)));
      ASSIGN_OR_RETURN(const bool exists, files_->Exists(path));
      if (exists) RETURN_IF_ERROR(files_->Remove(path));
    }
    return files_->SyncDirectory(ParentDirectory(path));
  }

  FileSystem* files_;
  std::span<const RejectSource> sources_;
  std::string path_;
  std::unique_ptr<Output> reasons_;
  std::unique_ptr<Output> rows_;
  std::string folder_;                     // that `rows_` is of
  std::map<std::string, uint64_t> sizes_;  // folder -> bytes written
  uint64_t count_ = 0;
  std::map<std::string, uint64_t> tally_;  // reason -> rows
};

}  // namespace

void AppendRejectFrame(uint64_t file, uint64_t line, const RejectReason& reason,
                       std::string_view raw, std::string* frames) {
  AppendLittle(frames, file);
  AppendLittle(frames, line);
  const std::string_view texts[] = {reason.field, reason.reason, reason.remedy, raw};
  for (const std::string_view text : texts)
    AppendLittle(frames, static_cast<uint32_t>(text.size()));
  for (const std::string_view text : texts) frames->append(text);
}

absl::Status RejectSpool::Resume(uint64_t bytes) {
  if (bytes == 0) return Remove();
  absl::StatusOr<std::unique_ptr<File>> file = files_->Open(path_, OpenMode::kReadWrite);
  uint64_t size = 0;
  if (file.ok()) {
    ASSIGN_OR_RETURN(size, (*file)->Size());
  } else if (!absl::IsNotFound(file.status())) {
    return file.status();
  }
  if (size < bytes) return DataLoss("{}: rejected rows that were set aside are gone", path_);
  RETURN_IF_ERROR((*file)->Truncate(bytes));
  file_ = *std::move(file);
  bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status RejectSpool::Append(std::string_view frames) {
  if (file_ == nullptr) {
    ASSIGN_OR_RETURN(file_, files_->Open(path_, OpenMode::kCreate));
    RETURN_IF_ERROR(files_->SyncDirectory(ParentDirectory(path_)));
  }
  RETURN_IF_ERROR(file_->Write(bytes_, frames));
  RETURN_IF_ERROR(file_->Sync());
  bytes_ += frames.size();
  return absl::OkStatus();
}

absl::Status RejectSpool::Remove() {
  file_.reset();
  bytes_ = 0;
  ASSIGN_OR_RETURN(const bool exists, files_->Exists(path_));
  return exists ? files_->Remove(path_) : absl::OkStatus();
}

absl::StatusOr<CommonReject> WriteRejects(FileSystem* files,
                                          std::span<const RejectSpool* const> spools,
                                          std::span<const RejectSource> sources,
                                          const std::string& path, bool keep_empty) {
  std::vector<std::unique_ptr<SpoolReader>> readers;
  for (const RejectSpool* spool : spools) {
    if (spool->bytes() == 0) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<SpoolReader> reader, SpoolReader::Open(files, *spool));
    ASSIGN_OR_RETURN(const bool more, reader->Next());
    if (more) readers.push_back(std::move(reader));
  }
  RejectWriter writer(files, sources, path);
  RETURN_IF_ERROR(writer.Start());
  while (!readers.empty()) {
    const auto first =
        std::min_element(readers.begin(), readers.end(), [](const auto& a, const auto& b) {
          return std::pair(a->file(), a->line()) < std::pair(b->file(), b->line());
        });
    if ((*first)->file() >= sources.size()) {
      return DataLoss(
          "{}: set-aside rows are damaged; delete the .part files beside it and import "
          "again",
          path);
    }
    RETURN_IF_ERROR(writer.Write(**first));
    ASSIGN_OR_RETURN(const bool more, (*first)->Next());
    if (!more) readers.erase(first);
  }
  RETURN_IF_ERROR(writer.Finish(keep_empty));
  return writer.commonest();
}

}  // namespace firstseen
