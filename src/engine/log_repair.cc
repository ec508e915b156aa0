#include "engine/log_repair.h"

#include <algorithm>
#include <memory>

#include "base/status.h"
#include "engine/log_format.h"
#include "engine/log_segment.h"

namespace firstseen {
namespace {

std::string SegmentPath(const std::string& directory, const LogSegment& segment) {
  return directory + "/" + SegmentName(segment.first_sequence);
}

// Gives a segment its size and header back.
absl::Status Mend(FileSystem* files, const std::string& path, const LogSegment& segment) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(path, OpenMode::kReadWrite));
  const uint64_t bytes = std::max(segment.full_bytes, kSegmentBytesMin);
  if (segment.file_bytes < bytes) RETURN_IF_ERROR(file->Allocate(bytes));
  RETURN_IF_ERROR(file->Write(0, EncodeSegmentHeader({.first_sequence = segment.first_sequence,
                                                      .previous_last = segment.previous_last,
                                                      .durable = segment.previous_last,
                                                      .segment_bytes = bytes,
                                                      .begun_ms = segment.begun_ms})));
  return file->Sync();
}

// A segment that follows record `last` and begins above `highest`, on disk with its name.
absl::Status BeginAbove(FileSystem* files, const std::string& directory, uint64_t last,
                        uint64_t highest) {
  SegmentWriter writer(files, directory, kSegmentBytesMin);
  RETURN_IF_ERROR(writer.Prepare(0));
  RETURN_IF_ERROR(
      writer.Switch({.first_sequence = highest + 1, .previous_last = last, .durable = last}));
  RETURN_IF_ERROR(writer.Sync());
  return writer.SyncName();
}

}  // namespace

absl::StatusOr<std::vector<LogDamage>> RepairLog(FileSystem* files, const std::string& directory,
                                                 uint64_t after, uint64_t highest, bool apply) {
  ASSIGN_OR_RETURN(LogContents contents,
                   ReadLog(
                       files, directory, after,
                       [](uint64_t, std::string_view) { return absl::OkStatus(); }, highest));
  if (contents.segments.empty() && contents.damages.empty()) {
    // Nothing says how far the log went, but a data directory is never without one.
    contents.damages.push_back({.file = directory,
                                .what = "it holds no log segment",
                                .loses_records = true,
                                .first_sequence = after + 1});
  }
  if (!apply || contents.damages.empty()) return contents.damages;
  for (size_t i = 0; i < contents.good_segments; ++i) {
    const LogSegment& segment = contents.segments[i];
    if (segment.mend) RETURN_IF_ERROR(Mend(files, SegmentPath(directory, segment), segment));
  }
  if (!contents.damages.back().loses_records) return contents.damages;
  // Until the last segment that is given up is gone, the log still counts as damaged, and a second
  // repair does the rest. Bad bytes behind the last good record of a segment that has a successor
  // are never looked at.
  const uint64_t begin = contents.highest_sequence;
  RETURN_IF_ERROR(BeginAbove(files, directory, contents.last_sequence, begin));
  for (size_t i = contents.segments.size(); i > contents.good_segments; --i) {
    const LogSegment& segment = contents.segments[i - 1];
    if (segment.first_sequence != begin + 1) {
      RETURN_IF_ERROR(files->Remove(SegmentPath(directory, segment)));
    }
  }
  RETURN_IF_ERROR(files->SyncDirectory(directory));
  return contents.damages;
}

}  // namespace firstseen
