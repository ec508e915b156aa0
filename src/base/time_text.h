// Event times as text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace firstseen {

// Parses an event time. Accepted, and nothing else:
//   RFC 3339                 2023-12-31T23:59:59.999+08:00 (zone given; fraction optional)
//   yyyy-MM-dd HH:mm:ss      in `zone` (fraction optional)
//   yyyy-MM-dd               in `zone`, midnight
//   yyyyMMdd                 in `zone`, midnight; exactly 8 digits
//   epoch milliseconds       exactly 13 digits
// A fraction has one digit or more; what is below a nanosecond is cut off, never rounded up into
// the next window. A leap second (RFC 3339 only, 23:59:60Z on June 30th or December 31st) counts
// as the second before it. A local time that a clock change skips is the moment of the change; one
// that happens twice is the first of the two.
// Impossible dates (February 30th, month 13) are InvalidArgument; the error does not repeat the
// text. Years 1970 to 2999. Thread-safe, no allocation on success.
absl::StatusOr<absl::Time> ParseEventTime(std::string_view text, absl::TimeZone zone);

// "2023-12-31T23:59:59.999+08:00", milliseconds always present.
std::string FormatEventTime(absl::Time time, absl::TimeZone zone);

// InvalidArgument names an unknown zone and says where the names come from. Only names of the IANA
// database: "localtime" and paths are refused, for they differ from machine to machine.
absl::StatusOr<absl::TimeZone> LoadTimeZone(std::string_view name);

}  // namespace firstseen
