#include "ingest/decode.h"

#include <iconv.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>

#include "base/status.h"
#include "keys/utf8.h"

namespace firstseen {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080u;

uint64_t Load64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

}  // namespace

absl::StatusOr<TextEncoding> ParseTextEncoding(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "utf-8" || lower == "utf8") return TextEncoding::kUtf8;
  if (lower == "gb18030" || lower == "gbk" || lower == "gb2312") return TextEncoding::kGb18030;
  return InvalidArgument("unknown encoding {}: use utf-8 or gb18030 (which reads GBK too)", text);
}

bool IsAscii(std::string_view text) {
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 32; p += 32, left -= 32) {
    if (((Load64(p) | Load64(p + 8) | Load64(p + 16) | Load64(p + 24)) & kHighBits) != 0) {
      return false;
    }
  }
  for (; left >= 8; p += 8, left -= 8) {
    if ((Load64(p) & kHighBits) != 0) return false;
  }
  for (; left > 0; ++p, --left) {
    if ((static_cast<unsigned char>(*p) & 0x80) != 0) return false;
  }
  return true;
}

bool IsValidUtf8(std::string_view text) { return IsAscii(text) || IsUtf8(text); }

absl::StatusOr<std::unique_ptr<Gb18030Decoder>> Gb18030Decoder::Create() {
  const iconv_t converter = iconv_open("UTF-8", "GB18030");
  if (converter == reinterpret_cast<iconv_t>(-1)) {
    return Unavailable(
        "this system's C library cannot convert GB18030 (its gconv modules are not installed); "
        "convert the input to UTF-8 elsewhere");
  }
  return std::unique_ptr<Gb18030Decoder>(new Gb18030Decoder(converter));
}

Gb18030Decoder::~Gb18030Decoder() { iconv_close(static_cast<iconv_t>(converter_)); }

size_t Gb18030Decoder::Decode(std::string_view text, char* out) {
  const auto converter = static_cast<iconv_t>(converter_);
  char* in = const_cast<char*>(text.data());
  size_t in_left = text.size();
  char* next = out;
  size_t out_left = DecodedBytesMax(text.size());
  if (iconv(converter, &in, &in_left, &next, &out_left) == static_cast<size_t>(-1)) {
    iconv(converter, nullptr, nullptr, nullptr, nullptr);
    return SIZE_MAX;
  }
  return static_cast<size_t>(next - out);
}

}  // namespace firstseen
