// A directory of input files, and the compressors that make them.
#pragma once

#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gtest/gtest.h"

namespace firstseen {

// A unique directory, removed at the end.
class InputDirectory {
 public:
  InputDirectory() {
    std::string pattern = std::filesystem::path(testing::TempDir()) / "firstseen_ingest_XXXXXX";
    FIRSTSEEN_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~InputDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputDirectory(const InputDirectory&) = delete;
  InputDirectory& operator=(const InputDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Makes the folders on the way; returns the file's path.
  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    FIRSTSEEN_CHECK(out.good());
    return path;
  }

 private:
  std::string path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  FIRSTSEEN_CHECK(in.good());
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// window_bits: 15 + 16 gzip, 15 zlib.
inline std::string Deflate(std::string_view bytes, int window_bits) {
  z_stream stream = {};
  FIRSTSEEN_CHECK(deflateInit2(&stream, 1, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  FIRSTSEEN_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string Gzip(std::string_view bytes) { return Deflate(bytes, 15 + 16); }
inline std::string Zlib(std::string_view bytes) { return Deflate(bytes, 15); }

// With a checksum, as the zstd program writes.
inline std::string Zstd(std::string_view bytes) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(bytes.size()) + 16, '\0');
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  FIRSTSEEN_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

inline std::string Bzip2(std::string_view bytes) {
  std::string out(bytes.size() + bytes.size() / 100 + 700, '\0');
  auto size = static_cast<unsigned>(out.size());
  FIRSTSEEN_CHECK(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()),
                                           static_cast<unsigned>(bytes.size()), 1, 0, 0) == BZ_OK);
  out.resize(size);
  return out;
}

}  // namespace firstseen
