// The segment files the log writes to: where a frame goes, when the next file is needed, and which
// fsync makes what durable. Knows nothing of queues and threads.
//
// Each fsync, and why it is there:
//   Prepare            the size of a segment is on disk before its name: a shorter one is damage
//   Sync (file)        the frames written since the last one
//   Sync (directory)   the name of the segment they are in, once for each segment
// Before a segment gets its name, the one before it has been synced to its end. Once the name is on
// disk, the one before it is sealed: its successor will be missed if it goes. That needs no fsync.
//
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "engine/log_format.h"
#include "engine/log_reader.h"

namespace firstseen {

class SegmentWriter {
 public:
  SegmentWriter(FileSystem* files, std::string directory, uint64_t segment_bytes);

  // Goes on in the last segment of an undamaged log. Writes again and syncs what nothing showed to
  // be durable: after a failed fsync in an earlier run it may be in memory only, although it could
  // be read.
  absl::Status Resume(const LogContents& contents);

  // Whether a frame of this size goes into the current segment.
  bool Fits(uint64_t frame_bytes) const;
  // Bytes for frames left in the current segment.
  uint64_t room() const;
  bool half_full() const;
  bool has_records() const { return has_records_; }
  bool prepared(uint64_t frame_bytes) const;

  // Makes the next segment ready, with room for at least one frame of `frame_bytes`. Loses nothing
  // when it fails; ResourceExhausted (disk full) may be tried again.
  absl::Status Prepare(uint64_t frame_bytes);
  // Gives the prepared segment its name and goes on in it. Everything written must have been
  // synced. After ResourceExhausted the old segment is gone on with; Prepare and try again.
  absl::Status Switch(const SegmentHeader& header);

  // `frame`: see FinishFrame. Fits(its size) must hold, except that there is always room for one
  // marker.
  absl::Status Write(const FrameHeader& header, std::string* frame);
  absl::Status Sync();
  absl::Status SyncName();
  // Removes a prepared segment that nobody needs.
  absl::Status DropPrepared();

  uint64_t first_sequence() const { return first_sequence_; }
  uint64_t used_bytes() const { return offset_; }
  int64_t begun_ms() const { return begun_ms_; }

 private:
  std::string PreparedPath() const;
  absl::Status SealPrevious();

  FileSystem* const files_;
  const std::string directory_;
  const uint64_t segment_bytes_;
  const uint32_t nonce_;

  std::unique_ptr<File> file_;
  uint64_t first_sequence_ = 0;
  int64_t begun_ms_ = 0;
  uint64_t offset_ = 0;         // where the next frame goes
  uint64_t last_checksum_ = 0;  // of the frame before that; 0 = none
  uint64_t file_bytes_ = 0;
  bool has_records_ = false;
  bool name_unsynced_ = false;

  // The segment before, until it is sealed.
  std::unique_ptr<File> previous_;
  uint64_t previous_first_ = 0;
  uint64_t previous_offset_ = 0;
  uint64_t previous_checksum_ = 0;

  std::unique_ptr<File> prepared_;
  uint64_t prepared_bytes_ = 0;
};

}  // namespace firstseen
