// Sizes, counts and durations as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace firstseen {

// "512 B", "12.3 GiB": binary units, one decimal below 100, never rounded up to "1024".
std::string FormatBytes(uint64_t bytes);
// "1 234 567".
std::string FormatCount(uint64_t count);
// "1 row", "1 234 567 rows", for a noun that takes an s.
std::string FormatCount(uint64_t count, std::string_view noun);
// "0.4 s", "12 s", "3 min 04 s", "2 h 05 min", "3 d 04 h". Negative or not finite: "?".
std::string FormatSeconds(double seconds);

// "4096", "10GiB", "10 GiB", "1.5g", "64M": units K, M, G, T with or without "B" or "iB", in any
// case, always powers of 1024. InvalidArgument names the forms.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

}  // namespace firstseen
