// Event times as text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace firstseen {

// Parses an event time. Accepted, and nothing else:
//   RFC 3339                 2023-12-31T23:59:59.999+08:00 (zone given; fraction optional)
//   yyyy-MM-dd HH:mm:ss      in `zone` (fraction .SSS optional)
//   yyyy-MM-dd               in `zone`, midnight
//   yyyyMMdd                 in `zone`, midnight; exactly 8 digits
//   epoch milliseconds       exactly 13 digits
// Impossible dates (February 30th, month 13) are InvalidArgument; the error does not repeat the
// text. Years 1970 to 2999. Thread-safe, no allocation on success.
absl::StatusOr<absl::Time> ParseEventTime(std::string_view text, absl::TimeZone zone);

// "2023-12-31T23:59:59.999+08:00", milliseconds always present.
std::string FormatEventTime(absl::Time time, absl::TimeZone zone);

// InvalidArgument names an unknown zone and says where the names come from.
absl::StatusOr<absl::TimeZone> LoadTimeZone(std::string_view name);

}  // namespace firstseen
