// Strict UTF-8 (RFC 3629), one code point at a time.
#pragma once

#include <string_view>

namespace firstseen {

inline constexpr char32_t kNotUtf8 = 0xFFFFFFFF;

// Reads one code point at *p (before `end`) and moves *p behind it; kNotUtf8 for what is no UTF-8
// (RFC 3629: no overlong forms, surrogates or numbers above U+10FFFF).
inline char32_t ReadUtf8(const unsigned char** p, const unsigned char* end) {
  const unsigned char* s = *p;
  const unsigned char lead = s[0];
  const auto continuation = [&](int i) { return (s[i] & 0xC0) == 0x80; };
  if (lead < 0x80) {
    *p += 1;
    return lead;
  }
  if (lead >= 0xC2 && lead <= 0xDF && end - s >= 2 && continuation(1)) {
    *p += 2;
    return (lead & 0x1Fu) << 6 | (s[1] & 0x3Fu);
  }
  if ((lead & 0xF0) == 0xE0 && end - s >= 3 && continuation(1) && continuation(2)) {
    *p += 3;
    const char32_t c = (lead & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
    return c < 0x800 || (c >= 0xD800 && c <= 0xDFFF) ? kNotUtf8 : c;
  }
  if (lead >= 0xF0 && lead <= 0xF4 && end - s >= 4 && continuation(1) && continuation(2) &&
      continuation(3)) {
    *p += 4;
    const char32_t c =
        (lead & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu);
    return c < 0x10000 || c > 0x10FFFF ? kNotUtf8 : c;
  }
  return kNotUtf8;
}

inline bool IsUtf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  while (p != end) {
    if (ReadUtf8(&p, end) == kNotUtf8) return false;
  }
  return true;
}

}  // namespace firstseen
