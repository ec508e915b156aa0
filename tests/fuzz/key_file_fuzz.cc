// ParseKeyFile: any bytes give keys or an error; what parses can be written and parsed again.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "keys/key_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto keys = firstseen::ParseKeyFile(text);
  if (!keys.ok()) return 0;
  FIRSTSEEN_CHECK(!keys->empty());
  const auto again = firstseen::ParseKeyFile(firstseen::FormatKeyFile(*keys));
  FIRSTSEEN_CHECK(again.ok());
  FIRSTSEEN_CHECK(again->size() == keys->size());
  for (size_t i = 0; i < keys->size(); ++i) {
    FIRSTSEEN_CHECK((*again)[i].id == (*keys)[i].id);
    FIRSTSEEN_CHECK((*again)[i].from_day == (*keys)[i].from_day);
    FIRSTSEEN_CHECK((*again)[i].key == (*keys)[i].key);
  }
  return 0;
}
