// Compressed files of any content end, and either are read or give an error. The first byte chooses
// the format.
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "ingest/decompress.h"

namespace {

std::string MakeDirectory() {
  std::string pattern = "/tmp/firstseen_fuzz_XXXXXX";
  FIRSTSEEN_CHECK(mkdtemp(pattern.data()) != nullptr);
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string directory = MakeDirectory();
  static const char* const kExtensions[] = {".gz", ".zst", ".bz2", ".deflate"};
  constexpr uint64_t kBytesMax = 64 << 20;  // small inputs may become very long
  if (size == 0) return 0;
  const firstseen::InputFile file = {.path = directory + "/f" + kExtensions[data[0] % 4]};
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size) - 1);
  const auto stream = firstseen::OpenByteStream(firstseen::FileSystem::Posix(), file);
  if (stream.ok()) {
    std::vector<char> buffer(100'003);
    uint64_t bytes = 0;
    while (bytes < kBytesMax) {
      const auto n = (*stream)->Read(buffer.data(), buffer.size());
      if (!n.ok()) break;
      bytes += *n;
      if (*n < buffer.size()) {
        FIRSTSEEN_CHECK((*stream)->consumed_bytes() == size - 1);
        break;
      }
    }
  }
  unlink(file.path.c_str());
  return 0;
}
