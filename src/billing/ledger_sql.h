// The ledger on SOCI: private to ledger*.cc.
#pragma once

#include <soci/soci.h>

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "billing/ledger.h"
#include "billing/ledger_dialect.h"

namespace firstseen {

// Runs `body` and turns SOCI's exceptions into errors. get_error_message leaves out the values
// that what() would show.
template <typename Body>
absl::Status Guard(std::string_view action, Body&& body) {
  try {
    std::forward<Body>(body)();
    return absl::OkStatus();
  } catch (const soci::soci_error& error) {
    const std::string text = error.get_error_message();
    if (text.find("is full") != std::string::npos) {
      return ResourceExhausted("ledger: {}: {}", action, text);
    }
    return Unavailable("ledger: {}: {}", action, text);
  } catch (const std::exception& error) {
    return Internal("ledger: {}: {}", action, error.what());
  }
}

// The columns of `transactions` as SOCI reads and writes them.
struct FlatRow {
  std::string serial, order_no, app_id, partner, amount, status, set, content, member, kept;
  long long event_ms = 0, claim_sequence = 0, window = 0, bill_serial = 0, inbox_id = 0;
  int state = 0, origin = 0, verdict = 0;
  soci::indicator origin_indicator = soci::i_null;

  LedgerRow Row() const;
  void Set(const LedgerRow& row);
};

// In the order of FlatRow's use in IntoRow.
inline constexpr const char* kRowColumns =
    "biz_seq_no, order_no, app_id, partner, event_ms, amount, status, state, origin, verdict, "
    "claim_sequence, set_name, window_id, bill_serial, inbox_id, content, member, kept";

// `statement, into(...)...` for kRowColumns.
template <typename Prepared>
Prepared& IntoRow(Prepared& prepared, FlatRow* row) {
  prepared, soci::into(row->serial), soci::into(row->order_no), soci::into(row->app_id),
      soci::into(row->partner), soci::into(row->event_ms), soci::into(row->amount),
      soci::into(row->status), soci::into(row->state),
      soci::into(row->origin, row->origin_indicator), soci::into(row->verdict),
      soci::into(row->claim_sequence), soci::into(row->set), soci::into(row->window),
      soci::into(row->bill_serial), soci::into(row->inbox_id), soci::into(row->content),
      soci::into(row->member), soci::into(row->kept);
  return prepared;
}

class SqlLedger : public Ledger {
 public:
  explicit SqlLedger(const LedgerDialect& dialect) : dialect_(dialect) {}

  absl::Status Open(const std::string& connection);

  absl::Status Transact(const std::function<absl::Status()>& body) override;
  absl::StatusOr<std::string> Secret() override;
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

  absl::Status CreateSchema();
  void CreateTables();
  absl::Status ForRows(const std::string& where,
                       const std::function<absl::Status(const LedgerRow&)>& row);
  // The bills that `where` selects, in the order of serials.
  absl::StatusOr<std::vector<BillRow>> SelectBills(const std::string& where);
  absl::StatusOr<std::vector<InboxFileRow>> SelectFiles(const std::string& where);

  const LedgerDialect& dialect_;
  soci::session session_;
};

}  // namespace firstseen
