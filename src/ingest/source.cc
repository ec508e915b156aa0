#include "ingest/source.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kNullPartition = "__HIVE_DEFAULT_PARTITION__";
constexpr size_t kDepthMax = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<PartitionValue> PartitionOf(std::string_view name) {
  const size_t equals = name.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  PartitionValue value;
  value.column = UnescapePartition(name.substr(0, equals));
  value.value = UnescapePartition(name.substr(equals + 1));
  value.null = value.value == kNullPartition;
  value.folder = name;
  return value;
}

absl::Status Stat(const std::string& path, struct stat* out) {
  if (::stat(path.c_str(), out) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == ENOENT) {
    return NotFound("{}: no such file or directory (or a symbolic link that leads nowhere)", path);
  }
  return Unavailable("{}: cannot look at it: {}", path, std::strerror(error));
}

// The file system, not the Posix interface, lists the folders, so that tests can make it fail.
class Walker {
 public:
  Walker(FileSystem* files, InputListing* listing) : files_(files), listing_(listing) {}

  absl::Status Visit(const std::string& path, const std::vector<PartitionValue>& partition,
                     bool named) {
    struct stat info;
    RETURN_IF_ERROR(Stat(path, &info));
    if (S_ISDIR(info.st_mode)) return VisitDirectory(path, partition, info);
    InputFile file;
    file.path = path;
    file.partition = partition;
    if (S_ISREG(info.st_mode)) {
      file.size_bytes = static_cast<uint64_t>(info.st_size);
      file.mtime_ns = info.st_mtim.tv_sec * 1'000'000'000ll + info.st_mtim.tv_nsec;
    } else if (named && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
      file.stream = true;
    } else {
      return InvalidArgument("{}: neither a file nor a directory; move it out of the way", path);
    }
    listing_->files.push_back(std::move(file));
    return absl::OkStatus();
  }

 private:
  absl::Status VisitDirectory(const std::string& path, const std::vector<PartitionValue>& partition,
                              const struct stat& info) {
    const std::pair<dev_t, ino_t> id(info.st_dev, info.st_ino);
    for (const auto& ancestor : ancestors_) {
      if (ancestor == id) {
        return InvalidArgument("{}: a symbolic link leads back to a folder it lies in; remove it",
                               path);
      }
    }
    if (ancestors_.size() >= kDepthMax) {
      return InvalidArgument("{}: more than {} folders deep", path, kDepthMax);
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->List(path));
    ancestors_.push_back(id);
    for (const std::string& name : names) {
      if (name.starts_with('_') || name.starts_with('.')) {
        ++listing_->skipped_files;
        continue;
      }
      const std::string child = path.ends_with('/') ? path + name : path + "/" + name;
      std::vector<PartitionValue> inner = partition;
      if (std::optional<PartitionValue> value = PartitionOf(name)) {
        struct stat child_info;
        RETURN_IF_ERROR(Stat(child, &child_info));
        if (S_ISDIR(child_info.st_mode)) inner.push_back(*std::move(value));
      }
      RETURN_IF_ERROR(Visit(child, inner, /*named=*/false));
    }
    ancestors_.pop_back();
    return absl::OkStatus();
  }

  FileSystem* files_;
  InputListing* listing_;
  std::vector<std::pair<dev_t, ino_t>> ancestors_;
};

// The column=value folders in a path as written. The last part counts only if it is a folder.
absl::StatusOr<std::vector<PartitionValue>> PartitionsOfPath(std::string_view path) {
  std::vector<PartitionValue> result;
  size_t start = 0;
  while (start < path.size()) {
    size_t end = path.find('/', start);
    if (end == std::string_view::npos) end = path.size();
    std::optional<PartitionValue> value = PartitionOf(path.substr(start, end - start));
    if (value.has_value() && end == path.size()) {
      struct stat info;
      RETURN_IF_ERROR(Stat(std::string(path), &info));
      if (!S_ISDIR(info.st_mode)) value.reset();
    }
    if (value.has_value()) result.push_back(*std::move(value));
    start = end + 1;
  }
  return result;
}

}  // namespace

std::string UnescapePartition(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      result.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

absl::StatusOr<InputListing> ListInputs(FileSystem* files, std::span<const std::string> paths) {
  if (paths.empty()) return InvalidArgument("no input: name files, directories, or - for stdin");
  InputListing listing;
  bool stdin_seen = false;
  for (const std::string& path : paths) {
    if (path == kStandardInput) {
      if (std::exchange(stdin_seen, true)) {
        return InvalidArgument("- (standard input) was named twice; it can be read only once");
      }
      InputFile file;
      file.path = path;
      file.stream = true;
      listing.files.push_back(std::move(file));
      continue;
    }
    if (path.empty()) return InvalidArgument("an input path is empty");
    ASSIGN_OR_RETURN(const std::vector<PartitionValue> partition, PartitionsOfPath(path));
    RETURN_IF_ERROR(Walker(files, &listing).Visit(path, partition, /*named=*/true));
  }
  if (listing.files.empty()) {
    return NotFound("no data file in {} ({} names that begin with _ or . were skipped)",
                    paths.size() == 1 ? paths.front() : fmt::format("{} paths", paths.size()),
                    listing.skipped_files);
  }
  return listing;
}

}  // namespace firstseen
