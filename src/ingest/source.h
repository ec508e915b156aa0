// Finds the files to read: plain paths, "-" (standard input), and directories as Hive, Spark and
// Hadoop write them.
//
// Rules for directories, which are walked recursively in name order:
//   - names that begin with '_' or '.' (_SUCCESS, .000000_0.crc, .hive-staging_*) are skipped,
//   files
//     and folders alike; each counts once in `skipped_files`, however much is in a folder;
//   - other folders (HIVE_UNION_SUBDIR_1, nested exports) hold data;
//   - a folder named column=value (ds=2023-01-01) gives that column's value to every row below it.
//     Hive's percent escapes are undone (dt=2023%3A01 is "2023:01"), and
//     __HIVE_DEFAULT_PARTITION__ is null;
//   - symbolic links are followed; one that leads nowhere, or back to a folder it lies in, is an
//     error, and so is anything that is neither a file nor a folder.
// A path that was named itself is read whatever its name, and folders named column=value in the
// path as it was written count as well, so that `export/ds=2023*` means the same as `export`.
//
// Nothing is ever left out silently: what cannot be read is an error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

inline constexpr std::string_view kStandardInput = "-";

struct PartitionValue {
  std::string column;
  std::string value;
  bool null = false;
  std::string folder = {};  // the folder's name as it is, escapes and all
};

struct InputFile {
  std::string path;
  bool stream = false;  // standard input, a pipe, a device: can be read only once, from the start
  uint64_t size_bytes = 0;                     // on disk; 0 for a stream
  int64_t mtime_ns = 0;                        // since 1970; 0 for a stream
  std::vector<PartitionValue> partition = {};  // outermost folder first
};

struct InputListing {
  std::vector<InputFile> files;
  uint64_t skipped_files = 0;
};

// In the order of `paths`, each directory in name order. NotFound: no such path, or no data file
// in all of them; InvalidArgument: not a file, a loop of links. O(files), no file is opened.
absl::StatusOr<InputListing> ListInputs(FileSystem* files, std::span<const std::string> paths);

// Undoes Hive's percent escapes; "%" without two hex digits stays as it is.
std::string UnescapePartition(std::string_view text);

}  // namespace firstseen
