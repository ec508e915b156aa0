// How an import is cut up so that several threads can work on it and a later run can go on.
//
//   files 0..n-1 --> streams: file i belongs to stream i mod S
//   a stream     --> blocks, numbered 0, 1, 2, ... through all its files
//   a block      --> lanes: block b belongs to lane b mod L of its stream
//
// A lane is a source of the set (Store::Import): its blocks are applied in order, each with the
// position that is recorded with it. So any number of files needs S x L sources, and S and L do not
// depend on the number of threads. After a crash each lane says which of its blocks are in; the
// stream starts again behind the block of the lane that is furthest behind, and what other lanes
// have beyond it (at most L - 1 blocks) is read and passed over.
//
// With a token column S = L = 1: blocks are mapped by several threads and applied in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/mutex.h"
#include "ingest/row_reader.h"
#include "ingest/source.h"

namespace firstseen {

// What a lane records with each of its blocks.
struct ImportPosition {
  uint64_t block = 0;       // its number in the stream
  uint64_t file = 0;        // its file's index in the stream
  uint64_t end_offset = 0;  // where it ends: uncompressed bytes and line of its file
  uint64_t end_line = 0;
  uint64_t manifest = 0;  // checksum of the stream's files up to `file`: path, size, time
  uint64_t content = 0;   // checksum of the file up to here; pipes only, else 0
  // Sums over the lane's blocks so far.
  uint64_t rows = 0;
  uint64_t rejected = 0;
  uint64_t blank = 0;
  uint64_t rejects_bytes = 0;  // of the lane's spool

  friend bool operator==(const ImportPosition&, const ImportPosition&) = default;
};
std::string FormatPosition(const ImportPosition& position);
std::optional<ImportPosition> ParsePosition(std::string_view text);

// One block to be worked on, and its position (without the sums).
struct ImportWork {
  LineBlock block;
  size_t file = 0;  // index in the import's list of files
  ImportPosition position;
};

// Thread-safe, but for Resume, which comes before everything else.
class ImportStream {
 public:
  // `all` are the import's files; the stream takes number `index`, `index` + `step`, ...
  ImportStream(FileSystem* files, std::span<const InputFile> all, size_t index, size_t step,
               size_t lanes);

  // Whether `position` is one of `lane`'s, and the files up to its own are as they were.
  bool Matches(size_t lane, const ImportPosition& position) const;
  // Positions that match, one for each lane that has one.
  void Resume(std::span<const std::optional<ImportPosition>> positions);

  // The next block that is not in yet, read into `buffer` (kBlockBytes). False at the end.
  // Aborted: a pipe does not bring what it brought before, so nothing recorded is of use.
  // FailedPrecondition: a file has changed while it was read.
  absl::StatusOr<bool> Next(char* buffer, ImportWork* work);
  // Waits until all earlier blocks of this block's lane are done. False after Abort.
  bool WaitTurn(uint64_t block);
  void Done(uint64_t block);
  // Ends all waiting, now and later.
  void Abort();

  // Bytes on disk that are read, those passed over included. Any thread.
  uint64_t consumed_bytes() const { return consumed_.load(std::memory_order_relaxed); }
  // Of these, what Resume passed over.
  uint64_t resumed_bytes() const { return resumed_bytes_.load(std::memory_order_relaxed); }

 private:
  const InputFile& file(size_t index) const { return all_[first_ + index * step_]; }
  absl::Status OpenFile() REQUIRES(read_mutex_);
  absl::Status SkipPipe(char* buffer) REQUIRES(read_mutex_);
  absl::StatusOr<bool> ReadBlock(char* buffer, LineBlock* block) REQUIRES(read_mutex_);

  FileSystem* const files_;
  const std::span<const InputFile> all_;
  const size_t first_;
  const size_t step_;
  const size_t lanes_;
  std::vector<uint64_t> manifests_;  // of the files up to each

  std::atomic<uint64_t> consumed_ = 0;
  std::atomic<uint64_t> resumed_bytes_ = 0;

  Mutex read_mutex_;
  size_t file_ GUARDED_BY(read_mutex_) = 0;
  uint64_t block_ GUARDED_BY(read_mutex_) = 0;
  std::unique_ptr<BlockReader> reader_ GUARDED_BY(read_mutex_);  // of file_; null: not opened
  uint64_t content_ GUARDED_BY(read_mutex_) = 0;
  uint64_t finished_bytes_ GUARDED_BY(read_mutex_) = 0;  // of files before file_
  // Where the first file read goes on, if not at its beginning.
  std::optional<ImportPosition> start_ GUARDED_BY(read_mutex_);
  std::vector<int64_t> recorded_ GUARDED_BY(read_mutex_);  // last block of each lane that is in

  Mutex turn_mutex_;
  CondVar turn_;
  std::vector<int64_t> done_ GUARDED_BY(turn_mutex_);  // last block of each lane that is done
  bool aborted_ GUARDED_BY(turn_mutex_) = false;
};

}  // namespace firstseen
