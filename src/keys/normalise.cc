#include "keys/normalise.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "keys/utf8.h"

namespace firstseen {
namespace {

constexpr std::string_view kMiddleDotUtf8 = "\xC2\xB7";
constexpr char32_t kIdeographicSpace = 0x3000;

bool IsZeroWidth(char32_t c) { return (c >= 0x200B && c <= 0x200D) || c == 0x2060 || c == 0xFEFF; }

bool IsNameSeparator(char32_t c) {
  switch (c) {
    case U'.':
    case 0x2022:
    case 0x2024:
    case 0x2027:
    case 0x2219:
    case 0x22C5:
    case 0x25CF:
    case 0x30FB:
    case 0xFF0E:
    case 0xFF65:
      return true;
    default:
      return false;
  }
}

struct Range {
  char32_t first;
  char32_t last;
};

// Letters for the purpose of `name-dot`: the scripts that names are written in, with their
// combining marks, and the private use areas (rare ideographs of older GB encodings).
constexpr Range kLetters[] = {
    {'A', 'Z'},          {'a', 'z'},         {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x2FF},       {0x300, 0x374},     {0x376, 0x37D},     {0x37F, 0x386},
    {0x388, 0x3FF},      {0x400, 0x559},     {0x561, 0x587},     {0x591, 0x5BD},
    {0x5D0, 0x5F2},      {0x610, 0x61A},     {0x620, 0x65F},     {0x66E, 0x6D3},
    {0x6D5, 0x6EF},      {0x6FA, 0x6FF},     {0x710, 0x74A},     {0x750, 0x77F},
    {0x8A0, 0x963},      {0x971, 0xE3A},     {0xE40, 0xE4E},     {0xE81, 0xF00},
    {0xF18, 0xF19},      {0xF35, 0xF39},     {0xF3E, 0xF84},     {0xF86, 0xFBC},
    {0x1000, 0x103F},    {0x1050, 0x135F},   {0x1380, 0x166C},   {0x166F, 0x169A},
    {0x1780, 0x17D3},    {0x1820, 0x18AA},   {0x1900, 0x1FFF},   {0x2C00, 0x2CE4},
    {0x2D00, 0x2DFF},    {0x3005, 0x3007},   {0x3041, 0x309F},   {0x30A1, 0x30FA},
    {0x30FC, 0x31BF},    {0x31F0, 0x31FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA48C},
    {0xA640, 0xA66F},    {0xA680, 0xA6EF},   {0xA720, 0xA7FF},   {0xAC00, 0xD7FB},
    {0xE000, 0xFAFF},    {0xFB00, 0xFB4F},   {0xFB50, 0xFD3D},   {0xFD50, 0xFDFB},
    {0xFE20, 0xFE2F},    {0xFE70, 0xFEFC},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},
    {0xFF66, 0xFFDC},    {0x10000, 0x1CFFF}, {0x1E000, 0x1EFFF}, {0x20000, 0x3FFFD},
    {0xF0000, 0x10FFFD},
};

bool IsLetter(char32_t c) {
  if (c >= 0x4E00 && c <= 0xA48C) return true;
  const auto* range = std::upper_bound(std::begin(kLetters), std::end(kLetters), c,
                                       [](char32_t x, const Range& r) { return x < r.first; });
  return range != std::begin(kLetters) && c <= (range - 1)->last;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool AllDigits(std::string_view text) { return std::all_of(text.begin(), text.end(), IsDigit); }
bool IsAsciiSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsDate19(std::string_view yymmdd) {
  const auto number = [&](int i) { return (yymmdd[i] - '0') * 10 + (yymmdd[i + 1] - '0'); };
  const int year = 1900 + number(0);
  const int month = number(2);
  const int day = number(4);
  if (month < 1 || month > 12 || day < 1) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && year != 1900;
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

// Appends `field` with zero-width, width and name-dot done; false when it is not UTF-8.
bool AppendCharacters(uint32_t mask, std::string_view field, std::string* out) {
  const auto* p = reinterpret_cast<const unsigned char*>(field.data());
  const auto* const end = p + field.size();
  bool after_letter = false;
  size_t separator = std::string::npos;  // where one that follows a letter begins in *out
  while (p != end) {
    const unsigned char* const start = p;
    char32_t c = ReadUtf8(&p, end);
    if (c == kNotUtf8) return false;
    if ((mask & kZeroWidth) != 0 && IsZeroWidth(c)) continue;
    bool changed = false;
    if ((mask & kWidth) != 0 && ((c >= 0xFF01 && c <= 0xFF5E) || c == kIdeographicSpace)) {
      c = c == kIdeographicSpace ? U' ' : c - 0xFF01 + 0x21;
      changed = true;
    }
    if ((mask & kNameDot) != 0) {
      const bool letter = IsLetter(c);
      if (letter && separator != std::string::npos) {
        out->resize(separator);
        out->append(kMiddleDotUtf8);
      }
      separator = after_letter && IsNameSeparator(c) ? out->size() : std::string::npos;
      after_letter = letter;
    }
    if (changed) {
      out->push_back(static_cast<char>(c));
    } else {
      out->append(reinterpret_cast<const char*>(start), p - start);
    }
  }
  return true;
}

// Trims what *out holds from `begin` on.
void Trim(size_t begin, std::string* out) {
  constexpr std::string_view kSpace = "\xE3\x80\x80";
  std::string_view text = std::string_view{*out}.substr(begin);
  while (!text.empty()) {
    if (IsAsciiSpace(text.back())) {
      text.remove_suffix(1);
    } else if (text.ends_with(kSpace)) {
      text.remove_suffix(kSpace.size());
    } else {
      break;
    }
  }
  size_t leading = 0;
  while (leading < text.size()) {
    if (IsAsciiSpace(text[leading])) {
      ++leading;
    } else if (text.substr(leading).starts_with(kSpace)) {
      leading += kSpace.size();
    } else {
      break;
    }
  }
  out->resize(begin + text.size());
  out->erase(begin, leading);
}

void NormaliseId(uint32_t mask, size_t begin, std::string* out) {
  const std::string_view id = std::string_view{*out}.substr(begin);
  if ((mask & kXCheckDigit) != 0 && id.size() == 18 && id[17] == 'x' &&
      AllDigits(id.substr(0, 17))) {
    out->back() = 'X';
  } else if ((mask & kId15To18) != 0 && id.size() == 15 && AllDigits(id) &&
             IsDate19(id.substr(6, 6))) {
    out->insert(begin + 6, "19");
    out->push_back(IdCheckDigit(std::string_view{*out}.substr(begin)));
  }
}

// True when no switch that acts on characters can change `field`.
bool IsPlain(uint32_t mask, std::string_view field) {
  const bool dots = (mask & kNameDot) != 0;
  for (const char c : field) {
    if (static_cast<signed char>(c) < 0 || (dots && c == '.')) return false;
  }
  return true;
}

}  // namespace

char IdCheckDigit(std::string_view digits17) {
  FIRSTSEEN_CHECK(digits17.size() == 17);
  constexpr int kWeights[] = {7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2};
  int sum = 0;
  for (int i = 0; i < 17; ++i) sum += (digits17[i] - '0') * kWeights[i];
  return "10X98765432"[sum % 11];
}

void AppendNormalised(uint32_t mask, std::string_view field, std::string* out) {
  const size_t begin = out->size();
  if (mask == kOpaque || IsPlain(mask, field)) {
    out->append(field);
  } else if (!AppendCharacters(mask, field, out)) {
    out->resize(begin);
    out->append(field);
    return;
  }
  if ((mask & kTrim) != 0) Trim(begin, out);
  if ((mask & (kXCheckDigit | kId15To18)) != 0) NormaliseId(mask, begin, out);
}

}  // namespace firstseen
