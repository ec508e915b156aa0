// The ledger: an SQL table of transactions with their dedup result, and beside it the files they
// came in and the bill files they go to. SQLite (WAL, synchronous=FULL) through SOCI.
//
//   transactions   one row a transaction; unique by serial. Never amounts as floating point, and
//                  nothing personal but ledger.keep_columns, and the member of rows being held
//   held_members   the member's fields of a held row, until it is decided
//   inbox_files    each file taken: open until it is moved away
//   partners       next period to close
//   bills          each bill, adjustments and resent file: open, closed (rows frozen), written
//   adjustments    reversals of transactions that were in a bill file already
//   counters       schema version, next bill serial, purge line; notes: secret of the content
//                  hashes, id of the ledger, settings it was begun with
//
// What differs between databases is in ledger_dialect.h. All methods may be called only by one
// thread at a time; several processes may have the ledger open. Errors name the database, the
// action and the remedy: ResourceExhausted (disk full), DataLoss (not a database, damaged),
// Unavailable (anything else); the database's own text, without values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace firstseen {

enum class RowState : int {
  kDecided = 0,        // origin tells the result
  kNotCounting = 1,    // by its status; a later row of the serial that counts replaces it
  kHeld = 2,           // window closed: waits
  kReversed = 3,       // taken back before its bill file was closed: in no bill file
  kReversedFirst = 4,  // the reversal came before the transaction
};

// Why origin is what it is. The first four are Verdict's.
enum class LedgerVerdict : int {
  kFirst = 0,
  kDuplicate = 1,
  kRepeat = 2,
  kClosed = 3,
  kNoSet = 4,  // the rule has no set
  kNone = 5,   // nothing was claimed
};

inline constexpr int kOriginBillable = 0;
inline constexpr int kOriginDuplicate = 5;
inline constexpr int kOriginNone = -1;  // NULL in the table

struct LedgerRow {
  std::string serial;
  std::string order_no;
  std::string app_id;
  std::string partner;
  int64_t event_ms = 0;  // since 1970
  std::string amount;    // exact decimal
  std::string status;
  RowState state = RowState::kDecided;
  int origin = kOriginNone;
  LedgerVerdict verdict = LedgerVerdict::kNone;
  int64_t claim_sequence = 0;
  std::string set;
  int64_t window = 0;
  int64_t bill_serial = 0;  // 0 = none
  int64_t inbox_id = 0;
  std::string content;  // keyed hash of what a retry must repeat; see ContentHasher
  std::string member;   // keyed hash of the normalised member
  std::string kept;     // JSON array of ledger.keep_columns
};

struct InboxFileRow {
  int64_t id = 0;
  std::string name;         // in the inbox
  std::string stored_name;  // in done/ and failed/
  int64_t seen_ms = 0;      // when it was first seen
  bool failing = false;     // unreadable as a whole: on its way to failed/
};

enum class BillKind : int { kBill = 0, kAdjustments = 1, kResend = 2 };
enum class BillState : int { kOpen = 0, kClosed = 1, kWritten = 2 };

struct BillRow {
  int64_t serial = 0;
  BillKind kind = BillKind::kBill;
  std::string partner;
  int64_t period_ms = 0;  // its start
  BillState state = BillState::kOpen;
  std::string file;  // below bills.directory, once closed
  int64_t rows = 0;  // this and what follows once written
  std::string total;
  std::string sha256;
  int64_t original = 0;    // of a resent file
  int64_t written_ms = 0;  // by the clock of the run that wrote it; its retention counts from here
};

struct AdjustmentRow {
  LedgerRow row;  // as it was billed, bill_serial included
  int64_t reversed_ms = 0;
  std::string reversal_status;
};

// Where a ledger that is begun beside older bills goes on.
struct LedgerStart {
  int64_t bill_serial = 0;                                 // the last one used
  int64_t inbox_id = 0;                                    // likewise
  int64_t purge_line_ms = 0;                               // events before it may be billed already
  absl::flat_hash_map<std::string, int64_t> next_periods;  // by partner
};

inline constexpr std::string_view kLedgerIdNote = "ledger_id";

enum class LedgerOpen {
  kExisting,  // NotFound when there is none, or an empty file
  kCreate,    // made when it is not there
};

class Ledger {
 public:
  virtual ~Ledger() = default;
  static absl::StatusOr<std::unique_ptr<Ledger>> Open(FileSystem* files,
                                                      const std::string& connection,
                                                      LedgerOpen mode);

  // One SQL transaction around `body`: committed durably when it returns OK, else rolled back.
  virtual absl::Status Transact(const std::function<absl::Status()>& body) = 0;

  // 32 random hexadecimal digits, made with the ledger.
  virtual absl::StatusOr<std::string> Secret() = 0;

  // A short text kept under a name; 32 random hexadecimal digits under kLedgerIdNote.
  virtual absl::StatusOr<std::optional<std::string>> Note(std::string_view name) = 0;
  virtual absl::Status SetNote(std::string_view name, const std::string& text) = 0;
  // Whether any file was taken or any bill begun.
  virtual absl::StatusOr<bool> Used() = 0;
  // Of a ledger not used yet; durable when it returns.
  virtual absl::Status StartBehind(const LedgerStart& start) = 0;

  // Rows whose serial is among `serials`, by serial.
  virtual absl::StatusOr<absl::flat_hash_map<std::string, LedgerRow>> FindRows(
      std::span<const std::string> serials) = 0;
  // The following four, inside Transact.
  virtual absl::Status InsertRows(std::span<const LedgerRow* const> rows) = 0;
  virtual absl::Status UpdateRow(const LedgerRow& row) = 0;  // all but the serial
  // `fields` as PackFields writes them.
  virtual absl::Status HoldMember(const std::string& serial, const std::string& fields) = 0;
  virtual absl::Status UnholdMember(const std::string& serial) = 0;
  struct HeldRow {
    LedgerRow row;
    std::string fields;
  };
  virtual absl::StatusOr<std::vector<HeldRow>> HeldRows(int64_t after_inbox_id,
                                                        const std::string& after_serial,
                                                        int64_t limit) = 0;

  // The rows that file `inbox_id` decided, in no order. Reads the whole table.
  virtual absl::Status ForFileRows(int64_t inbox_id,
                                   const std::function<absl::Status(const LedgerRow&)>& row) = 0;

  // Files. Ids ascend in the order of registration.
  virtual absl::StatusOr<std::vector<InboxFileRow>> OpenFiles() = 0;
  virtual absl::StatusOr<int64_t> RegisterFile(const InboxFileRow& file) = 0;  // in Transact
  virtual absl::Status SetStoredName(int64_t id, const std::string& stored_name) = 0;
  virtual absl::Status MarkFailing(int64_t id) = 0;
  virtual absl::Status CloseFile(int64_t id) = 0;
  // Files closed whose seen_ms is below `before_ms`, at most `limit`.
  virtual absl::StatusOr<std::vector<InboxFileRow>> ClosedFiles(int64_t before_ms,
                                                                int64_t limit) = 0;
  virtual absl::Status ForgetFile(int64_t id) = 0;
  // Stored names of all files closed and not forgotten that have a decision file.
  virtual absl::StatusOr<std::vector<std::string>> DecidedFiles() = 0;

  // Periods and bills.
  virtual absl::StatusOr<absl::flat_hash_map<std::string, int64_t>> NextPeriods() = 0;
  virtual absl::Status SetNextPeriod(const std::string& partner, int64_t period_ms) = 0;
  virtual absl::StatusOr<int64_t> NewBillSerial() = 0;  // in Transact
  virtual absl::Status InsertBill(const BillRow& bill) = 0;
  virtual absl::Status UpdateBill(const BillRow& bill) = 0;
  virtual absl::StatusOr<std::vector<BillRow>> Bills(BillKind kind, BillState state) = 0;
  virtual absl::StatusOr<std::optional<BillRow>> FindBill(int64_t serial) = 0;
  virtual absl::StatusOr<std::optional<BillRow>> FindPeriod(const std::string& partner,
                                                            int64_t period_ms, BillKind kind) = 0;
  // Those that were written before `before_ms`, at most `limit`.
  virtual absl::StatusOr<std::vector<BillRow>> WrittenBills(int64_t before_ms, int64_t limit) = 0;
  virtual absl::Status ForgetBill(int64_t serial) = 0;
  // The rows of a bill file, by event time, then serial.
  virtual absl::Status ForBillRows(int64_t serial,
                                   const std::function<absl::Status(const LedgerRow&)>& row) = 0;

  // Adjustments.
  virtual absl::StatusOr<bool> HasAdjustment(const std::string& serial) = 0;
  virtual absl::Status InsertAdjustment(const AdjustmentRow& adjustment) = 0;
  // Partners with adjustments that are in no file yet.
  virtual absl::StatusOr<std::vector<std::string>> PartnersToAdjust() = 0;
  virtual absl::Status AssignAdjustments(const std::string& partner, int64_t serial) = 0;
  virtual absl::Status ForAdjustments(
      int64_t serial, const std::function<absl::Status(const AdjustmentRow&)>& row) = 0;

  // Events before this time may have been purged; 0 = nothing was.
  virtual absl::StatusOr<int64_t> PurgeLine() = 0;
  // Deletes rows before the line and moves it forward if there were any: duplicates and rows that
  // do not count, and billable ones whose bill file is written; none of an open inbox file. Returns
  // how many.
  virtual absl::StatusOr<int64_t> Purge(int64_t line_ms) = 0;
  virtual absl::Status ForgetAdjustments(int64_t before_ms) = 0;
};

}  // namespace firstseen
