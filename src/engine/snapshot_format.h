// Snapshot files: sections with checksums between a header and a footer. Every byte is in
// docs/format.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/owners.h"
#include "exact/exact_set.h"
#include "firstseen/types.h"

namespace firstseen {

enum class SectionType : uint8_t {
  kSet = 1,
  kWindow = 2,
  kShard = 3,
  kOwners = 4,
  kImports = 5,
  kFooter = 255,
};

struct SnapshotHeader {
  uint64_t after = 0;      // holds every outcome up to this sequence number, and maybe later ones
  int64_t open_ms = 0;     // open time of the engine so far
  int64_t created_ms = 0;  // wall clock, milliseconds since 1970
};
struct SetSection {
  SetId set = 0;
  std::string name;
  SetOptions options;
};
struct WindowSection {
  SetId set = 0;
  WindowId window = 0;
  bool closed = false;
  uint64_t state_sequence = 0;
};
struct ShardSection {
  SetId set = 0;
  WindowId window = 0;
  ShardImage image;
};
struct OwnersSection {
  SetId set = 0;
  WindowId window = 0;
  std::vector<Ownership> owners;
};
struct ImportsSection {
  SetId set = 0;
  uint64_t sequence = 0;
  std::vector<std::pair<std::string, Engine::ImportProgress>> sources;
};
struct FooterSection {
  uint64_t sections = 0;  // before the footer
  uint64_t members = 0;
  uint64_t owners = 0;
  uint64_t durable = 0;  // the log held every record up to here when the snapshot was published
};

std::string EncodeSection(const SetSection& section);
std::string EncodeSection(const WindowSection& section);
std::string EncodeSection(const ShardSection& section, int bits);
std::string EncodeSection(const OwnersSection& section, int bits);
std::string EncodeSection(const ImportsSection& section);
std::string EncodeSection(const FooterSection& section);

// DataLoss when the payload is not one of these, to the last byte.
absl::StatusOr<SetSection> DecodeSetSection(std::string_view payload);
absl::StatusOr<WindowSection> DecodeWindowSection(std::string_view payload);
absl::StatusOr<ShardSection> DecodeShardSection(std::string_view payload, int bits);
absl::StatusOr<OwnersSection> DecodeOwnersSection(std::string_view payload, int bits);
absl::StatusOr<ImportsSection> DecodeImportsSection(std::string_view payload);
absl::StatusOr<FooterSection> DecodeFooterSection(std::string_view payload);

// The set and window of a shard or owners section, which decide how wide its fingerprints are.
struct SectionPlace {
  SetId set = 0;
  WindowId window = 0;
};
absl::StatusOr<SectionPlace> DecodePlace(std::string_view payload);

std::string SnapshotName(uint64_t after);
// nullopt when `name` is no snapshot's.
std::optional<uint64_t> ParseSnapshotName(std::string_view name);

class SnapshotWriter {
 public:
  // Starts DIRECTORY/snapshot-<after>.tmp.
  static absl::StatusOr<std::unique_ptr<SnapshotWriter>> Create(FileSystem* files,
                                                                const std::string& directory,
                                                                const SnapshotHeader& header);
  // Removes the temporary file unless published.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  absl::Status Write(SectionType type, std::string_view payload);
  uint64_t sections() const { return sections_; }
  uint64_t bytes() const { return written_ + buffer_.size(); }
  // Writes the footer, syncs, renames, syncs the directory.
  absl::Status Publish(const FooterSection& footer);

 private:
  SnapshotWriter(FileSystem* files, const std::string& directory, uint64_t after,
                 std::unique_ptr<File> file);
  absl::Status Flush();

  FileSystem* const files_;
  const std::string directory_;
  const std::string path_;  // when published
  const std::string temporary_;
  std::unique_ptr<File> file_;
  std::string buffer_;
  uint64_t written_ = 0;  // bytes in the file; buffer_ follows
  uint64_t seed_ = 0;     // checksum of the header, from which those of the sections start
  uint64_t sections_ = 0;
  bool published_ = false;
};

class SnapshotReader {
 public:
  // DataLoss when the header is damaged.
  static absl::StatusOr<std::unique_ptr<SnapshotReader>> Open(FileSystem* files,
                                                              const std::string& path);
  // For repair: a damaged header is no error (see header_good), its content then means nothing.
  static absl::StatusOr<std::unique_ptr<SnapshotReader>> OpenDamaged(FileSystem* files,
                                                                     const std::string& path);

  struct Section {
    SectionType type = SectionType::kFooter;
    uint64_t offset = 0;
    bool good = false;  // the checksum is right
    std::string payload;
  };
  const SnapshotHeader& header() const { return header_; }
  bool header_good() const { return header_good_; }
  uint64_t size() const { return size_; }
  uint64_t offset() const { return offset_; }  // of the section that Next reads
  // The next section, good or not; nullopt at the end of the file. DataLoss when the file ends
  // within a section.
  absl::StatusOr<std::optional<Section>> Next();

 private:
  explicit SnapshotReader(std::unique_ptr<File> file) : file_(std::move(file)) {}
  absl::Status ReadHeader();
  // Makes `size` bytes from offset_ on available in buffer_; DataLoss when the file is shorter.
  absl::StatusOr<std::string_view> Peek(uint64_t size);

  const std::unique_ptr<File> file_;
  SnapshotHeader header_;
  bool header_good_ = false;
  uint64_t size_ = 0;
  uint64_t offset_ = 0;  // of the next section
  std::string buffer_;
  uint64_t buffer_offset_ = 0;
  uint64_t seed_ = 0;
  uint64_t sections_ = 0;
};

}  // namespace firstseen
