#include "base/time_text.h"

#include <algorithm>

#include "absl/time/civil_time.h"
#include "base/status.h"

namespace firstseen {
namespace {

constexpr int kYearMin = 1970;
constexpr int kYearMax = 2999;
constexpr size_t kDateChars = 10;      // yyyy-MM-dd
constexpr size_t kDateTimeChars = 19;  // yyyy-MM-ddTHH:mm:ss
constexpr int64_t kSecondsPerDay = 86400;

struct Parts {
  int year = 0, month = 0, day = 0;
  int hour = 0, minute = 0, second = 0;
  int64_t nanos = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number in `count` digits at `text`; -1 when one of them is no digit.
int Digits(const char* text, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) {
    if (!IsDigit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

int DaysInMonth(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[month - 1];
}

bool ValidDate(const Parts& parts) {
  return parts.year >= kYearMin && parts.year <= kYearMax && parts.month >= 1 &&
         parts.month <= 12 && parts.day >= 1 && parts.day <= DaysInMonth(parts.year, parts.month);
}

bool ParseDate(std::string_view text, Parts* parts) {
  if (text[4] != '-' || text[7] != '-') return false;
  parts->year = Digits(text.data(), 4);
  parts->month = Digits(text.data() + 5, 2);
  parts->day = Digits(text.data() + 8, 2);
  return ValidDate(*parts);
}

// HH:mm:ss. Second 60 is looked at by the caller.
bool ParseClock(std::string_view text, Parts* parts) {
  if (text[2] != ':' || text[5] != ':') return false;
  parts->hour = Digits(text.data(), 2);
  parts->minute = Digits(text.data() + 3, 2);
  parts->second = Digits(text.data() + 6, 2);
  return parts->hour >= 0 && parts->hour <= 23 && parts->minute >= 0 && parts->minute <= 59 &&
         parts->second >= 0 && parts->second <= 60;
}

// Takes ".digits" off the front of `text`, if it is there. Digits after the ninth are dropped, so
// that a time never moves into a later window.
bool ParseFraction(std::string_view* text, int64_t* nanos) {
  if (text->empty() || text->front() != '.') return true;
  size_t i = 1;
  int64_t scale = 100'000'000;
  for (; i < text->size() && IsDigit((*text)[i]); ++i) {
    *nanos += ((*text)[i] - '0') * scale;
    scale /= 10;
  }
  text->remove_prefix(i);
  return i > 1;
}

// Z or +hh:mm, all of `text`.
bool ParseOffset(std::string_view text, int* seconds) {
  if (text == "Z" || text == "z") {
    *seconds = 0;
    return true;
  }
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return false;
  const int hours = Digits(text.data() + 1, 2);
  const int minutes = Digits(text.data() + 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
  *seconds = (hours * 60 + minutes) * 60 * (text[0] == '-' ? -1 : 1);
  return true;
}

// Days from 1970-01-01. After Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
int64_t DaysFromCivil(int year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int era = year / 400;
  const int year_of_era = year - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return static_cast<int64_t>(era) * 146097 + day_of_era - 719468;
}

absl::Time FromUtc(const Parts& parts, int offset_seconds) {
  const int64_t seconds = DaysFromCivil(parts.year, parts.month, parts.day) * kSecondsPerDay +
                          (int64_t{parts.hour} * 60 + parts.minute) * 60 + parts.second -
                          offset_seconds;
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(parts.nanos);
}

absl::Time FromZone(const Parts& parts, absl::TimeZone zone) {
  const absl::CivilSecond civil(parts.year, parts.month, parts.day, parts.hour, parts.minute,
                                parts.second);
  return absl::FromCivil(civil, zone) + absl::Nanoseconds(parts.nanos);
}

// Leap seconds are inserted before midnight UTC on the last day of June or December. Unix time
// has no number for them: they count as the second before, which keeps them in their own day.
bool FoldLeapSecond(Parts* parts, int offset_seconds) {
  parts->second = 59;
  const int64_t seconds = absl::ToUnixSeconds(FromUtc(*parts, offset_seconds));
  if ((seconds + 1) % kSecondsPerDay != 0) return false;
  const absl::CivilDay next =
      absl::ToCivilDay(absl::FromUnixSeconds(seconds + 1), absl::UTCTimeZone());
  return next.day() == 1 && (next.month() == 1 || next.month() == 7);
}

bool ParseRfc3339(std::string_view text, absl::Time* time) {
  Parts parts;
  if (!ParseDate(text, &parts) || !ParseClock(text.substr(kDateChars + 1), &parts)) return false;
  text.remove_prefix(kDateTimeChars);
  int offset_seconds = 0;
  if (!ParseFraction(&text, &parts.nanos) || !ParseOffset(text, &offset_seconds)) return false;
  if (parts.second == 60 && !FoldLeapSecond(&parts, offset_seconds)) return false;
  *time = FromUtc(parts, offset_seconds);
  return true;
}

bool ParseZoneTime(std::string_view text, absl::TimeZone zone, absl::Time* time) {
  Parts parts;
  if (!ParseDate(text, &parts)) return false;
  if (text.size() > kDateChars) {
    if (!ParseClock(text.substr(kDateChars + 1), &parts) || parts.second == 60) return false;
    text.remove_prefix(kDateTimeChars);
    if (!ParseFraction(&text, &parts.nanos) || !text.empty()) return false;
  }
  *time = FromZone(parts, zone);
  return true;
}

bool ParseDigits(std::string_view text, absl::TimeZone zone, absl::Time* time) {
  if (text.size() == 8) {
    Parts parts;
    parts.year = Digits(text.data(), 4);
    parts.month = Digits(text.data() + 4, 2);
    parts.day = Digits(text.data() + 6, 2);
    if (!ValidDate(parts)) return false;
    *time = FromZone(parts, zone);
    return true;
  }
  const int high = Digits(text.data(), 4);
  const int low = Digits(text.data() + 4, 9);
  if (high < 0 || low < 0) return false;
  *time = absl::FromUnixMillis(int64_t{high} * 1'000'000'000 + low);
  return true;
}

bool Parse(std::string_view text, absl::TimeZone zone, absl::Time* time) {
  if (text.size() == 8 || text.size() == 13) return ParseDigits(text, zone, time);
  if (text.size() == kDateChars) return ParseZoneTime(text, zone, time);
  if (text.size() < kDateTimeChars) return false;
  const char separator = text[kDateChars];
  if (separator == 'T' || separator == 't') return ParseRfc3339(text, time);
  return separator == ' ' && ParseZoneTime(text, zone, time);
}

}  // namespace

absl::StatusOr<absl::Time> ParseEventTime(std::string_view text, absl::TimeZone zone) {
  absl::Time time;
  if (Parse(text, zone, &time)) return time;
  return InvalidArgument(
      "not a time of the years {} to {}; write 2023-12-31T23:59:59+08:00, 2023-12-31 23:59:59, "
      "2023-12-31, 20231231 or 13 digits of epoch milliseconds",
      kYearMin, kYearMax);
}

std::string FormatEventTime(absl::Time time, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3S%Ez", time, zone);
}

absl::StatusOr<absl::TimeZone> LoadTimeZone(std::string_view name) {
  // Only names of the IANA database: "localtime" and paths mean different things on different
  // machines, and a set's windows must not.
  const bool plain = !name.empty() && name.front() != '/' && name.front() != '.' &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              c == '_' || c == '+' || c == '-' || c == '/';
                     });
  absl::TimeZone zone;
  if (plain && name != "localtime" &&
      absl::LoadTimeZone(absl::string_view(name.data(), name.size()), &zone)) {
    return zone;
  }
  return InvalidArgument(
      "unknown time zone {:?}; use a name of the IANA database, such as Asia/Shanghai or UTC "
      "(listed under /usr/share/zoneinfo, package tzdata)",
      name);
}

}  // namespace firstseen
