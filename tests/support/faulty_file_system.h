// A disk in memory that fails, tears, fills up and loses power: what tests put below the engine.
//
// The model. Writes go to a page cache; Sync moves a file's bytes and size to the disk, directory
// entries (create, rename, remove) move by SyncDirectory of the directory they are in, and by
// nothing else. Until then a power loss may keep or drop each changed 512-byte sector, each change
// of a file's size and each directory entry on its own, in any order. A sector is atomic. After a
// failed Sync the cache holds the new bytes but believes they are clean: they can be read, and no
// later Sync writes them (what Linux does). Only writing them again helps.
//
// How to use it:
//
//   FaultyFileSystem disk;                       // has "/" and "/data"
//   disk.FailAt({.at = i, .for_good = true});    // the i-th operation, and all after it
//   ... run the program on &disk until it stops ...
//   for (uint64_t seed = 0; seed < 8; ++seed) {
//     auto after = disk.AfterPowerLoss(seed);    // seed 0 loses, seed 1 keeps all that is unsynced
//     ... open the program on after.get(), check what it promised ...
//   }
//
// Or without running the program again for each i: set_after_operation takes a function that is
// called after each operation; it may call AfterPowerLoss then.
//
// Operations are those that change the disk, numbered from 1: see Operation. Reads, List, Exists
// and Lock are not counted and do not fail. Lock files are kept out of the directory.
// Everything is thread-safe. Open files keep the file system's state alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

class FaultyFileSystem : public FileSystem {
 public:
  enum class Operation {
    kCreate,  // Open with kCreate (an existing file is emptied) or kCreateNew
    kWrite,
    kSync,
    kAllocate,
    kTruncate,
    kRename,
    kRemove,
    kSyncDirectory,
    kCreateDirectory,
  };

  enum class Error {
    kIo,       // Unavailable, as EIO
    kNoSpace,  // ResourceExhausted, as ENOSPC
  };

  struct Fault {
    uint64_t at = 0;        // number of the operation that fails; 0 = none
    bool for_good = false;  // and all after it
    Error error = Error::kIo;
    // The failed operation is half done: a write or an allocation up to some byte (chosen by
    // `at`), a create, rename, remove or directory change wholly, but an error is returned.
    bool tear = false;
  };

  // A call of File::Sync or SyncDirectory.
  struct SyncCall {
    Operation operation = Operation::kSync;
    std::string path;            // as the file was opened, or the directory
    uint64_t number = 0;         // among all Sync and SyncDirectory calls, from 1
    const void* site = nullptr;  // return address: the same for the same place in the program
  };

  // `directories` exist and are on disk.
  explicit FaultyFileSystem(std::vector<std::string> directories = {"/data"});
  ~FaultyFileSystem() override;

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                 std::string_view holder) override;

  // ---- Faults.

  // Operations so far, failed ones included.
  uint64_t operations() const;
  // Replaces the fault before; FailAt({}) takes it away.
  void FailAt(Fault fault);
  // Bytes that all files may have together (by size, not by what is written); Allocate and Write
  // beyond it are ResourceExhausted. Without limit at first.
  void SetCapacity(uint64_t bytes);
  // Called after each operation with its number, on the thread that did it, without a lock held;
  // calls on several threads may overlap. When set_after_operation returns, the function before
  // runs no more, so it must not be called by that function.
  void set_after_operation(std::function<void(uint64_t number)> function);

  // ---- Removing fsyncs.

  // Sync calls for which it returns true do nothing and report success. An empty function: none.
  void IgnoreSyncs(std::function<bool(const SyncCall&)> ignore);
  std::vector<SyncCall> sync_calls() const;

  // ---- Ends of the program. Faults, limits and functions are not taken over; locks are free.

  // What is on the disk when the power goes now. Seed 0: everything unsynced is lost; seed 1:
  // nothing is; other seeds: any part of it.
  std::unique_ptr<FaultyFileSystem> AfterPowerLoss(uint64_t seed) const;
  // The program dies (kill -9), the machine goes on: everything is there, what was unsynced still
  // is.
  std::unique_ptr<FaultyFileSystem> AfterProcessCrash() const;

  // ---- Direct access, not counted. Paths must exist where content is read.

  std::string Content(const std::string& path) const;
  // Makes or replaces a file, at once on disk.
  void SetContent(const std::string& path, std::string_view content);

 private:
  struct State;
  class FaultyFile;
  class FaultyFileLock;
  explicit FaultyFileSystem(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace firstseen
