// Keyed hashes by which the ledger knows a transaction again without keeping what is in it.
#pragma once

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "billing/config.h"
#include "billing/transactions.h"
#include "keys/member.h"
#include "keys/siphash.h"

namespace firstseen {

// SipHash-2-4-128 under the ledger's secret, 32 hexadecimal digits. Thread-safe.
class ContentHasher {
 public:
  // `secret`: 32 hexadecimal digits (Ledger::Secret).
  ContentHasher(const BillingConfig& config, std::string_view secret);

  // Of what a retry must repeat besides the member: order number, app, event time, amount.
  std::string Content(const Transaction& transaction) const;
  // Of the member, normalised as its set does. Empty when the rule has no set or the row has none
  // of the member's fields. InvalidArgument: no member (see MemberEncoder).
  absl::StatusOr<std::string> Member(const Transaction& transaction) const;

 private:
  SipKey key_;
  absl::flat_hash_map<std::string, MemberEncoder> encoders_;  // by set
};

}  // namespace firstseen
