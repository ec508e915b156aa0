// Text encodings of input: UTF-8 and GB18030 (which reads GBK and GB2312 too).
//
// GB18030 is turned into UTF-8 line by line *before* the line is split, because its trail bytes
// include '|' and '\'. ('\n' is never a trail byte, so lines can be found first.) The bytes A1 A4
// become U+00B7, the standard name separator, as in GB18030, not U+30FB as in GB 2312.
//
// The work is done by glibc's iconv, which every Debian system has.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace firstseen {

enum class TextEncoding { kUtf8, kGb18030 };

// "utf-8", "utf8", "gb18030", "gbk", "gb2312", in any case.
absl::StatusOr<TextEncoding> ParseTextEncoding(std::string_view text);

// 8 or more bytes a step.
bool IsAscii(std::string_view text);

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. Fast for ASCII.
bool IsValidUtf8(std::string_view text);

// Not thread-safe; one for each thread.
class Gb18030Decoder {
 public:
  // Unavailable when this system's C library lacks the converter.
  static absl::StatusOr<std::unique_ptr<Gb18030Decoder>> Create();
  ~Gb18030Decoder();
  Gb18030Decoder(const Gb18030Decoder&) = delete;
  Gb18030Decoder& operator=(const Gb18030Decoder&) = delete;

  // Upper bound of what Decode writes for `size` bytes.
  static size_t DecodedBytesMax(size_t size) { return size * 3 / 2 + 4; }
  // Writes UTF-8 to `out`, which has DecodedBytesMax(text.size()) bytes, and returns how many; or
  // SIZE_MAX when `text` is not valid GB18030.
  size_t Decode(std::string_view text, char* out);

 private:
  explicit Gb18030Decoder(void* converter) : converter_(converter) {}
  void* converter_;  // iconv_t
};

}  // namespace firstseen
