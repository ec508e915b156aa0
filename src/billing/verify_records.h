// The records that `bill verify` sorts: what files say of a serial, and what happened to a member.
//
// A record is  hash:8 key separator content  in an order that brings equal keys together: the hash
// (XXH3 of the key) makes the sort fast, the key behind it makes it exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "billing/amount.h"
#include "billing/decisions.h"
#include "billing/transactions.h"

namespace firstseen {

// (inbox id, line): the order of all decisions.
struct Ordinal {
  int64_t inbox_id = 0;
  uint64_t line = 0;
  friend auto operator<=>(const Ordinal&, const Ordinal&) = default;
};

// A row of a transaction file.
struct TransactionFact {
  std::optional<Ordinal> ordinal;  // nullopt: from an export, which has no order
  StatusClass status_class = StatusClass::kIgnored;
  std::string order_no;
  std::string app_id;
  int64_t event_ms = 0;
  AmountUnits amount = 0;
  int64_t set = -1;  // position in BillingConfig::sets; -1 = none
  int64_t window = 0;
  std::string member;  // normalised and encoded
};

struct DecisionFact {
  int64_t inbox_id = 0;
  Decision decision;
};

// A row of a bill or adjustments file.
struct BilledFact {
  BillKind kind = BillKind::kBill;
  int64_t bill_serial = 0;
  std::string partner;
  AmountUnits amount = 0;
  // Of columns that the file has.
  std::optional<std::string> order_no;
  std::optional<std::string> app_id;
  std::optional<int64_t> event_ms;
};

// All that is known of one serial.
struct SerialFacts {
  std::string serial;
  std::vector<TransactionFact> transactions;
  std::vector<DecisionFact> decisions;
  std::vector<BilledFact> billed;
};

std::string PackFact(std::string_view serial, const TransactionFact& fact);
std::string PackFact(std::string_view serial, const DecisionFact& fact);
std::string PackFact(std::string_view serial, const BilledFact& fact);
// The part of a record that is equal for all facts of one serial.
std::string_view SerialKey(std::string_view record);
// Adds what the record says; the first one sets the serial.
void UnpackFact(std::string_view record, SerialFacts* facts);

// What happened to a member in a window, in the order of `ordinal`.
struct MemberEvent {
  enum class Kind : uint8_t { kHistory, kClaim, kRelease };
  Ordinal ordinal;  // history comes first: inbox id 0
  Kind kind = Kind::kHistory;
  std::string serial;  // of a history row: its token, or empty
  int64_t claim_sequence = 0;
  bool billed = false;     // is in a bill file
  bool duplicate = false;  // its decision is origin 5
  bool pending = false;    // its period is not closed yet
};

std::string PackEvent(int64_t set, int64_t window, std::string_view member,
                      const MemberEvent& event);
std::string_view MemberKey(std::string_view record);
MemberEvent UnpackEvent(std::string_view record);

}  // namespace firstseen
