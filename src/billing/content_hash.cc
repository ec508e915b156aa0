#include "billing/content_hash.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

std::string Hex(const Fingerprint& hash) { return fmt::format("{:016x}{:016x}", hash.hi, hash.lo); }

}  // namespace

ContentHasher::ContentHasher(const BillingConfig& config, std::string_view secret) {
  FIRSTSEEN_CHECK(secret.size() == 2 * key_.size());
  for (size_t i = 0; i < key_.size(); ++i) {
    const char* digits = secret.data() + 2 * i;
    const auto [stop, error] = std::from_chars(digits, digits + 2, key_[i], 16);
    FIRSTSEEN_CHECK(error == std::errc() && stop == digits + 2);
  }
  for (const SetConfig& set : config.sets) {
    encoders_.try_emplace(set.name, set.options.fields, set.options.member_encoding);
  }
}

std::string ContentHasher::Content(const Transaction& t) const {
  return Hex(SipHash128(
      key_, fmt::format("content {}:{} {}:{} {} {}", t.order_no.size(), t.order_no, t.app_id.size(),
                        t.app_id, absl::ToUnixMillis(t.event_time), FormatAmount(t.amount, 0))));
}

absl::StatusOr<std::string> ContentHasher::Member(const Transaction& t) const {
  if (t.rule->set.empty() ||
      std::ranges::all_of(t.fields, [](const std::string& field) { return field.empty(); })) {
    return std::string();
  }
  const std::vector<std::string_view> fields(t.fields.begin(), t.fields.end());
  std::string member;
  RETURN_IF_ERROR(encoders_.at(t.rule->set).Encode(fields, &member));
  return Hex(SipHash128(key_, "member " + member));
}

}  // namespace firstseen
