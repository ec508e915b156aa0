#include "ingest/import_stream.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/checksum.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kPositionVersion = "1";

uint64_t ManifestOf(const InputFile& file, uint64_t before) {
  return Checksum(
      fmt::format("{}\n{}\n{}\n{}", file.path, file.stream, file.size_bytes, file.mtime_ns),
      before);
}

}  // namespace

std::string FormatPosition(const ImportPosition& p) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", kPositionVersion, p.block, p.file,
                     p.end_offset, p.end_line, p.manifest, p.content, p.rows, p.rejected, p.blank,
                     p.rejects_bytes);
}

std::optional<ImportPosition> ParsePosition(std::string_view text) {
  if (!text.starts_with(kPositionVersion)) return std::nullopt;
  text.remove_prefix(kPositionVersion.size());
  ImportPosition p;
  for (uint64_t* number : {&p.block, &p.file, &p.end_offset, &p.end_line, &p.manifest, &p.content,
                           &p.rows, &p.rejected, &p.blank, &p.rejects_bytes}) {
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  if (!text.empty()) return std::nullopt;
  return p;
}

ImportStream::ImportStream(FileSystem* files, std::span<const InputFile> all, size_t index,
                           size_t step, size_t lanes)
    : files_(files), all_(all), first_(index), step_(step), lanes_(lanes) {
  uint64_t manifest = 0;
  for (size_t i = index; i < all.size(); i += step) {
    manifest = ManifestOf(all[i], manifest);
    manifests_.push_back(manifest);
  }
  // As if the block before each lane's first were done.
  for (size_t lane = 0; lane < lanes; ++lane) {
    recorded_.push_back(static_cast<int64_t>(lane) - static_cast<int64_t>(lanes));
  }
  done_ = recorded_;
}

bool ImportStream::Matches(size_t lane, const ImportPosition& position) const {
  return position.block % lanes_ == lane && position.file < manifests_.size() &&
         manifests_[position.file] == position.manifest;
}

void ImportStream::Resume(std::span<const std::optional<ImportPosition>> positions) {
  MutexLock read_lock(read_mutex_);
  for (size_t lane = 0; lane < lanes_; ++lane) {
    if (positions[lane].has_value()) {
      recorded_[lane] = static_cast<int64_t>(positions[lane]->block);
    }
  }
  MutexLock turn_lock(turn_mutex_);
  done_ = recorded_;
  const auto behind = std::min_element(recorded_.begin(), recorded_.end());
  if (*behind < 0) return;
  start_ = positions[static_cast<size_t>(behind - recorded_.begin())];
  block_ = start_->block + 1;
  file_ = start_->file;
  for (size_t i = 0; i < file_; ++i) finished_bytes_ += file(i).size_bytes;
  consumed_ = finished_bytes_;
  resumed_bytes_ = finished_bytes_;
}

absl::Status ImportStream::OpenFile() {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, OpenByteStream(files_, file(file_)));
  reader_ = std::make_unique<BlockReader>(std::move(stream), file(file_).path);
  content_ = 0;
  return absl::OkStatus();
}

// Reads the part of a pipe that is in already, in the blocks in which it was read before.
absl::Status ImportStream::SkipPipe(char* buffer) {
  LineBlock block;
  while (block.end_offset < start_->end_offset) {
    ASSIGN_OR_RETURN(const bool more, reader_->Next(buffer, &block));
    if (!more) break;
    content_ = Checksum(block.bytes, content_);
  }
  if (block.end_offset == start_->end_offset && content_ == start_->content) {
    return absl::OkStatus();
  }
  return Error(
      absl::StatusCode::kAborted,
      "{}: does not bring what it brought to the interrupted import, which therefore cannot go "
      "on; run the command again to import from the beginning",
      reader_->name());
}

absl::StatusOr<bool> ImportStream::ReadBlock(char* buffer, LineBlock* block) {
  while (file_ < manifests_.size()) {
    if (reader_ == nullptr) {
      RETURN_IF_ERROR(OpenFile());
      if (start_.has_value()) {
        if (file(file_).stream) {
          RETURN_IF_ERROR(SkipPipe(buffer));
        } else {
          RETURN_IF_ERROR(reader_->SkipTo(start_->end_offset, start_->end_line));
        }
        start_.reset();
        resumed_bytes_ = finished_bytes_ + reader_->consumed_bytes();
      }
    }
    ASSIGN_OR_RETURN(const bool more, reader_->Next(buffer, block));
    consumed_ = finished_bytes_ + reader_->consumed_bytes();
    if (more) return true;
    if (!file(file_).stream && reader_->consumed_bytes() != file(file_).size_bytes) {
      return FailedPrecondition(
          "{}: has changed while it was read; run the command again when its export is complete",
          file(file_).path);
    }
    finished_bytes_ += file(file_).size_bytes;
    reader_.reset();
    ++file_;
  }
  return false;
}

absl::StatusOr<bool> ImportStream::Next(char* buffer, ImportWork* work) {
  MutexLock lock(read_mutex_);
  while (true) {
    LineBlock block;
    ASSIGN_OR_RETURN(const bool more, ReadBlock(buffer, &block));
    if (!more) return false;
    if (file(file_).stream) content_ = Checksum(block.bytes, content_);
    const uint64_t number = block_++;
    if (static_cast<int64_t>(number) <= recorded_[number % lanes_]) continue;
    work->block = block;
    work->file = first_ + file_ * step_;
    work->position = {.block = number,
                      .file = file_,
                      .end_offset = block.end_offset,
                      .end_line = block.end_line,
                      .manifest = manifests_[file_],
                      .content = file(file_).stream ? content_ : 0};
    return true;
  }
}

bool ImportStream::WaitTurn(uint64_t block) {
  const int64_t before = static_cast<int64_t>(block) - static_cast<int64_t>(lanes_);
  MutexLock lock(turn_mutex_);
  turn_.Wait(lock, [&] { return aborted_ || done_[block % lanes_] == before; });
  return !aborted_;
}

void ImportStream::Done(uint64_t block) {
  MutexLock lock(turn_mutex_);
  done_[block % lanes_] = static_cast<int64_t>(block);
  turn_.NotifyAll();
}

void ImportStream::Abort() {
  MutexLock lock(turn_mutex_);
  aborted_ = true;
  turn_.NotifyAll();
}

}  // namespace firstseen
