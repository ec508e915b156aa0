#include "engine/log_segment.h"

#include <algorithm>
#include <random>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr uint64_t kMarkerBytes = kFrameHeaderBytes;

}  // namespace

SegmentWriter::SegmentWriter(FileSystem* files, std::string directory, uint64_t segment_bytes)
    : files_(files),
      directory_(std::move(directory)),
      segment_bytes_(segment_bytes),
      nonce_(std::random_device()()) {}

std::string SegmentWriter::PreparedPath() const {
  return fmt::format("{}/{}", directory_, kNextSegmentName);
}

absl::Status SegmentWriter::Resume(const LogContents& contents) {
  const LogSegment& last = contents.segments.back();
  if (contents.header_missing) {
    // Nothing in it counts. It is replaced, not written to: a header is there whole or not at all.
    RETURN_IF_ERROR(Prepare(0));
    RETURN_IF_ERROR(Switch({.first_sequence = last.first_sequence,
                            .previous_last = last.previous_last,
                            .durable = last.previous_last}));
    return SyncName();
  }
  const std::string path = directory_ + "/" + SegmentName(last.first_sequence);
  ASSIGN_OR_RETURN(file_, files_->Open(path, OpenMode::kReadWrite));
  first_sequence_ = last.first_sequence;
  begun_ms_ = last.begun_ms;
  offset_ = last.used_bytes;
  file_bytes_ = last.file_bytes;
  last_checksum_ = contents.last_checksum;
  has_records_ = contents.last_sequence >= first_sequence_;
  name_unsynced_ = true;
  RETURN_IF_ERROR(file_->Write(contents.unproven_offset, contents.unproven));
  RETURN_IF_ERROR(Sync());
  return SyncName();
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
  complete.begun_ms = absl::ToUnixMillis(Clock::Real()->Now());
  // Gone unless all goes well: a second header over a first one that may have reached the disk in
  // part could come out as neither.
  std::unique_ptr<File> file = std::move(prepared_);
  RETURN_IF_ERROR(file->Write(0, EncodeSegmentHeader(complete)));
  const std::string path = directory_ + "/" + SegmentName(header.first_sequence);
  if (const absl::Status renamed = files_->Rename(PreparedPath(), path); !renamed.ok()) {
    // Only if the new name is certainly not there can the old segment be gone on with.
    ASSIGN_OR_RETURN(const bool still_prepared, files_->Exists(PreparedPath()));
    return still_prepared ? renamed
                          : Unavailable("{} is in an unknown state: {}", path, Message(renamed));
  }
  if (has_records_ && offset_ + kMarkerBytes <= file_bytes_) {
    previous_ = std::move(file_);
    previous_first_ = first_sequence_;
    previous_offset_ = offset_;
    previous_checksum_ = last_checksum_;
  }
  file_ = std::move(file);
  first_sequence_ = header.first_sequence;
  begun_ms_ = complete.begun_ms;
  offset_ = kSegmentHeaderBytes;
  last_checksum_ = 0;
  file_bytes_ = prepared_bytes_;
  has_records_ = false;
  name_unsynced_ = true;
  return absl::OkStatus();
}

absl::Status SegmentWriter::Write(const FrameHeader& header, std::string* frame) {
  FrameHeader complete = header;
  complete.nonce = nonce_;
  complete.previous = last_checksum_;
  const uint64_t checksum = FinishFrame(complete, first_sequence_, offset_, frame);
  FIRSTSEEN_CHECK(offset_ + frame->size() <= file_bytes_);
  RETURN_IF_ERROR(file_->Write(offset_, *frame));
  offset_ += frame->size();
  last_checksum_ = checksum;
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
               .durable = first_sequence_ - 1,
               .nonce = nonce_,
               .previous = previous_checksum_},
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
