#include "engine/log_reader.h"

#include <algorithm>
#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "engine/log_format.h"

namespace firstseen {
namespace {

// What one segment's bytes say.
struct SegmentScan {
  std::optional<SegmentHeader> header;
  uint64_t last_sequence = 0;     // of the chain of good frames
  uint64_t last_checksum = 0;     // of the last frame in it
  uint64_t used_bytes = 0;        // end of that chain
  uint64_t durable = 0;           // highest durable number in header and frames, wherever they lie
  uint64_t highest_sequence = 0;  // in any good frame, wherever it lies
  bool sealed = false;            // it has a successor
  uint64_t dirty_end = 0;         // end of the last byte that is not zero behind the chain, or 0
  std::vector<std::pair<uint64_t, uint64_t>> frames;  // offset and last sequence, chain only
};

uint64_t LastSequence(const FrameHeader& header) {
  return header.first_sequence + header.count - 1;
}

absl::Status ReplayFrame(const Frame& frame, uint64_t after, LogReplayFunction replay) {
  std::string_view payload = frame.payload;
  for (uint32_t i = 0; i < frame.header.count; ++i) {
    const uint32_t length = LoadLittle<uint32_t>(payload.data());
    const uint64_t sequence = frame.header.first_sequence + i;
    if (sequence > after) {
      RETURN_IF_ERROR(replay(sequence, payload.substr(kRecordHeaderBytes, length)));
    }
    payload.remove_prefix(kRecordHeaderBytes + length);
  }
  return absl::OkStatus();
}

// End of the last byte in `bytes` from `begin` on that is not zero; 0 when all are.
uint64_t DirtyEnd(std::string_view bytes, uint64_t begin) {
  const size_t last = bytes.find_last_not_of('\0');
  return last == std::string_view::npos || last < begin ? 0 : last + 1;
}

void See(const FrameHeader& header, SegmentScan* scan) {
  scan->durable = std::max(scan->durable, header.durable);
  scan->highest_sequence = std::max(scan->highest_sequence, LastSequence(header));
}

// Follows the chain of good frames, then looks at what lies behind it. O(bytes).
absl::StatusOr<SegmentScan> ScanSegment(std::string_view bytes, uint64_t first_sequence,
                                        uint64_t after, LogReplayFunction replay) {
  SegmentScan scan;
  scan.header = DecodeSegmentHeader(bytes, first_sequence);
  if (scan.header.has_value()) scan.durable = scan.header->durable;
  scan.last_sequence = first_sequence - 1;
  scan.highest_sequence = scan.last_sequence;
  scan.used_bytes = kSegmentHeaderBytes;
  while (const std::optional<Frame> frame = DecodeFrame(bytes, first_sequence, scan.used_bytes)) {
    if (frame->header.first_sequence != scan.last_sequence + 1 ||
        frame->header.previous != scan.last_checksum) {
      break;
    }
    See(frame->header, &scan);
    RETURN_IF_ERROR(ReplayFrame(*frame, after, replay));
    scan.sealed |= frame->header.kind == FrameKind::kSealed;
    scan.last_sequence = LastSequence(frame->header);
    scan.frames.emplace_back(scan.used_bytes, scan.last_sequence);
    scan.last_checksum = frame->checksum;
    scan.used_bytes = frame->end;
  }
  scan.dirty_end = DirtyEnd(bytes, scan.used_bytes);
  for (uint64_t offset = scan.used_bytes; offset < scan.dirty_end; offset += kLogAlignment) {
    const std::optional<Frame> frame = DecodeFrame(bytes, first_sequence, offset);
    if (frame.has_value()) See(frame->header, &scan);
  }
  return scan;
}

absl::StatusOr<std::vector<LogSegment>> ListSegments(FileSystem* files,
                                                     const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  std::vector<LogSegment> segments;
  for (const std::string& name : names) {
    const std::optional<uint64_t> first = ParseSegmentName(name);
    if (!first.has_value()) continue;
    ASSIGN_OR_RETURN(const auto file,
                     files->Open(fmt::format("{}/{}", directory, name), OpenMode::kRead));
    ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    char bytes[kSegmentHeaderBytes];
    ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes, sizeof(bytes)));
    const std::optional<SegmentHeader> header = DecodeSegmentHeader({bytes, read}, *first);
    segments.push_back({.first_sequence = *first,
                        .previous_last = header.has_value() ? header->previous_last : *first - 1,
                        .used_bytes = size,
                        .file_bytes = size,
                        .full_bytes = header.has_value() ? header->segment_bytes : size,
                        .begun_ms = header.has_value() ? header->begun_ms : 0});
  }
  return segments;
}

class Reader {
 public:
  Reader(FileSystem* files, const std::string& directory, uint64_t after, LogReplayFunction replay,
         uint64_t known_durable)
      : files_(files), directory_(directory), after_(after), replay_(replay) {
    contents_.last_sequence = after;
    contents_.known_durable = std::max(after, known_durable);
    contents_.highest_sequence = contents_.known_durable;
  }

  absl::StatusOr<LogContents> Read() {
    ASSIGN_OR_RETURN(contents_.segments, ListSegments(files_, directory_));
    const std::vector<LogSegment>& segments = contents_.segments;
    if (segments.empty()) {
      if (contents_.known_durable > 0) Lost(directory_, 0, after_ + 1, "it holds no log segment");
      return std::move(contents_);
    }
    // Segments in front of this one hold nothing above `after`: whatever a removal left of them
    // does not matter.
    size_t i = segments.size();
    while (i > 0 && segments[i - 1].previous_last > after_) --i;
    if (i == 0) {
      Lost(Path(0), 0, after_ + 1, "the segments before it are missing");
    } else {
      --i;
    }
    while (i < segments.size() && !lost_) RETURN_IF_ERROR(ReadSegment(i++));
    if (lost_) RETURN_IF_ERROR(LookBehindDamage());
    return std::move(contents_);
  }

 private:
  std::string Path(size_t i) const {
    return directory_ + "/" + SegmentName(contents_.segments[i].first_sequence);
  }

  void Lost(std::string file, uint64_t offset, uint64_t first_sequence, std::string what) {
    contents_.damages.push_back({.file = std::move(file),
                                 .offset = offset,
                                 .what = std::move(what),
                                 .loses_records = true,
                                 .first_sequence = first_sequence});
    lost_ = true;
  }

  void Mendable(size_t i, uint64_t offset, std::string what) {
    contents_.damages.push_back({.file = Path(i), .offset = offset, .what = std::move(what)});
  }

  // A segment that was cut short counts as if zeros had been cut off: repair puts them back.
  absl::StatusOr<std::string> Bytes(size_t i) const {
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(files_, Path(i)));
    bytes.resize(std::max<size_t>(bytes.size(), FullBytes(i)), '\0');
    return bytes;
  }

  uint64_t FullBytes(size_t i) const {
    return std::max(contents_.segments[i].full_bytes, kSegmentBytesMin);
  }

  absl::Status ReadSegment(size_t i) {
    LogSegment& segment = contents_.segments[i];
    ASSIGN_OR_RETURN(const std::string bytes, Bytes(i));
    ASSIGN_OR_RETURN(const SegmentScan scan,
                     ScanSegment(bytes, segment.first_sequence, after_, replay_));
    segment.used_bytes = scan.used_bytes;
    contents_.last_sequence = scan.last_sequence;
    contents_.known_durable = std::max(contents_.known_durable, scan.durable);
    contents_.highest_sequence = std::max(contents_.highest_sequence, scan.highest_sequence);
    Judge(i, scan, bytes);
    return absl::OkStatus();
  }

  // Whether nothing can have followed the chain of good frames in a file that was cut short: the
  // bytes where the next frame's magic would be are there, and zero.
  static bool EndsBeforeCut(const SegmentScan& scan, uint64_t file_bytes) {
    return scan.dirty_end == 0 && file_bytes >= scan.used_bytes + kFrameHeaderBytes;
  }

  // Decides whether what lies behind the chain of good frames is an unsynced tail or damage.
  void Judge(size_t i, const SegmentScan& scan, std::string_view bytes) {
    LogSegment& segment = contents_.segments[i];
    const bool is_last = i + 1 == contents_.segments.size();
    const uint64_t next = scan.last_sequence + 1;
    const bool empty = scan.frames.empty();
    // A segment has its full size on disk before it has its name, and keeps it.
    const bool cut_short = segment.file_bytes < FullBytes(i);
    // Headers are written whole, within one sector. Only that of the last segment may never have
    // got to the disk.
    const bool header_written = DirtyEnd(bytes.substr(0, kSegmentHeaderBytes), 0) != 0;
    const bool header_bad = !scan.header.has_value() && (header_written || !is_last || !empty ||
                                                         contents_.known_durable >= next);
    segment.mend = cut_short || header_bad;
    contents_.good_segments = header_bad && empty ? i : i + 1;

    if (is_last && cut_short && !EndsBeforeCut(scan, segment.file_bytes)) {
      Lost(Path(i), segment.file_bytes, next, "it was cut short");
    } else if (header_bad && empty) {
      Lost(Path(i), 0, next, "its header is damaged, and so is the first frame");
    } else if (cut_short) {
      Mendable(i, segment.file_bytes, "it was cut short");
    } else if (header_bad) {
      Mendable(i, 0, "its header is damaged");
    }
    if (lost_) return;
    if (!is_last) {
      JudgeLink(i, scan);
    } else if (contents_.known_durable >= next) {
      Lost(Path(i), scan.used_bytes, next, "a frame is damaged or missing");
    } else if (scan.sealed) {
      Lost(Path(i), scan.used_bytes, next, "the segment behind it is missing");
    } else {
      KeepTail(scan, bytes);
    }
  }

  // The next segment was named only after this one was on disk to its end.
  void JudgeLink(size_t i, const SegmentScan& scan) {
    const uint64_t expected_last = contents_.segments[i + 1].previous_last;
    if (scan.last_sequence < expected_last) {
      Lost(Path(i), scan.used_bytes, scan.last_sequence + 1, "a frame is damaged or missing");
    } else if (scan.last_sequence > expected_last) {
      Lost(Path(i + 1), 0, scan.last_sequence + 1, "it does not follow the segment before it");
    }
  }

  void KeepTail(const SegmentScan& scan, std::string_view bytes) {
    contents_.header_missing = !scan.header.has_value();
    contents_.last_checksum = scan.last_checksum;
    contents_.unproven_offset = scan.used_bytes;
    for (const auto& [offset, last] : scan.frames) {
      if (last > contents_.known_durable) {
        contents_.unproven_offset = offset;
        break;
      }
    }
    contents_.unproven =
        bytes.substr(contents_.unproven_offset, scan.used_bytes - contents_.unproven_offset);
  }

  // Finds how far the loss reaches: replay stops at a hole, so all that lies behind goes too.
  absl::Status LookBehindDamage() {
    const auto ignore = [](uint64_t, std::string_view) { return absl::OkStatus(); };
    for (size_t i = contents_.good_segments; i < contents_.segments.size(); ++i) {
      const uint64_t first = contents_.segments[i].first_sequence;
      ASSIGN_OR_RETURN(const std::string bytes, Bytes(i));
      ASSIGN_OR_RETURN(const SegmentScan scan, ScanSegment(bytes, first, ~uint64_t{0}, ignore));
      contents_.known_durable = std::max(contents_.known_durable, scan.durable);
      contents_.highest_sequence = std::max(contents_.highest_sequence, scan.highest_sequence);
    }
    contents_.highest_sequence = std::max(contents_.highest_sequence, contents_.known_durable);
    contents_.damages.back().last_sequence = contents_.highest_sequence;
    return absl::OkStatus();
  }

  FileSystem* const files_;
  const std::string& directory_;
  const uint64_t after_;
  const LogReplayFunction replay_;
  bool lost_ = false;
  LogContents contents_;
};

}  // namespace

absl::StatusOr<LogContents> ReadLog(FileSystem* files, const std::string& directory, uint64_t after,
                                    LogReplayFunction replay, uint64_t known_durable) {
  return Reader(files, directory, after, replay, known_durable).Read();
}

std::string DescribeDamage(const LogDamage& damage) {
  if (!damage.loses_records) {
    return fmt::format("{}, offset {}: {}; no record is lost by it", damage.file, damage.offset,
                       damage.what);
  }
  if (damage.last_sequence < damage.first_sequence) {
    return fmt::format("{}, offset {}: {}; records from {} on cannot be read", damage.file,
                       damage.offset, damage.what, damage.first_sequence);
  }
  return fmt::format("{}, offset {}: {}; records {} to {} cannot be read", damage.file,
                     damage.offset, damage.what, damage.first_sequence, damage.last_sequence);
}

absl::Status DamageStatus(const LogDamage& damage) {
  return DataLoss(
      "{}. `firstseen repair` lists what would be lost, and mends the "
      "log when told to; a backup may still have it",
      DescribeDamage(damage));
}

}  // namespace firstseen
