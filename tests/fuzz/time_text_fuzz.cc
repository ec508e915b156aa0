// ParseEventTime: any bytes give a time or an error; what parses can be written and parsed again.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const absl::TimeZone zone = *firstseen::LoadTimeZone("Asia/Shanghai");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<absl::Time> time = firstseen::ParseEventTime(text, zone);
  if (!time.ok()) return 0;
  const absl::StatusOr<absl::Time> again =
      firstseen::ParseEventTime(firstseen::FormatEventTime(*time, zone), zone);
  FIRSTSEEN_CHECK(again.ok());
  FIRSTSEEN_CHECK(absl::ToUnixMillis(*again) == absl::ToUnixMillis(*time));
  return 0;
}
