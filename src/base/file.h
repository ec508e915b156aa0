// All file input and output goes through here, so that tests can put a faulty disk below it.
//
// Errors: NotFound (no such file), AlreadyExists, ResourceExhausted (ENOSPC, EDQUOT),
// Unavailable (any other I/O error, with errno's text). Messages name the path and the operation.
// Thread safety: a File may be used from several threads at different offsets; a FileSystem from
// any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace firstseen {

class File {
 public:
  virtual ~File() = default;
  // Reads up to `size` bytes at `offset` into `out`; fewer only at the end of the file.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t size) const = 0;
  // Writes all of `bytes` at `offset`, or fails; a failed write may have written any part.
  virtual absl::Status Write(uint64_t offset, std::string_view bytes) = 0;
  // fdatasync. Once it has failed, what was written before is in an unknown state: never retry.
  virtual absl::Status Sync() = 0;
  // Reserves blocks so that later writes below `size` cannot run out of space (fallocate). The
  // file is then `size` bytes long, the new part zero.
  virtual absl::Status Allocate(uint64_t size) = 0;
  virtual absl::Status Truncate(uint64_t size) = 0;
  virtual absl::StatusOr<uint64_t> Size() const = 0;
};

// A held lock file; unlocked on destruction.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

enum class OpenMode {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // created or emptied, mode 0600
  kCreateNew,  // AlreadyExists when it is there, mode 0600
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  // Atomic within a directory; durable only after SyncDirectory.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Mode 0700; OK when it is there already.
  virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Names (not paths) in the directory, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // False for a directory, a pipe, a device, a link to nothing, and when there is no such file.
  virtual absl::StatusOr<bool> IsRegularFile(const std::string& path) {
    const absl::StatusOr<bool> exists = Exists(path);
    if (!exists.ok()) return exists.status();
    return *exists && !List(path).ok();
  }
  // Permission bits of `path`, following symbolic links. NotFound. A file system that keeps none
  // (one in memory) says 0600.
  virtual absl::StatusOr<uint32_t> Permissions(const std::string& path) {
    const absl::StatusOr<bool> exists = Exists(path);
    if (!exists.ok()) return exists.status();
    if (!*exists) return absl::NotFoundError(path + ": no such file");
    return 0600;
  }
  // Takes an advisory lock on `path` (created 0600) and writes "`holder`, pid N" into it.
  // FailedPrecondition when somebody has it (also this process); the message quotes that text.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                         std::string_view holder) = 0;

  // The machine's own. Never destroyed.
  static FileSystem* Posix();
};

// "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string ParentDirectory(const std::string& path);

// Whole-file helpers over any FileSystem. ReadFile is for files whose size is known when they are
// opened (not pipes).
absl::StatusOr<std::string> ReadFile(FileSystem* files, const std::string& path);
// Writes `path`.tmp, syncs it, renames it over `path` and syncs the directory: after a crash
// either the old or the new content is there, whole. After an error `path`.tmp may be left.
absl::Status WriteFileAtomically(FileSystem* files, const std::string& path,
                                 std::string_view content);

}  // namespace firstseen
