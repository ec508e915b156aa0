// Sorts more records than fit into memory.
//
//   Add ... Add  --> sorted runs on disk --> merged, at most kFanIn at a time --> Next ... Next
//
// Records are byte strings, ordered byte by byte. Run files are mode 0600 and are unlinked as soon
// as they are open, so that nothing is left behind, whatever happens. Memory: `memory_bytes`, and
// the largest record. O(n log n). Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

class ExternalSorter {
 public:
  // The directory must exist. `drop_equal`: of equal records only one comes out.
  ExternalSorter(FileSystem* files, std::string directory, uint64_t memory_bytes, bool drop_equal);
  ~ExternalSorter();

  absl::Status Add(std::string_view record);
  // After the last Add, before the first Next.
  absl::Status Sort();
  // False at the end. *record is valid until the next call.
  absl::StatusOr<bool> Next(std::string_view* record);

 private:
  static constexpr size_t kFanIn = 128;

  struct Reference {
    uint64_t prefix;  // the first 8 bytes, big-endian: decides most comparisons
    uint64_t offset;
    uint32_t size;
  };
  class RunWriter;
  class RunReader;
  // A run and its next record.
  struct Head {
    std::string_view record;
    size_t run;
  };
  struct After {
    bool operator()(const Head& a, const Head& b) const { return a.record > b.record; }
  };

  std::string_view Record(const Reference& reference) const {
    return std::string_view(buffer_).substr(reference.offset, reference.size);
  }
  void SortBuffer();
  absl::Status Spill();
  absl::StatusOr<std::unique_ptr<File>> NewRun();
  absl::Status MergeFirstRuns();
  absl::Status OpenRuns(size_t count);
  absl::StatusOr<bool> NextOfRuns(std::string_view* record);

  FileSystem* files_;
  const std::string directory_;
  const uint64_t memory_bytes_;
  const bool drop_equal_;
  std::string buffer_;
  std::vector<Reference> references_;
  size_t next_reference_ = 0;
  std::vector<std::unique_ptr<File>> runs_;
  std::vector<std::unique_ptr<RunReader>> readers_;
  std::priority_queue<Head, std::vector<Head>, After> heads_;
  size_t run_in_hand_;  // whose record was given out last
  std::string previous_;
  bool has_previous_ = false;
  uint64_t run_number_ = 0;
};

}  // namespace firstseen
