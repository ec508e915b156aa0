#include "keys/member.h"

#include <cstring>
#include <utility>

#include "base/status.h"
#include "keys/normalise.h"

namespace firstseen {
namespace {

std::string Names(const std::vector<FieldOptions>& fields) {
  std::string names;
  for (const FieldOptions& field : fields) {
    if (!names.empty()) names += ", ";
    names += field.name;
  }
  return names;
}

}  // namespace

MemberEncoder::MemberEncoder(std::vector<FieldOptions> fields, MemberEncoding encoding)
    : fields_(std::move(fields)), encoding_(encoding) {}

absl::Status MemberEncoder::Encode(std::span<const std::string_view> fields,
                                   std::string* member) const {
  if (fields.size() != fields_.size()) {
    return InvalidArgument("the row has {} fields for the member, the set has {} ({})",
                           fields.size(), fields_.size(), Names(fields_));
  }
  member->clear();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].size() > kFieldBytesMax) {
      return InvalidArgument("field {} is {} bytes long; the limit is {}", fields_[i].name,
                             fields[i].size(), kFieldBytesMax);
    }
    if (encoding_ == MemberEncoding::kFields) member->append(sizeof(uint32_t), '\0');
    const size_t begin = member->size();
    AppendNormalised(fields_[i].normalise, fields[i], member);
    const uint32_t size = static_cast<uint32_t>(member->size() - begin);
    if (size == 0) {
      return InvalidArgument("field {} is empty once normalised; a member needs all its fields",
                             fields_[i].name);
    }
    if (encoding_ == MemberEncoding::kFields) {
      std::memcpy(member->data() + begin - sizeof(size), &size, sizeof(size));
    }
  }
  return absl::OkStatus();
}

}  // namespace firstseen
