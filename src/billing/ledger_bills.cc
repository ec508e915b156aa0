#include "billing/ledger_sql.h"

namespace firstseen {

using soci::into;
using soci::use;

absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> SqlLedger::NextPeriods() {
  absl::flat_hash_map<std::string, int64_t> next;
  RETURN_IF_ERROR(Guard("look up periods", [&] {
    std::string partner;
    long long period_ms = 0;
    soci::statement statement = (session_.prepare << "SELECT partner, next_period_ms FROM partners",
                                 into(partner), into(period_ms));
    statement.execute();
    while (statement.fetch()) next[partner] = period_ms;
  }));
  return next;
}

absl::Status SqlLedger::SetNextPeriod(const std::string& partner, int64_t period_ms) {
  return Guard("set a period", [&] {
    const long long period = period_ms;
    soci::statement update =
        (session_.prepare << "UPDATE partners SET next_period_ms = :t WHERE partner = :p",
         use(period), use(partner));
    update.execute(true);
    if (update.get_affected_rows() > 0) return;
    session_ << "INSERT INTO partners (partner, next_period_ms) VALUES (:p, :t)", use(partner),
        use(period);
  });
}

absl::StatusOr<int64_t> SqlLedger::NewBillSerial() {
  long long serial = 0;
  RETURN_IF_ERROR(Guard("number a bill", [&] {
    session_ << "UPDATE counters SET value = value + 1 WHERE name = 'bill_serial'";
    session_ << "SELECT value FROM counters WHERE name = 'bill_serial'", into(serial);
  }));
  return serial;
}

absl::Status SqlLedger::InsertBill(const BillRow& bill) {
  return Guard("insert a bill", [&] {
    const long long serial = bill.serial;
    const int kind = static_cast<int>(bill.kind);
    const long long period = bill.period_ms;
    const int state = static_cast<int>(bill.state);
    const long long rows = bill.rows;
    const long long original = bill.original;
    const long long written = bill.written_ms;
    session_
        << "INSERT INTO bills (serial, kind, partner, period_ms, state, file_name, row_count, "
           "total, sha256, original, written_ms) VALUES (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, "
           ":k)",
        use(serial), use(kind), use(bill.partner), use(period), use(state), use(bill.file),
        use(rows), use(bill.total), use(bill.sha256), use(original), use(written);
  });
}

absl::Status SqlLedger::UpdateBill(const BillRow& bill) {
  return Guard("update a bill", [&] {
    const long long serial = bill.serial;
    const int state = static_cast<int>(bill.state);
    const long long rows = bill.rows;
    const long long written = bill.written_ms;
    session_ << "UPDATE bills SET state = :e, file_name = :f, row_count = :g, total = :h, "
                "sha256 = :i, written_ms = :j WHERE serial = :a",
        use(state), use(bill.file), use(rows), use(bill.total), use(bill.sha256), use(written),
        use(serial);
  });
}

absl::StatusOr<std::vector<BillRow>> SqlLedger::SelectBills(const std::string& where) {
  std::vector<BillRow> found;
  RETURN_IF_ERROR(Guard("look up bills", [&] {
    BillRow bill;
    long long serial = 0, period = 0, rows = 0, original = 0, written = 0;
    int kind = 0, state = 0;
    soci::statement statement =
        (session_.prepare << "SELECT serial, kind, partner, period_ms, state, file_name, "
                             "row_count, total, sha256, original, written_ms FROM bills WHERE "
                          << where,
         into(serial), into(kind), into(bill.partner), into(period), into(state), into(bill.file),
         into(rows), into(bill.total), into(bill.sha256), into(original), into(written));
    statement.execute();
    while (statement.fetch()) {
      bill.serial = serial;
      bill.kind = static_cast<BillKind>(kind);
      bill.period_ms = period;
      bill.state = static_cast<BillState>(state);
      bill.rows = rows;
      bill.original = original;
      bill.written_ms = written;
      found.push_back(bill);
    }
  }));
  return found;
}

absl::StatusOr<std::vector<BillRow>> SqlLedger::Bills(BillKind kind, BillState state) {
  return SelectBills(fmt::format("state = {} AND kind = {} ORDER BY period_ms, serial",
                                 static_cast<int>(state), static_cast<int>(kind)));
}

absl::StatusOr<std::optional<BillRow>> SqlLedger::FindBill(int64_t serial) {
  ASSIGN_OR_RETURN(std::vector<BillRow> found, SelectBills(fmt::format("serial = {}", serial)));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

absl::StatusOr<std::optional<BillRow>> SqlLedger::FindPeriod(const std::string& partner,
                                                             int64_t period_ms, BillKind kind) {
  ASSIGN_OR_RETURN(std::vector<BillRow> found,
                   SelectBills(fmt::format("period_ms = {} AND kind = {} ORDER BY serial",
                                           period_ms, static_cast<int>(kind))));
  for (BillRow& bill : found) {
    if (bill.partner == partner) return std::move(bill);
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<BillRow>> SqlLedger::WrittenBills(int64_t before_ms, int64_t limit) {
  return SelectBills(fmt::format("state = {} AND written_ms < {} ORDER BY serial LIMIT {}",
                                 static_cast<int>(BillState::kWritten), before_ms, limit));
}

absl::Status SqlLedger::ForgetBill(int64_t serial) {
  return Guard("forget a bill", [&] {
    const long long key = serial;
    session_ << "DELETE FROM bills WHERE serial = :s", use(key);
  });
}

absl::Status SqlLedger::ForRows(const std::string& where,
                                const std::function<absl::Status(const LedgerRow&)>& row) {
  absl::Status status;
  RETURN_IF_ERROR(Guard("read transactions", [&] {
    FlatRow flat;
    auto prepared =
        (session_.prepare << "SELECT " << kRowColumns << " FROM transactions WHERE " << where);
    soci::statement statement = IntoRow(prepared, &flat);
    statement.execute();
    while (status.ok() && statement.fetch()) status = row(flat.Row());
  }));
  return status;
}

absl::Status SqlLedger::ForBillRows(int64_t serial,
                                    const std::function<absl::Status(const LedgerRow&)>& row) {
  return ForRows(fmt::format("bill_serial = {} AND state = {} AND origin = {} ORDER BY event_ms, "
                             "biz_seq_no",
                             serial, static_cast<int>(RowState::kDecided), kOriginBillable),
                 row);
}

absl::Status SqlLedger::ForFileRows(int64_t inbox_id,
                                    const std::function<absl::Status(const LedgerRow&)>& row) {
  return ForRows(fmt::format("inbox_id = {}", inbox_id), row);
}

absl::StatusOr<bool> SqlLedger::HasAdjustment(const std::string& serial) {
  int count = 0;
  RETURN_IF_ERROR(Guard("look up an adjustment", [&] {
    session_ << "SELECT COUNT(*) FROM adjustments WHERE biz_seq_no = :s", use(serial), into(count);
  }));
  return count > 0;
}

absl::Status SqlLedger::InsertAdjustment(const AdjustmentRow& adjustment) {
  return Guard("insert an adjustment", [&] {
    const LedgerRow& row = adjustment.row;
    const long long event_ms = row.event_ms;
    const long long bill_serial = row.bill_serial;
    const long long window = row.window;
    const long long sequence = row.claim_sequence;
    const long long reversed_ms = adjustment.reversed_ms;
    session_ << "INSERT INTO adjustments (biz_seq_no, order_no, app_id, partner, event_ms, amount, "
                "status, bill_serial, window_id, claim_sequence, kept, reversed_ms, file_serial) "
                "VALUES (:a, :b, :c, :d, :e, :f, :g, :h, :i, :j, :k, :l, 0)",
        use(row.serial), use(row.order_no), use(row.app_id), use(row.partner), use(event_ms),
        use(row.amount), use(adjustment.reversal_status), use(bill_serial), use(window),
        use(sequence), use(row.kept), use(reversed_ms);
  });
}

absl::StatusOr<std::vector<std::string>> SqlLedger::PartnersToAdjust() {
  std::vector<std::string> partners;
  RETURN_IF_ERROR(Guard("look up adjustments", [&] {
    std::string partner;
    soci::statement statement = (session_.prepare << "SELECT DISTINCT partner FROM adjustments "
                                                     "WHERE file_serial = 0 ORDER BY partner",
                                 into(partner));
    statement.execute();
    while (statement.fetch()) partners.push_back(partner);
  }));
  return partners;
}

absl::Status SqlLedger::AssignAdjustments(const std::string& partner, int64_t serial) {
  return Guard("assign adjustments", [&] {
    const long long file = serial;
    session_ << "UPDATE adjustments SET file_serial = :f WHERE file_serial = 0 AND partner = :p",
        use(file), use(partner);
  });
}

absl::Status SqlLedger::ForAdjustments(
    int64_t serial, const std::function<absl::Status(const AdjustmentRow&)>& row) {
  absl::Status status;
  RETURN_IF_ERROR(Guard("read adjustments", [&] {
    AdjustmentRow next;
    const long long file = serial;
    long long event_ms = 0, bill_serial = 0, window = 0, sequence = 0, reversed_ms = 0;
    soci::statement statement =
        (session_.prepare << "SELECT biz_seq_no, order_no, app_id, partner, event_ms, amount, "
                             "status, bill_serial, window_id, claim_sequence, kept, reversed_ms "
                             "FROM adjustments WHERE file_serial = :f ORDER BY event_ms, "
                             "biz_seq_no",
         use(file), into(next.row.serial), into(next.row.order_no), into(next.row.app_id),
         into(next.row.partner), into(event_ms), into(next.row.amount), into(next.reversal_status),
         into(bill_serial), into(window), into(sequence), into(next.row.kept), into(reversed_ms));
    statement.execute();
    while (status.ok() && statement.fetch()) {
      next.row.event_ms = event_ms;
      next.row.bill_serial = bill_serial;
      next.row.window = window;
      next.row.claim_sequence = sequence;
      next.row.status = next.reversal_status;
      next.reversed_ms = reversed_ms;
      status = row(next);
    }
  }));
  return status;
}

absl::StatusOr<int64_t> SqlLedger::PurgeLine() {
  long long line_ms = 0;
  RETURN_IF_ERROR(Guard("read", [&] {
    session_ << "SELECT value FROM counters WHERE name = 'purge_line_ms'", into(line_ms);
  }));
  return line_ms;
}

absl::StatusOr<int64_t> SqlLedger::Purge(int64_t line_ms) {
  long long purged = 0;
  RETURN_IF_ERROR(Transact([&] {
    return Guard("purge", [&] {
      const long long line = line_ms;
      soci::statement statement =
          (session_.prepare
               << "DELETE FROM transactions WHERE event_ms < :v AND state <> "
               << static_cast<int>(RowState::kHeld)
               << " AND inbox_id NOT IN (SELECT id FROM inbox_files WHERE closed = 0) AND "
                  "(bill_serial = 0 OR bill_serial IN (SELECT serial FROM bills WHERE state = "
               << static_cast<int>(BillState::kWritten)
               << ") OR bill_serial NOT IN (SELECT serial FROM bills))",
           use(line));
      statement.execute(true);
      purged = statement.get_affected_rows();
      if (purged == 0) return;
      session_ << "UPDATE counters SET value = :v WHERE name = 'purge_line_ms' AND value < :w",
          use(line, "v"), use(line, "w");
    });
  }));
  return purged;
}

absl::Status SqlLedger::ForgetAdjustments(int64_t before_ms) {
  return Guard("purge adjustments", [&] {
    const long long before = before_ms;
    session_ << "DELETE FROM adjustments WHERE reversed_ms < :b AND file_serial IN (SELECT serial "
                "FROM bills WHERE state = "
             << static_cast<int>(BillState::kWritten) << ")",
        use(before);
  });
}

}  // namespace firstseen
