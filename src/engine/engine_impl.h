// The engine behind engine.h: how its parts hang together.
//
// Order of locks: a set (SetWriter or SetReader) > shards of its windows, ascending by window and
// range > import positions > a stripe of owners > the log's queue. No lock is held while waiting
// for the disk.
//
// A claim: under the set's shared lock and its member's shard lock, look, add, append the outcome
// to the log, which numbers it, leave the number with the shard as its stamp. Then, with no lock,
// wait until the log is durable up to the highest stamp that any answer of the batch rests on.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/log.h"
#include "engine/snapshot_format.h"
#include "engine/state.h"

namespace firstseen {

// What a data directory holds besides the log's segments.
std::string LockPath(const std::string& directory);
std::string MetaPath(const std::string& directory);

// Reads DIRECTORY/meta and compares the key check value. NotFound: no data directory.
absl::Status CheckMeta(const EngineOptions& options);
Log::Options LogOptions(const EngineOptions& options);
// Numbers of the snapshots in the directory, ascending.
absl::StatusOr<std::vector<uint64_t>> ListSnapshots(FileSystem* files,
                                                    const std::string& directory);

class EngineImpl : public Engine {
 public:
  explicit EngineImpl(const EngineOptions& options);
  ~EngineImpl() override;

  absl::Status Recover();
  absl::Status Close() override;

  absl::StatusOr<SetId> CreateSet(std::string_view name, const SetOptions& options) override;
  absl::StatusOr<SetId> FindSet(std::string_view name) const override;
  absl::StatusOr<SetOptions> Options(SetId set) const override;
  std::vector<std::string> ListSets() const override;

  absl::Status Claim(SetId set, std::span<const ClaimRequest> requests,
                     std::span<ClaimResult> results) override {
    return RunBatch(Operation::kClaim, set, requests, results);
  }
  absl::Status Check(SetId set, std::span<const ClaimRequest> requests,
                     std::span<ClaimResult> results) override {
    return RunBatch(Operation::kCheck, set, requests, results);
  }
  absl::Status Remove(SetId set, std::span<const ClaimRequest> requests,
                      std::span<ClaimResult> results) override {
    return RunBatch(Operation::kRemove, set, requests, results);
  }
  absl::StatusOr<uint64_t> Settle(SetId set, std::span<const uint64_t> owners) override;

  absl::StatusOr<ImportResult> Import(SetId set, const ImportBatch& batch) override;
  absl::Status ImportSync() override;
  std::optional<ImportProgress> FindImport(SetId set, std::string_view source) const override;
  absl::Status ForgetImports(SetId set, std::string_view prefix) override;

  absl::Status Drop(SetId set, WindowId window) override;
  absl::Status Reopen(SetId set, WindowId window) override;

  absl::StatusOr<SetStats> Stats(SetId set) const override;
  EngineStats Stats() const override;
  absl::Status Snapshot() override;

 private:
  enum class Operation { kClaim, kCheck, kRemove };
  static constexpr size_t kBlock = 64;  // requests done under one hold of the set's lock
  // Of one block of a batch.
  struct Block {
    Operation operation;
    Set* set;
    std::span<const ClaimRequest> requests;
    std::span<ClaimResult> results;
    std::array<Window*, kBlock> windows;
    std::array<Fingerprint, kBlock> prints;  // cut to the set's width
    uint64_t rests_on = 0;                   // highest sequence number that an answer depends on
    bool recorded = false;                   // something was appended to the log
  };
  // Members and owners of a dropped window, until their memory is free.
  struct Trash {
    std::unique_ptr<ExactSet> members;
    std::unique_ptr<OwnerTable> owners;
  };

  // claims.cc
  absl::Status RunBatch(Operation operation, SetId set, std::span<const ClaimRequest> requests,
                        std::span<ClaimResult> results);
  void RunBlock(Block* block);
  bool FindWindows(Block* block);
  void MakeWindows(Block* block);
  void PrefetchBlock(const Block& block);
  void RunOne(Block* block, size_t index);
  void ClaimOne(Block* block, size_t index, ExactSet::LockedShard& shard);
  void RemoveOne(Block* block, size_t index, ExactSet::LockedShard& shard);
  // The member's owner as far as it still counts.
  std::optional<Ownership> LiveOwner(const Window& window, const Fingerprint& print) const;
  void SettleChunk(Set* set, WindowId window, std::span<const uint64_t> owners, uint64_t* settled,
                   uint64_t* rests_on);
  // Returns when an answer that rests on `sequence` may leave.
  absl::Status AwaitAnswer(const Set& set, uint64_t sequence, bool recorded);

  // engine.cc
  absl::StatusOr<Set*> GetSet(SetId set) const;
  absl::StatusOr<Set*> GetSetForWriting(SetId set) const;
  // Makes a window's table, and its owners if asked, unless they are there or it is closed.
  absl::Status MakeWindow(Set* set, WindowId window, bool with_owners);
  absl::Status LogFailure() const;

  // import.cc
  struct ImportRun;
  bool TryImport(ImportRun* run);
  void LockAndApply(ImportRun* run, size_t group);
  void ApplyImport(ImportRun* run);

  // snapshot.cc
  absl::Status WriteSnapshot(uint64_t after);
  absl::Status WriteSet(Set* set, SnapshotWriter* writer, FooterSection* totals);
  absl::Status WriteWindow(Set* set, const WindowSection& window, SnapshotWriter* writer,
                           FooterSection* totals);
  absl::Status WriteOwners(Set* set, const WindowSection& window, SnapshotWriter* writer,
                           FooterSection* totals);
  absl::Status WriteImports(SnapshotWriter* writer);
  absl::Status RemoveReplaced(uint64_t after);

  // background.cc
  void StartThreads();
  void StopThreads();
  void RunJanitor();
  void RunSnapshotter();
  void Discard(Trash trash);
  void ExpireOwners(int64_t open_ms);
  void RecordOpenTime(int64_t open_ms);
  int64_t OpenMs() const;

  const EngineOptions options_;
  std::unique_ptr<FileLock> lock_;
  State state_;
  std::unique_ptr<Log> log_;
  int64_t opened_nanos_ = 0;    // monotonic clock when this engine was opened
  int64_t open_ms_before_ = 0;  // open time of its predecessors on this directory
  std::atomic<int64_t> open_ms_recorded_ = 0;

  Mutex create_mutex_;    // one CreateSet at a time
  Mutex snapshot_mutex_;  // one snapshot at a time
  uint64_t snapshot_after_ GUARDED_BY(snapshot_mutex_) = 0;
  bool has_snapshot_ GUARDED_BY(snapshot_mutex_) = false;
  std::atomic<uint64_t> snapshot_bytes_ = 0;
  std::atomic<int64_t> snapshot_created_ms_ = 0;  // 0 = no snapshot
  std::atomic<uint64_t> log_bytes_base_ = 0;      // of the log after the last snapshot

  mutable Mutex background_mutex_;
  CondVar background_work_;
  bool stopping_ GUARDED_BY(background_mutex_) = false;
  std::vector<Trash> trash_ GUARDED_BY(background_mutex_);
  absl::Status snapshot_status_ GUARDED_BY(background_mutex_);  // of the last one
  std::thread janitor_;
  std::thread snapshotter_;
  bool closed_ = false;
};

}  // namespace firstseen
