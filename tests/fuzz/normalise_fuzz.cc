// AppendNormalised: any bytes under any switches; doing it twice changes nothing, and what stands
// in the buffer before is left alone. The first byte is the mask.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "keys/normalise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint32_t mask = data[0] & 63;
  const std::string_view field(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string once = "before";
  firstseen::AppendNormalised(mask, field, &once);
  FIRSTSEEN_CHECK(once.starts_with("before"));
  FIRSTSEEN_CHECK(once.size() <= 6 + 2 * field.size() + 3);
  std::string twice = "before";
  firstseen::AppendNormalised(mask, std::string_view(once).substr(6), &twice);
  FIRSTSEEN_CHECK(twice == once);
  if (mask == firstseen::kOpaque) FIRSTSEEN_CHECK(once.substr(6) == field);
  return 0;
}
