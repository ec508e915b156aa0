#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "base/status.h"
#include "engine/coding.h"
#include "engine/snapshot_format.h"

namespace firstseen {
namespace {

constexpr std::string_view kMagic = "fsnsnap1";
constexpr size_t kHeaderBytes = 8 + 8 + 8 + 8 + 8;
constexpr size_t kSectionHeaderBytes = 1 + 4;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kBufferBytes = 4 << 20;

std::string EncodeHeader(const SnapshotHeader& header, uint64_t* checksum) {
  std::string bytes(kMagic);
  ByteWriter out(&bytes);
  out.Put(header.after);
  out.Put(header.open_ms);
  out.Put(header.created_ms);
  *checksum = Checksum(bytes);
  out.Put(*checksum);
  return bytes;
}

}  // namespace

SnapshotWriter::SnapshotWriter(FileSystem* files, const std::string& directory, uint64_t after,
                               std::unique_ptr<File> file)
    : files_(files),
      directory_(directory),
      path_(directory + "/" + SnapshotName(after)),
      temporary_(path_ + ".tmp"),
      file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Create(
    FileSystem* files, const std::string& directory, const SnapshotHeader& header) {
  const std::string temporary = directory + "/" + SnapshotName(header.after) + ".tmp";
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(temporary, OpenMode::kCreate));
  auto writer = std::unique_ptr<SnapshotWriter>(
      new SnapshotWriter(files, directory, header.after, std::move(file)));
  writer->buffer_ = EncodeHeader(header, &writer->seed_);
  return writer;
}

SnapshotWriter::~SnapshotWriter() {
  if (published_) return;
  file_.reset();
  // What cannot be removed now is removed when the directory is opened again.
  files_->Remove(temporary_).IgnoreError();
}

absl::Status SnapshotWriter::Write(SectionType type, std::string_view payload) {
  const size_t start = buffer_.size();
  ByteWriter out(&buffer_);
  out.Put(static_cast<uint8_t>(type));
  out.String(payload);
  out.Put(Checksum(std::string_view{buffer_}.substr(start), seed_ + sections_));
  ++sections_;
  if (buffer_.size() < kBufferBytes) return absl::OkStatus();
  return Flush();
}

absl::Status SnapshotWriter::Flush() {
  RETURN_IF_ERROR(file_->Write(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status SnapshotWriter::Publish(const FooterSection& footer) {
  RETURN_IF_ERROR(Write(SectionType::kFooter, EncodeSection(footer)));
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(files_->Rename(temporary_, path_));
  published_ = true;
  return files_->SyncDirectory(directory_);
}

absl::StatusOr<std::unique_ptr<SnapshotReader>> SnapshotReader::OpenDamaged(
    FileSystem* files, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Open(path, OpenMode::kRead));
  auto reader = std::unique_ptr<SnapshotReader>(new SnapshotReader(std::move(file)));
  ASSIGN_OR_RETURN(reader->size_, reader->file_->Size());
  RETURN_IF_ERROR(Annotate(reader->ReadHeader(), path));
  return reader;
}

absl::StatusOr<std::unique_ptr<SnapshotReader>> SnapshotReader::Open(FileSystem* files,
                                                                     const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<SnapshotReader> reader, OpenDamaged(files, path));
  if (!reader->header_good_) return DataLoss("{}: the header is damaged", path);
  return reader;
}

// Which of the two checksums is right when they differ, that in the file or that of the file's
// bytes, only the sections can tell: they are seeded with it.
absl::Status SnapshotReader::ReadHeader() {
  if (size_ < kHeaderBytes) {
    offset_ = size_;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string_view bytes, Peek(kHeaderBytes));
  ByteReader in(bytes);
  const std::string_view magic = in.Bytes(kMagic.size());
  header_.after = in.Get<uint64_t>();
  header_.open_ms = in.Get<int64_t>();
  header_.created_ms = in.Get<int64_t>();
  const uint64_t stored = in.Get<uint64_t>();
  const uint64_t computed = Checksum(bytes.substr(0, kHeaderBytes - kChecksumBytes));
  header_good_ = magic == kMagic && stored == computed;
  seed_ = stored;
  offset_ = kHeaderBytes;
  if (header_good_) return absl::OkStatus();
  const absl::StatusOr<std::optional<Section>> first = Next();
  if (!first.ok() || !first->has_value() || !(*first)->good) seed_ = computed;
  offset_ = kHeaderBytes;
  sections_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::string_view> SnapshotReader::Peek(uint64_t size) {
  if (size > size_ - offset_) return DataLoss("ends within a section");
  const uint64_t skip = offset_ - buffer_offset_;  // wraps when the buffer is further on
  if (offset_ < buffer_offset_ || skip + size > buffer_.size()) {
    buffer_.resize(std::min(std::max<uint64_t>(size, kBufferBytes), size_ - offset_));
    ASSIGN_OR_RETURN(const size_t got, file_->Read(offset_, buffer_.data(), buffer_.size()));
    if (got < buffer_.size()) return DataLoss("is shorter than its size");
    buffer_offset_ = offset_;
    return std::string_view{buffer_}.substr(0, size);
  }
  return std::string_view{buffer_}.substr(skip, size);
}

absl::StatusOr<std::optional<SnapshotReader::Section>> SnapshotReader::Next() {
  if (offset_ == size_) return std::nullopt;
  ASSIGN_OR_RETURN(std::string_view bytes, Peek(kSectionHeaderBytes));
  ByteReader header(bytes);
  Section section;
  section.offset = offset_;
  section.type = static_cast<SectionType>(header.Get<uint8_t>());
  const uint64_t checked_bytes = kSectionHeaderBytes + uint64_t{header.Get<uint32_t>()};
  ASSIGN_OR_RETURN(bytes, Peek(checked_bytes + kChecksumBytes));
  ByteReader checksum(bytes.substr(checked_bytes));
  section.good =
      checksum.Get<uint64_t>() == Checksum(bytes.substr(0, checked_bytes), seed_ + sections_);
  section.payload = bytes.substr(kSectionHeaderBytes, checked_bytes - kSectionHeaderBytes);
  offset_ += bytes.size();
  ++sections_;
  return section;
}

}  // namespace firstseen
