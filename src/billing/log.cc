#include "billing/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

namespace firstseen {

bool IsLogLevel(std::string_view level) {
  static constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info",
                                                              "warn",  "error", "off"};
  return std::ranges::count(kLevels, level) > 0;
}

void StartLog(std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>("firstseen",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(spdlog::level::from_str(std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace firstseen
