#include "engine/log_segment.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr uint64_t kMarkerBytes = kFrameHeaderBytes;
constexpr uint64_t kWipeBlockBytes = 1 << 20;

}  // namespace

SegmentWriter::SegmentWriter(FileSystem* files, std::string directory, uint64_t segment_bytes)
    : files_(files), directory_(std::move(directory)), segment_bytes_(segment_bytes) {}

std::string SegmentWriter::PreparedPath() const {
  return fmt::format("{}/{}", directory_, kNextSegmentName);
}

absl::Status SegmentWriter::Resume(const LogContents& contents) {
  const LogSegment& last = contents.segments.back();
  const std::string path = directory_ + "/" + SegmentName(last.first_sequence);
  ASSIGN_OR_RETURN(file_, files_->Open(path, OpenMode::kReadWrite));
  first_sequence_ = last.first_sequence;
  offset_ = last.used_bytes;
  file_bytes_ = last.file_bytes;
  has_records_ = contents.last_sequence >= first_sequence_;
  name_unsynced_ = true;
  if (contents.header_missing) {
    RETURN_IF_ERROR(file_->Write(0, EncodeSegmentHeader({.first_sequence = first_sequence_,
                                                         .previous_last = last.previous_last,
                                                         .durable = contents.known_durable,
                                                         .segment_bytes = file_bytes_})));
  }
  RETURN_IF_ERROR(file_->Write(contents.unproven_offset, contents.unproven));
  RETURN_IF_ERROR(WipeTail(contents));
  RETURN_IF_ERROR(Sync());
  return SyncName();
}

absl::Status SegmentWriter::WipeTail(const LogContents& contents) {
  if (contents.dirty_end == 0) return absl::OkStatus();
  const std::string zeros(std::min(contents.dirty_end - offset_, kWipeBlockBytes), '\0');
  for (uint64_t at = offset_; at < contents.dirty_end; at += zeros.size()) {
    const uint64_t bytes = std::min<uint64_t>(zeros.size(), contents.dirty_end - at);
    RETURN_IF_ERROR(file_->Write(at, std::string_view(zeros).substr(0, bytes)));
  }
  return absl::OkStatus();
}

uint64_t SegmentWriter::room() const {
  if (file_ == nullptr) return 0;
  const uint64_t end = file_bytes_ - kMarkerBytes;
  return offset_ < end ? end - offset_ : 0;
}

bool SegmentWriter::Fits(uint64_t frame_bytes) const { return frame_bytes <= room(); }

bool SegmentWriter::half_full() const { return offset_ > file_bytes_ / 2; }

bool SegmentWriter::prepared(uint64_t frame_bytes) const {
  return prepared_ != nullptr &&
         prepared_bytes_ >= kSegmentHeaderBytes + frame_bytes + kMarkerBytes;
}

absl::Status SegmentWriter::Prepare(uint64_t frame_bytes) {
  if (prepared(frame_bytes)) return absl::OkStatus();
  prepared_.reset();
  const uint64_t bytes = std::max(segment_bytes_, kSegmentHeaderBytes + frame_bytes + kMarkerBytes);
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_->Open(PreparedPath(), OpenMode::kCreate));
  absl::Status status = file->Allocate(bytes);
  if (status.ok()) status = file->Sync();
  if (!status.ok()) {
    file.reset();
    // Gives back what was reserved; the first error is the one to report.
    const absl::Status removed = files_->Remove(PreparedPath());
    if (!removed.ok()) return Annotate(status, Message(removed));
    return status;
  }
  prepared_ = std::move(file);
  prepared_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status SegmentWriter::Switch(const SegmentHeader& header) {
  FIRSTSEEN_CHECK(prepared_ != nullptr && !name_unsynced_);
  SegmentHeader complete = header;
  complete.segment_bytes = prepared_bytes_;
  RETURN_IF_ERROR(prepared_->Write(0, EncodeSegmentHeader(complete)));
  const std::string path = directory_ + "/" + SegmentName(header.first_sequence);
  if (const absl::Status renamed = files_->Rename(PreparedPath(), path); !renamed.ok()) {
    // Only if the name is certainly not there can the old segment be gone on with.
    ASSIGN_OR_RETURN(const bool exists, files_->Exists(path));
    return exists ? Unavailable("{} is in an unknown state: {}", path, Message(renamed)) : renamed;
  }
  if (has_records_ && offset_ + kMarkerBytes <= file_bytes_) {
    previous_ = std::move(file_);
    previous_first_ = first_sequence_;
    previous_offset_ = offset_;
  }
  file_ = std::move(prepared_);
  first_sequence_ = header.first_sequence;
  offset_ = kSegmentHeaderBytes;
  file_bytes_ = prepared_bytes_;
  has_records_ = false;
  name_unsynced_ = true;
  return absl::OkStatus();
}

absl::Status SegmentWriter::Write(const FrameHeader& header, std::string* frame) {
  FinishFrame(header, first_sequence_, offset_, frame);
  FIRSTSEEN_CHECK(offset_ + frame->size() <= file_bytes_);
  RETURN_IF_ERROR(file_->Write(offset_, *frame));
  offset_ += frame->size();
  if (header.kind == FrameKind::kRecords) has_records_ = true;
  return absl::OkStatus();
}

absl::Status SegmentWriter::Sync() {
  RETURN_IF_ERROR(file_->Sync());
  return absl::OkStatus();
}

absl::Status SegmentWriter::SyncName() {
  if (!name_unsynced_) return absl::OkStatus();
  RETURN_IF_ERROR(files_->SyncDirectory(directory_));
  name_unsynced_ = false;
  return SealPrevious();
}

absl::Status SegmentWriter::SealPrevious() {
  if (previous_ == nullptr) return absl::OkStatus();
  std::string seal(kFrameHeaderBytes, '\0');
  FinishFrame({.kind = FrameKind::kSealed,
               .first_sequence = first_sequence_,
               .durable = first_sequence_ - 1},
              previous_first_, previous_offset_, &seal);
  RETURN_IF_ERROR(previous_->Write(previous_offset_, seal));
  previous_.reset();
  return absl::OkStatus();
}

absl::Status SegmentWriter::DropPrepared() {
  if (prepared_ == nullptr) return absl::OkStatus();
  prepared_.reset();
  return files_->Remove(PreparedPath());
}

}  // namespace firstseen
