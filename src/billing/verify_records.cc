#include "billing/verify_records.h"

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checksum.h"

namespace firstseen {
namespace {

constexpr size_t kHashBytes = 8;

enum class FactKind : char { kTransaction = 'T', kDecision = 'D', kBilled = 'B' };

void AppendBig(uint64_t value, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

void AppendText(std::string_view text, std::string* out) {
  AppendLittle(out, static_cast<uint32_t>(text.size()));
  *out += text;
}

void AppendAmount(AmountUnits amount, std::string* out) {
  out->append(reinterpret_cast<const char*>(&amount), sizeof(amount));
}

// Takes a record apart; only ever reads what was written here.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Number() {
    return LoadLittle<T>(Bytes(sizeof(T)).data());
  }
  uint64_t Big() {
    uint64_t value = 0;
    for (const char c : Bytes(8)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  AmountUnits Amount() {
    AmountUnits amount;
    std::memcpy(&amount, Bytes(sizeof(amount)).data(), sizeof(amount));
    return amount;
  }
  std::string_view Text() { return Bytes(Number<uint32_t>()); }
  bool Flag() { return Number<uint8_t>() != 0; }

 private:
  std::string_view Bytes(size_t size) {
    FIRSTSEEN_CHECK(rest_.size() >= size);
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
};

std::string BeginFact(std::string_view serial, FactKind kind) {
  std::string record;
  AppendBig(Checksum(serial), &record);
  AppendText(serial, &record);
  record.push_back(static_cast<char>(kind));
  return record;
}

template <typename T>
void AppendOptional(bool there, T value, std::string* out) {
  AppendLittle(out, static_cast<uint8_t>(there));
  AppendLittle(out, value);
}

void AppendOptionalText(const std::optional<std::string>& text, std::string* out) {
  AppendLittle(out, static_cast<uint8_t>(text.has_value()));
  AppendText(text.value_or(""), out);
}

std::optional<std::string> OptionalText(Cursor* cursor) {
  const bool there = cursor->Flag();
  const std::string_view text = cursor->Text();
  return there ? std::optional<std::string>(text) : std::nullopt;
}

TransactionFact UnpackTransaction(Cursor* cursor) {
  TransactionFact fact;
  const bool ordered = cursor->Flag();
  const auto inbox_id = cursor->Number<int64_t>();
  const auto line = cursor->Number<uint64_t>();
  if (ordered) fact.ordinal = Ordinal{inbox_id, line};
  fact.status_class = static_cast<StatusClass>(cursor->Number<uint8_t>());
  fact.order_no = cursor->Text();
  fact.app_id = cursor->Text();
  fact.event_ms = cursor->Number<int64_t>();
  fact.amount = cursor->Amount();
  fact.set = cursor->Number<int64_t>();
  fact.window = cursor->Number<int64_t>();
  fact.member = cursor->Text();
  return fact;
}

DecisionFact UnpackDecision(std::string_view serial, Cursor* cursor) {
  DecisionFact fact;
  Decision& d = fact.decision;
  fact.inbox_id = cursor->Number<int64_t>();
  d.serial = serial;
  d.line = cursor->Number<uint64_t>();
  d.kind = static_cast<DecisionKind>(cursor->Number<uint8_t>());
  d.origin = cursor->Number<int32_t>();
  d.verdict = static_cast<LedgerVerdict>(cursor->Number<uint8_t>());
  d.claim_sequence = cursor->Number<int64_t>();
  d.set = cursor->Text();
  d.window = cursor->Number<int64_t>();
  d.bill_serial = cursor->Number<int64_t>();
  d.bill_period_ms = cursor->Number<int64_t>();
  return fact;
}

BilledFact UnpackBilled(Cursor* cursor) {
  BilledFact fact;
  fact.kind = static_cast<BillKind>(cursor->Number<uint8_t>());
  fact.bill_serial = cursor->Number<int64_t>();
  fact.partner = cursor->Text();
  fact.amount = cursor->Amount();
  fact.order_no = OptionalText(cursor);
  fact.app_id = OptionalText(cursor);
  const bool has_event = cursor->Flag();
  const auto event_ms = cursor->Number<int64_t>();
  if (has_event) fact.event_ms = event_ms;
  return fact;
}

}  // namespace

std::string PackFact(std::string_view serial, const TransactionFact& fact) {
  std::string record = BeginFact(serial, FactKind::kTransaction);
  const Ordinal ordinal = fact.ordinal.value_or(Ordinal());
  AppendOptional(fact.ordinal.has_value(), ordinal.inbox_id, &record);
  AppendLittle(&record, ordinal.line);
  AppendLittle(&record, static_cast<uint8_t>(fact.status_class));
  AppendText(fact.order_no, &record);
  AppendText(fact.app_id, &record);
  AppendLittle(&record, fact.event_ms);
  AppendAmount(fact.amount, &record);
  AppendLittle(&record, fact.set);
  AppendLittle(&record, fact.window);
  AppendText(fact.member, &record);
  return record;
}

std::string PackFact(std::string_view serial, const DecisionFact& fact) {
  std::string record = BeginFact(serial, FactKind::kDecision);
  const Decision& d = fact.decision;
  AppendLittle(&record, fact.inbox_id);
  AppendLittle(&record, d.line);
  AppendLittle(&record, static_cast<uint8_t>(d.kind));
  AppendLittle(&record, static_cast<int32_t>(d.origin));
  AppendLittle(&record, static_cast<uint8_t>(d.verdict));
  AppendLittle(&record, d.claim_sequence);
  AppendText(d.set, &record);
  AppendLittle(&record, d.window);
  AppendLittle(&record, d.bill_serial);
  AppendLittle(&record, d.bill_period_ms);
  return record;
}

std::string PackFact(std::string_view serial, const BilledFact& fact) {
  std::string record = BeginFact(serial, FactKind::kBilled);
  AppendLittle(&record, static_cast<uint8_t>(fact.kind));
  AppendLittle(&record, fact.bill_serial);
  AppendText(fact.partner, &record);
  AppendAmount(fact.amount, &record);
  AppendOptionalText(fact.order_no, &record);
  AppendOptionalText(fact.app_id, &record);
  AppendOptional(fact.event_ms.has_value(), fact.event_ms.value_or(0), &record);
  return record;
}

std::string_view SerialKey(std::string_view record) {
  Cursor cursor(record);
  cursor.Big();
  return record.substr(0, kHashBytes + sizeof(uint32_t) + cursor.Text().size());
}

void UnpackFact(std::string_view record, SerialFacts* facts) {
  Cursor cursor(record);
  cursor.Big();
  facts->serial = cursor.Text();
  switch (static_cast<FactKind>(cursor.Number<char>())) {
    case FactKind::kTransaction:
      facts->transactions.push_back(UnpackTransaction(&cursor));
      return;
    case FactKind::kDecision:
      facts->decisions.push_back(UnpackDecision(facts->serial, &cursor));
      return;
    case FactKind::kBilled:
      facts->billed.push_back(UnpackBilled(&cursor));
      return;
  }
}

std::string PackEvent(int64_t set, int64_t window, std::string_view member,
                      const MemberEvent& event) {
  std::string key;
  AppendLittle(&key, set);
  AppendLittle(&key, window);
  key += member;
  std::string record;
  AppendBig(Checksum(key), &record);
  AppendText(key, &record);
  AppendBig(static_cast<uint64_t>(event.ordinal.inbox_id), &record);
  AppendBig(event.ordinal.line, &record);
  AppendLittle(&record, static_cast<uint8_t>(event.kind));
  AppendText(event.serial, &record);
  AppendLittle(&record, event.claim_sequence);
  AppendLittle(&record, static_cast<uint8_t>(event.billed));
  AppendLittle(&record, static_cast<uint8_t>(event.duplicate));
  AppendLittle(&record, static_cast<uint8_t>(event.pending));
  return record;
}

std::string_view MemberKey(std::string_view record) { return SerialKey(record); }

MemberEvent UnpackEvent(std::string_view record) {
  Cursor cursor(record);
  cursor.Big();
  cursor.Text();
  MemberEvent event;
  event.ordinal.inbox_id = static_cast<int64_t>(cursor.Big());
  event.ordinal.line = cursor.Big();
  event.kind = static_cast<MemberEvent::Kind>(cursor.Number<uint8_t>());
  event.serial = cursor.Text();
  event.claim_sequence = cursor.Number<int64_t>();
  event.billed = cursor.Flag();
  event.duplicate = cursor.Flag();
  event.pending = cursor.Flag();
  return event;
}

}  // namespace firstseen
