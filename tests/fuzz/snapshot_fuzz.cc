// Sections of a snapshot: any bytes are refused or decode without harm, and a decoded shard encodes
// to the same bytes again.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/snapshot_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr int kWidths[] = {80, 88, 96, 112, 128};
  const int bits = kWidths[data[0] % 5];
  const std::string_view payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  firstseen::DecodeSetSection(payload).IgnoreError();
  firstseen::DecodeWindowSection(payload).IgnoreError();
  firstseen::DecodeImportsSection(payload).IgnoreError();
  firstseen::DecodeFooterSection(payload).IgnoreError();
  firstseen::DecodeOwnersSection(payload, bits).IgnoreError();
  const auto shard = firstseen::DecodeShardSection(payload, bits);
  if (!shard.ok()) return 0;
  const auto& prints = shard->image.fingerprints;
  FIRSTSEEN_CHECK(std::is_sorted(prints.begin(), prints.end()));
  const std::string again = firstseen::EncodeSection(*shard, bits);
  FIRSTSEEN_CHECK(firstseen::DecodeShardSection(again, bits)->image.fingerprints == prints);
  return 0;
}
