// From the fields of a row to the member that is fingerprinted: normalised, joined unambiguously.
//
// Encoding kFields:  for each field, in the set's order:  length:u32 little-endian, bytes
// Encoding kConcat:  the bytes of all fields, one after the other
// where the bytes are the field's after normalisation. The number of fields is the set's, so the
// first form is read back in one way only.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "firstseen/types.h"

namespace firstseen {

class MemberEncoder {
 public:
  static constexpr size_t kFieldBytesMax = 64 << 10;

  MemberEncoder(std::vector<FieldOptions> fields, MemberEncoding encoding);

  // Replaces *member by the encoded member; allocates only when it must grow. InvalidArgument,
  // with *member undefined: another number of fields than the set has, a field over
  // kFieldBytesMax, or one that is empty once normalised (people who share the others would be one
  // member). The message names the field, never its content. O(bytes), thread-safe.
  absl::Status Encode(std::span<const std::string_view> fields, std::string* member) const;

 private:
  const std::vector<FieldOptions> fields_;
  const MemberEncoding encoding_;
};

}  // namespace firstseen
