// The ledger on SOCI: private to ledger*.cc.
#pragma once

#include <soci/soci.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "billing/ledger.h"
#include "billing/ledger_dialect.h"

namespace firstseen {

// The error of a database: what it says, the database, what was being done, and the remedy.
absl::Status LedgerError(std::string_view database, std::string_view action,
                         const std::string& text);

// A row of `transactions` as SOCI reads and writes it: numbers in types that it knows.
struct FlatRow {
  static constexpr std::array<int64_t LedgerRow::*, 5> kNumbers = {
      &LedgerRow::event_ms, &LedgerRow::claim_sequence, &LedgerRow::window, &LedgerRow::bill_serial,
      &LedgerRow::inbox_id};

  LedgerRow texts;  // its numbers are not used
  std::array<long long, kNumbers.size()> numbers = {};
  int state = 0, origin = 0, verdict = 0;
  soci::indicator origin_indicator = soci::i_null;

  LedgerRow Row() const;
  void Set(const LedgerRow& row);
  // Calls `bind` with each column's place, in the order of kRowColumns.
  template <typename Bind>
  void ForEach(Bind&& bind) {
    auto& [event_ms, claim_sequence, window, bill_serial, inbox_id] = numbers;
    bind(texts.serial);
    bind(texts.order_no);
    bind(texts.app_id);
    bind(texts.partner);
    bind(event_ms);
    bind(texts.amount);
    bind(texts.status);
    bind(state);
    bind(origin, origin_indicator);
    bind(verdict);
    bind(claim_sequence);
    bind(texts.set);
    bind(window);
    bind(bill_serial);
    bind(inbox_id);
    bind(texts.content);
    bind(texts.member);
    bind(texts.kept);
  }
};

// In the order of FlatRow::ForEach.
inline constexpr const char* kRowColumns =
    "biz_seq_no, order_no, app_id, partner, event_ms, amount, status, state, origin, verdict, "
    "claim_sequence, set_name, window_id, bill_serial, inbox_id, content, member, kept";

// `statement, into(...)...` for kRowColumns.
template <typename Prepared>
Prepared& IntoRow(Prepared& prepared, FlatRow* row) {
  row->ForEach([&](auto&... place) { prepared, soci::into(place...); });
  return prepared;
}

class SqlLedger : public Ledger {
 public:
  SqlLedger(const LedgerDialect& dialect, std::string connection)
      : dialect_(dialect), connection_(std::move(connection)) {}

  absl::Status Open(LedgerOpen mode);

  absl::Status Transact(const std::function<absl::Status()>& body) override;
  absl::StatusOr<std::string> Secret() override;
  absl::StatusOr<std::optional<std::string>> Note(std::string_view name) override;
  absl::Status SetNote(std::string_view name, const std::string& text) override;
  absl::StatusOr<bool> Used() override;
  absl::Status StartBehind(const LedgerStart& start) override;
  absl::StatusOr<absl::flat_hash_map<std::string, LedgerRow>> FindRows(
      std::span<const std::string> serials) override;
  absl::Status InsertRows(std::span<const LedgerRow* const> rows) override;
  absl::Status UpdateRow(const LedgerRow& row) override;
  absl::Status HoldMember(const std::string& serial, const std::string& fields) override;
  absl::Status UnholdMember(const std::string& serial) override;
  absl::StatusOr<std::vector<HeldRow>> HeldRows(int64_t after_inbox_id,
                                                const std::string& after_serial,
                                                int64_t limit) override;
  absl::Status ForFileRows(int64_t inbox_id,
                           const std::function<absl::Status(const LedgerRow&)>& row) override;
  absl::StatusOr<std::vector<InboxFileRow>> OpenFiles() override;
  absl::StatusOr<int64_t> RegisterFile(const InboxFileRow& file) override;
  absl::Status SetStoredName(int64_t id, const std::string& stored_name) override;
  absl::Status MarkFailing(int64_t id) override;
  absl::Status CloseFile(int64_t id) override;
  absl::StatusOr<std::vector<InboxFileRow>> ClosedFiles(int64_t before_ms, int64_t limit) override;
  absl::Status ForgetFile(int64_t id) override;
  absl::StatusOr<std::vector<std::string>> DecidedFiles() override;
  absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> NextPeriods() override;
  absl::Status SetNextPeriod(const std::string& partner, int64_t period_ms) override;
  absl::StatusOr<int64_t> NewBillSerial() override;
  absl::Status InsertBill(const BillRow& bill) override;
  absl::Status UpdateBill(const BillRow& bill) override;
  absl::StatusOr<std::vector<BillRow>> Bills(BillKind kind, BillState state) override;
  absl::StatusOr<std::optional<BillRow>> FindBill(int64_t serial) override;
  absl::StatusOr<std::optional<BillRow>> FindPeriod(const std::string& partner, int64_t period_ms,
                                                    BillKind kind) override;
  absl::StatusOr<std::vector<BillRow>> WrittenBills(int64_t before_ms, int64_t limit) override;
  absl::Status ForgetBill(int64_t serial) override;
  absl::Status ForBillRows(int64_t serial,
                           const std::function<absl::Status(const LedgerRow&)>& row) override;
  absl::StatusOr<bool> HasAdjustment(const std::string& serial) override;
  absl::Status InsertAdjustment(const AdjustmentRow& adjustment) override;
  absl::StatusOr<std::vector<std::string>> PartnersToAdjust() override;
  absl::Status AssignAdjustments(const std::string& partner, int64_t serial) override;
  absl::Status ForAdjustments(
      int64_t serial, const std::function<absl::Status(const AdjustmentRow&)>& row) override;
  absl::StatusOr<int64_t> PurgeLine() override;
  absl::StatusOr<int64_t> Purge(int64_t line_ms) override;
  absl::Status ForgetAdjustments(int64_t before_ms) override;

 private:
  static constexpr int kSchemaVersion = 1;

  // Runs `body` and turns SOCI's exceptions into errors. get_error_message leaves out the values
  // that what() would show.
  template <typename Body>
  absl::Status Guard(std::string_view action, Body&& body) {
    try {
      std::forward<Body>(body)();
      return absl::OkStatus();
    } catch (const soci::soci_error& error) {
      return LedgerError(connection_, action, error.get_error_message());
    } catch (const std::exception& error) {
      return Internal("{}: {}: {}", connection_, action, error.what());
    }
  }
  absl::StatusOr<bool> HasSchema();
  absl::Status CreateSchema();
  void CreateTables();
  absl::Status ForRows(const std::string& where,
                       const std::function<absl::Status(const LedgerRow&)>& row);
  // The bills that `where` selects, in the order of serials.
  absl::StatusOr<std::vector<BillRow>> SelectBills(const std::string& where);
  absl::StatusOr<std::vector<InboxFileRow>> SelectFiles(const std::string& where);

  const LedgerDialect& dialect_;
  const std::string connection_;
  soci::session session_;
};

}  // namespace firstseen
