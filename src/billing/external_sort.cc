#include "billing/external_sort.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr size_t kNoRun = ~size_t{0};
constexpr size_t kBufferBytesMin = 64 << 10;
constexpr size_t kBufferBytesMax = 4 << 20;

uint64_t PrefixOf(std::string_view record) {
  unsigned char bytes[8] = {};
  std::memcpy(bytes, record.data(), std::min<size_t>(record.size(), sizeof(bytes)));
  uint64_t prefix = 0;
  for (const unsigned char byte : bytes) prefix = prefix << 8 | byte;
  return prefix;
}

}  // namespace

// A run is a sequence of  size:u32 (the machine's order), bytes.
class ExternalSorter::RunWriter {
 public:
  explicit RunWriter(File* file) : file_(file) {}
  absl::Status Append(std::string_view record) {
    const auto size = static_cast<uint32_t>(record.size());
    buffer_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    buffer_ += record;
    return buffer_.size() < kBufferBytesMax ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    RETURN_IF_ERROR(file_->Write(offset_, buffer_));
    offset_ += buffer_.size();
    buffer_.clear();
    return absl::OkStatus();
  }

 private:
  File* file_;
  std::string buffer_;
  uint64_t offset_ = 0;
};

class ExternalSorter::RunReader {
 public:
  RunReader(std::unique_ptr<File> file, size_t buffer_bytes)
      : file_(std::move(file)), wanted_(buffer_bytes) {}

  absl::StatusOr<bool> Next(std::string_view* record) {
    uint32_t size = 0;
    ASSIGN_OR_RETURN(const bool more, Ensure(sizeof(size)));
    if (!more) return false;
    std::memcpy(&size, buffer_.data() + begin_, sizeof(size));
    begin_ += sizeof(size);
    ASSIGN_OR_RETURN(const bool whole, Ensure(size));
    if (!whole && size > 0) return DataLoss("a sort file is cut");
    *record = std::string_view(buffer_).substr(begin_, size);
    begin_ += size;
    return true;
  }

 private:
  // Brings `size` bytes into the buffer; false at the end of the file.
  absl::StatusOr<bool> Ensure(size_t size) {
    if (end_ - begin_ >= size) return size > 0;
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    buffer_.resize(std::max(wanted_, size));
    ASSIGN_OR_RETURN(const size_t got,
                     file_->Read(offset_, buffer_.data() + end_, buffer_.size() - end_));
    offset_ += got;
    end_ += got;
    if (end_ < size && end_ > 0) return DataLoss("a sort file is cut");
    return end_ >= size && size > 0;
  }

  std::unique_ptr<File> file_;
  size_t wanted_;
  std::string buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t offset_ = 0;
};

ExternalSorter::ExternalSorter(FileSystem* files, std::string directory, uint64_t memory_bytes,
                               bool drop_equal)
    : files_(files),
      directory_(std::move(directory)),
      memory_bytes_(memory_bytes),
      drop_equal_(drop_equal),
      run_in_hand_(kNoRun) {}

ExternalSorter::~ExternalSorter() = default;

absl::Status ExternalSorter::Add(std::string_view record) {
  const uint64_t used = buffer_.size() + references_.size() * sizeof(Reference);
  if (used + record.size() + sizeof(Reference) > memory_bytes_ && !references_.empty()) {
    RETURN_IF_ERROR(Spill());
  }
  references_.push_back({PrefixOf(record), buffer_.size(), static_cast<uint32_t>(record.size())});
  buffer_ += record;
  return absl::OkStatus();
}

void ExternalSorter::SortBuffer() {
  std::ranges::sort(references_, [this](const Reference& a, const Reference& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    return Record(a) < Record(b);
  });
  if (!drop_equal_) return;
  const auto equal = [this](const Reference& a, const Reference& b) {
    return a.prefix == b.prefix && Record(a) == Record(b);
  };
  references_.erase(std::unique(references_.begin(), references_.end(), equal), references_.end());
}

absl::StatusOr<std::unique_ptr<File>> ExternalSorter::NewRun() {
  const std::string path = fmt::format("{}/sort.{}.{:x}.{}", directory_, getpid(),
                                       reinterpret_cast<uintptr_t>(this), run_number_++);
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_->Open(path, OpenMode::kCreateNew));
  RETURN_IF_ERROR(files_->Remove(path));
  return file;
}

absl::Status ExternalSorter::Spill() {
  SortBuffer();
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, NewRun());
  RunWriter writer(file.get());
  for (const Reference& reference : references_) {
    RETURN_IF_ERROR(writer.Append(Record(reference)));
  }
  RETURN_IF_ERROR(writer.Flush());
  runs_.push_back(std::move(file));
  references_.clear();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status ExternalSorter::Sort() {
  if (runs_.empty()) {
    SortBuffer();
    return absl::OkStatus();
  }
  if (!references_.empty()) RETURN_IF_ERROR(Spill());
  references_ = {};
  buffer_ = {};
  while (runs_.size() > kFanIn) RETURN_IF_ERROR(MergeFirstRuns());
  return OpenRuns(runs_.size());
}

absl::Status ExternalSorter::OpenRuns(size_t count) {
  const size_t buffer_bytes =
      std::clamp<size_t>(memory_bytes_ / (count + 1), kBufferBytesMin, kBufferBytesMax);
  readers_.clear();
  heads_ = {};
  run_in_hand_ = kNoRun;
  has_previous_ = false;
  for (size_t i = 0; i < count; ++i) {
    readers_.push_back(std::make_unique<RunReader>(std::move(runs_[i]), buffer_bytes));
    std::string_view record;
    ASSIGN_OR_RETURN(const bool more, readers_[i]->Next(&record));
    if (more) heads_.push({record, i});
  }
  runs_.erase(runs_.begin(), runs_.begin() + static_cast<ptrdiff_t>(count));
  return absl::OkStatus();
}

absl::Status ExternalSorter::MergeFirstRuns() {
  RETURN_IF_ERROR(OpenRuns(kFanIn));
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, NewRun());
  RunWriter writer(file.get());
  std::string_view record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, Next(&record));
    if (!more) break;
    RETURN_IF_ERROR(writer.Append(record));
  }
  RETURN_IF_ERROR(writer.Flush());
  runs_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::StatusOr<bool> ExternalSorter::NextOfRuns(std::string_view* record) {
  if (run_in_hand_ != kNoRun) {
    const size_t run = std::exchange(run_in_hand_, kNoRun);
    std::string_view next;
    ASSIGN_OR_RETURN(const bool more, readers_[run]->Next(&next));
    if (more) heads_.push({next, run});
  }
  if (heads_.empty()) return false;
  *record = heads_.top().record;
  run_in_hand_ = heads_.top().run;
  heads_.pop();
  return true;
}

absl::StatusOr<bool> ExternalSorter::Next(std::string_view* record) {
  if (readers_.empty()) {
    if (next_reference_ == references_.size()) return false;
    *record = Record(references_[next_reference_++]);
    return true;
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextOfRuns(record));
    if (!more) return false;
    if (!drop_equal_) return true;
    if (has_previous_ && *record == previous_) continue;
    previous_ = *record;
    has_previous_ = true;
    return true;
  }
}

}  // namespace firstseen
