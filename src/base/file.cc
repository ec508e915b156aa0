#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr size_t kZeroBlockBytes = 1 << 16;

std::string_view Remedy(int error) {
  switch (error) {
    case ENOSPC:
      return "; free space on that disk";
    case EDQUOT:
      return "; raise the quota or free space";
    case EACCES:
    case EPERM:
      return "; give this user access to it";
    case EROFS:
      return "; the file system is mounted read-only";
    case EMFILE:
    case ENFILE:
      return "; raise the limit on open files (ulimit -n)";
    case ENOTDIR:
    case EISDIR:
      return "; check the path";
    case EIO:
      return "; the device reports a fault, look at the kernel log";
    default:
      return "";
  }
}

absl::Status ErrnoStatus(std::string_view operation, const std::string& path, int error) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  if (error == ENOENT) code = absl::StatusCode::kNotFound;
  if (error == EEXIST) code = absl::StatusCode::kAlreadyExists;
  if (error == ENOSPC || error == EDQUOT) code = absl::StatusCode::kResourceExhausted;
  return Error(code, "cannot {} {}: {}{}", operation, path, std::generic_category().message(error),
               Remedy(error));
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

class PosixFile : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override { close(fd_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t size) const override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = Retry(
          [&] { return pread(fd_, out + done, size - done, static_cast<off_t>(offset + done)); });
      if (n < 0) return ErrnoStatus("read", path_, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = Retry([&] {
        return pwrite(fd_, bytes.data() + done, bytes.size() - done,
                      static_cast<off_t>(offset + done));
      });
      if (n < 0) return ErrnoStatus("write", path_, errno);
      if (n == 0) return ErrnoStatus("write", path_, EIO);
      done += static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // Not repeated after EINTR either: whether the pages are still dirty is then unknown.
    if (fdatasync(fd_) != 0) return ErrnoStatus("sync", path_, errno);
    return absl::OkStatus();
  }

  absl::Status Allocate(uint64_t size) override {
    ASSIGN_OR_RETURN(const uint64_t old_size, Size());
    if (Retry([&] { return fallocate(fd_, 0, 0, static_cast<off_t>(size)); }) == 0) {
      return absl::OkStatus();
    }
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) {
      return ErrnoStatus("reserve space for", path_, errno);
    }
    // File systems without fallocate: written blocks are reserved blocks.
    static constexpr char kZeros[kZeroBlockBytes] = {};
    for (uint64_t offset = old_size; offset < size; offset += kZeroBlockBytes) {
      const size_t block = std::min<uint64_t>(kZeroBlockBytes, size - offset);
      RETURN_IF_ERROR(Write(offset, {kZeros, block}));
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t size) override {
    if (Retry([&] { return ftruncate(fd_, static_cast<off_t>(size)); }) != 0) {
      return ErrnoStatus("truncate", path_, errno);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat info;
    if (fstat(fd_, &info) != 0) return ErrnoStatus("look at", path_, errno);
    return static_cast<uint64_t>(info.st_size);
  }

 private:
  const int fd_;
  const std::string path_;
};

// Holds an flock: it goes with the open file, so also with the process, however that ends.
class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}
  ~PosixFileLock() override { close(fd_); }
  PosixFileLock(const PosixFileLock&) = delete;
  PosixFileLock& operator=(const PosixFileLock&) = delete;

 private:
  const int fd_;
};

int OpenFlags(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kReadWrite:
      return O_RDWR;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT | O_TRUNC;
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

absl::StatusOr<std::unique_ptr<PosixFile>> OpenPosix(const std::string& path, int flags,
                                                     std::string_view operation) {
  const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, 0600); });
  if (fd < 0) return ErrnoStatus(operation, path, errno);
  return std::make_unique<PosixFile>(fd, path);
}

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    const bool creates = mode == OpenMode::kCreate || mode == OpenMode::kCreateNew;
    return OpenPosix(path, OpenFlags(mode), creates ? "create" : "open");
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus("rename", from + " to " + to, errno);
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus("remove", path, errno);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return ErrnoStatus("open directory", path, errno);
    const int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error != 0) return ErrnoStatus("sync directory", path, error);
    return absl::OkStatus();
  }

  absl::Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
    const int error = errno;
    struct stat info;
    if (error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return absl::OkStatus();
    }
    return ErrnoStatus("create directory", path, error);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    DIR* directory = opendir(path.c_str());
    if (directory == nullptr) return ErrnoStatus("list directory", path, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(directory);
    if (error != 0) return ErrnoStatus("list directory", path, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoStatus("look at", path, errno);
  }

  absl::StatusOr<bool> IsRegularFile(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) == 0) return S_ISREG(info.st_mode);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return false;
    return ErrnoStatus("look at", path, errno);
  }

  absl::StatusOr<uint32_t> Permissions(const std::string& path) override {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return ErrnoStatus("look at", path, errno);
    return static_cast<uint32_t>(info.st_mode & 07777);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                 std::string_view holder) override {
    const int fd = Retry([&] { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); });
    if (fd < 0) return ErrnoStatus("create", path, errno);
    auto lock = std::make_unique<PosixFileLock>(fd);
    if (Retry([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoStatus("lock", path, errno);
      char text[256];
      const ssize_t n = Retry([&] { return pread(fd, text, sizeof(text), 0); });
      std::string_view other(text, n > 0 ? static_cast<size_t>(n) : 0);
      while (!other.empty() && other.back() == '\n') other.remove_suffix(1);
      if (other.empty()) other = "a process that has not written its name yet";
      return FailedPrecondition("{} is locked by: {}; stop that process first", path, other);
    }
    const std::string text = fmt::format("{}, pid {}\n", holder, getpid());
    if (ftruncate(fd, 0) != 0 || Retry([&] { return pwrite(fd, text.data(), text.size(), 0); }) !=
                                     static_cast<ssize_t>(text.size())) {
      return ErrnoStatus("write", path, errno);
    }
    return lock;
  }
};

}  // namespace

FileSystem* FileSystem::Posix() {
  static PosixFileSystem* const files = new PosixFileSystem;
  return files;
}

std::string ParentDirectory(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::string> ReadFile(FileSystem* files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string content(size, '\0');
  ASSIGN_OR_RETURN(const size_t read, file->Read(0, content.data(), content.size()));
  content.resize(read);
  return content;
}

absl::Status WriteFileAtomically(FileSystem* files, const std::string& path,
                                 std::string_view content) {
  const std::string temporary = path + ".tmp";
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(temporary, OpenMode::kCreate));
    RETURN_IF_ERROR(file->Write(0, content));
    RETURN_IF_ERROR(file->Sync());
  }
  RETURN_IF_ERROR(files->Rename(temporary, path));
  return files->SyncDirectory(ParentDirectory(path));
}

}  // namespace firstseen
