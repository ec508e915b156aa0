#include "engine/window.h"

#include <algorithm>
#include <cctype>

#include "absl/time/civil_time.h"
#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

// Years an event time may have; see base/time_text.h.
constexpr int kYearMin = 1970;
constexpr int kYearMax = 2999;

struct Civil {
  int year = 0;
  int month = 1;
  int day = 1;
};

Civil Split(WindowKind kind, WindowId window) {
  switch (kind) {
    case WindowKind::kNone:
      break;
    case WindowKind::kYear:
      return {window, 1, 1};
    case WindowKind::kMonth:
      return {window / 100, window % 100, 1};
    case WindowKind::kDay:
      return {window / 10000, window / 100 % 100, window % 100};
  }
  return {};
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The digits of "2023-12-31" without its dashes; empty when the dashes are elsewhere.
std::string WithoutDashes(std::string_view text) {
  if (text.find('-') == std::string_view::npos) return std::string(text);
  std::string digits(text.substr(0, 4));
  for (size_t at = 4; at < text.size(); at += 3) {
    if (text[at] != '-' || text.size() < at + 3) return "";
    digits += text.substr(at + 1, 2);
  }
  return digits;
}

absl::Time CivilStart(absl::CivilDay day, absl::TimeZone zone) {
  // The instant after a gap, where the zone skips midnight.
  return absl::FromCivil(absl::CivilSecond(day), zone);
}

}  // namespace

WindowId WindowOf(WindowKind kind, absl::Time time, absl::TimeZone zone) {
  if (kind == WindowKind::kNone) return 0;
  const absl::CivilDay day(absl::ToCivilSecond(time, zone));
  // Infinite times must not overflow; ParseEventTime lets none in.
  const auto year =
      static_cast<WindowId>(std::clamp<absl::civil_year_t>(day.year(), 0, kYearMax + 1));
  switch (kind) {
    case WindowKind::kYear:
      return year;
    case WindowKind::kMonth:
      return year * 100 + day.month();
    default:
      return year * 10000 + day.month() * 100 + day.day();
  }
}

absl::Time WindowStart(WindowKind kind, WindowId window, absl::TimeZone zone) {
  if (kind == WindowKind::kNone) return absl::InfinitePast();
  const Civil civil = Split(kind, window);
  return CivilStart(absl::CivilDay(civil.year, civil.month, civil.day), zone);
}

absl::Time WindowEnd(WindowKind kind, WindowId window, absl::TimeZone zone) {
  const Civil civil = Split(kind, window);
  switch (kind) {
    case WindowKind::kNone:
      return absl::InfiniteFuture();
    case WindowKind::kYear:
      return CivilStart(absl::CivilDay(civil.year + 1, 1, 1), zone);
    case WindowKind::kMonth:  // CivilDay normalises month 13
      return CivilStart(absl::CivilDay(civil.year, civil.month + 1, 1), zone);
    case WindowKind::kDay:
      return CivilStart(absl::CivilDay(civil.year, civil.month, civil.day) + 1, zone);
  }
  FIRSTSEEN_CHECK(false);
}

std::string FormatWindow(WindowKind kind, WindowId window) {
  const Civil civil = Split(kind, window);
  switch (kind) {
    case WindowKind::kNone:
      return "all";
    case WindowKind::kYear:
      return fmt::format("{:04}", civil.year);
    case WindowKind::kMonth:
      return fmt::format("{:04}-{:02}", civil.year, civil.month);
    case WindowKind::kDay:
      return fmt::format("{:04}-{:02}-{:02}", civil.year, civil.month, civil.day);
  }
  FIRSTSEEN_CHECK(false);
}

absl::StatusOr<WindowId> ParseWindow(WindowKind kind, std::string_view text) {
  static constexpr std::string_view kForms[] = {"all", "2023", "2023-12 or 202312",
                                                "2023-12-31 or 20231231"};
  static constexpr size_t kDigits[] = {0, 4, 6, 8};
  const auto index = static_cast<size_t>(kind);
  if (kind == WindowKind::kNone) {
    if (text == "all") return 0;
    return InvalidArgument("the set has one window, named \"all\"");
  }
  const std::string digits = WithoutDashes(text);
  if (digits.size() != kDigits[index] || !AllDigits(digits)) {
    return InvalidArgument("not a window of this set; write {}", kForms[index]);
  }
  const WindowId window = std::stoi(digits);
  const Civil civil = Split(kind, window);
  const absl::CivilDay day(civil.year, civil.month, civil.day);
  const bool real = day.year() == civil.year && day.month() == civil.month &&
                    day.day() == civil.day && civil.year >= kYearMin && civil.year <= kYearMax;
  if (!real) {
    return InvalidArgument("no such date in the years {} to {}; write {}", kYearMin, kYearMax,
                           kForms[index]);
  }
  return window;
}

}  // namespace firstseen
