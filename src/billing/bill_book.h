// Which bill file a transaction goes to: the open bills, and how far each partner's periods are
// closed. A view of the ledger in memory; after an error in a Transact it must be loaded again.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "billing/config.h"
#include "billing/ledger.h"

namespace firstseen {

class BillBook {
 public:
  BillBook(const BillingConfig& config, Ledger* ledger) : config_(config), ledger_(ledger) {}

  absl::Status Load();

  int64_t period_length_ms() const { return config_.bills.period_minutes * 60'000; }
  // Start of the period that the time is in.
  int64_t PeriodOf(int64_t ms) const;
  // Start of the period whose file a transaction goes to: its own, or the first open one.
  int64_t BillPeriod(const std::string& partner, int64_t event_ms) const;
  // The serial of the period's open bill, made if need be. Inside Ledger::Transact.
  absl::StatusOr<int64_t> OpenBill(const std::string& partner, int64_t period_ms);
  bool IsOpen(int64_t serial) const { return open_serials_.contains(serial); }
  // Period of a bill that is open or was closed by this process; else read from the ledger.
  absl::StatusOr<int64_t> PeriodOfBill(int64_t serial);

  // First period that is not closed; nullopt before any was closed and nothing is configured.
  std::optional<int64_t> NextPeriod(const std::string& partner) const;
  // Open bills of the partner by period.
  const std::map<int64_t, int64_t>& OpenBills(const std::string& partner) { return open_[partner]; }
  // Notes that the bill was closed / the periods before `period_ms` are.
  void Close(const std::string& partner, int64_t period_ms);
  absl::Status Advance(const std::string& partner, int64_t period_ms);

  // Events before this time are too old: the ledger may have forgotten them. Counted from the last
  // period that any partner has closed.
  int64_t TooOldBefore() const;
  // Whether any row was purged so far.
  bool purged() const { return purge_line_ms_ > 0; }
  void set_purge_line(int64_t line_ms) { purge_line_ms_ = line_ms; }

 private:
  static constexpr size_t kPeriodsMax = 100'000;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

  const BillingConfig& config_;
  Ledger* ledger_;
  absl::flat_hash_map<std::string, int64_t> next_period_;
  absl::flat_hash_map<std::string, std::map<int64_t, int64_t>> open_;
  absl::flat_hash_set<int64_t> open_serials_;
  absl::flat_hash_map<int64_t, int64_t> periods_;  // of serials met so far
  int64_t purge_line_ms_ = 0;
};

}  // namespace firstseen
