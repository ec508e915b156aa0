#include "base/human.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

absl::Status BadBytes() {
  return InvalidArgument("not a number of bytes; write for example 4096, 64MiB or 1.5GiB");
}

// Takes the unit behind the number; 0 when it is none.
double UnitBytes(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return 1;
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (upper == "B") return 1;
  const size_t unit = kUnits.find(upper[0]);
  if (unit == std::string_view::npos) return 0;
  const std::string_view rest = std::string_view{upper}.substr(1);
  if (!rest.empty() && rest != "B" && rest != "IB") return 0;
  return std::ldexp(1.0, 10 * static_cast<int>(unit + 1));
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  int unit = 0;
  double value = static_cast<double>(bytes) / 1024;
  while (value >= 1024) {
    value /= 1024;
    ++unit;
  }
  // Cut off, not rounded: 1023.96 KiB must not read as 1024.0 KiB.
  if (value < 100) return fmt::format("{:.1f} {}iB", std::floor(value * 10) / 10, kUnits[unit]);
  return fmt::format("{:.0f} {}iB", std::floor(value), kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ' ');
  }
  return digits;
}

std::string FormatCount(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", FormatCount(count), noun, count == 1 ? "" : "s");
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e15) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || number < 0 || !std::isfinite(number)) return BadBytes();
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const double unit_bytes = UnitBytes(unit);
  if (unit_bytes == 0) return BadBytes();
  if (unit_bytes == 1) {
    // Whole numbers are taken exactly.
    uint64_t bytes = 0;
    const auto exact = std::from_chars(text.data(), end, bytes);
    if (exact.ec != std::errc() || exact.ptr != end) return BadBytes();
    return bytes;
  }
  const double bytes = number * unit_bytes;
  if (bytes >= std::ldexp(1.0, 64)) return BadBytes();
  return static_cast<uint64_t>(bytes);
}

}  // namespace firstseen
