// Messages of the service: spdlog on stderr. File names and counts only; nothing of what is in a
// row ever goes in.
#pragma once

#include <string_view>

namespace firstseen {

// Whether `level` is one of trace, debug, info, warn, error, off.
bool IsLogLevel(std::string_view level);

// Sends spdlog's default logger to stderr, with times and at this level. May be called again.
void StartLog(std::string_view level);

}  // namespace firstseen
