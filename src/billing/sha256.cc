#include "billing/sha256.h"

#include <memory>

#include "base/status.h"

namespace firstseen {

absl::StatusOr<FileDigest> DigestFile(FileSystem* files, const std::string& path) {
  constexpr size_t kBufferBytes = 64 << 10;
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(path, OpenMode::kRead));
  const auto buffer = std::make_unique<char[]>(kBufferBytes);
  Sha256 sha256;
  FileDigest digest;
  while (true) {
    ASSIGN_OR_RETURN(const size_t size, file->Read(digest.bytes, buffer.get(), kBufferBytes));
    if (size == 0) break;
    sha256.Add({buffer.get(), size});
    digest.bytes += size;
  }
  digest.sha256 = sha256.Finish();
  return digest;
}

}  // namespace firstseen
