#include "billing/bill_book.h"

#include <algorithm>

#include "absl/time/time.h"
#include "base/status.h"

namespace firstseen {

absl::Status BillBook::Load() {
  open_.clear();
  open_serials_.clear();
  periods_.clear();
  ASSIGN_OR_RETURN(next_period_, ledger_->NextPeriods());
  ASSIGN_OR_RETURN(purge_line_ms_, ledger_->PurgeLine());
  ASSIGN_OR_RETURN(const std::vector<BillRow> bills,
                   ledger_->Bills(BillKind::kBill, BillState::kOpen));
  for (const BillRow& bill : bills) {
    open_[bill.partner][bill.period_ms] = bill.serial;
    open_serials_.insert(bill.serial);
    periods_[bill.serial] = bill.period_ms;
  }
  return absl::OkStatus();
}

int64_t BillBook::PeriodOf(int64_t ms) const {
  const int64_t length = period_length_ms();
  const int64_t rest = ms % length;
  return ms - rest - (rest < 0 ? length : 0);
}

std::optional<int64_t> BillBook::NextPeriod(const std::string& partner) const {
  const auto found = next_period_.find(partner);
  if (found != next_period_.end()) return found->second;
  if (config_.bills.first_period.has_value()) {
    return PeriodOf(absl::ToUnixMillis(*config_.bills.first_period));
  }
  return std::nullopt;
}

int64_t BillBook::BillPeriod(const std::string& partner, int64_t event_ms) const {
  return std::max(PeriodOf(event_ms), NextPeriod(partner).value_or(kNever));
}

absl::StatusOr<int64_t> BillBook::OpenBill(const std::string& partner, int64_t period_ms) {
  std::map<int64_t, int64_t>& open = open_[partner];
  const auto found = open.find(period_ms);
  if (found != open.end()) return found->second;
  BillRow bill;
  ASSIGN_OR_RETURN(bill.serial, ledger_->NewBillSerial());
  bill.partner = partner;
  bill.period_ms = period_ms;
  RETURN_IF_ERROR(ledger_->InsertBill(bill));
  open[period_ms] = bill.serial;
  open_serials_.insert(bill.serial);
  periods_[bill.serial] = period_ms;
  return bill.serial;
}

absl::StatusOr<int64_t> BillBook::PeriodOfBill(int64_t serial) {
  const auto found = periods_.find(serial);
  if (found != periods_.end()) return found->second;
  ASSIGN_OR_RETURN(const std::optional<BillRow> bill, ledger_->FindBill(serial));
  const int64_t period_ms = bill.has_value() ? bill->period_ms : 0;
  if (periods_.size() >= kPeriodsMax) {
    absl::erase_if(periods_, [this](const auto& known) { return !IsOpen(known.first); });
  }
  periods_[serial] = period_ms;
  return period_ms;
}

void BillBook::Close(const std::string& partner, int64_t period_ms) {
  std::map<int64_t, int64_t>& open = open_[partner];
  const auto found = open.find(period_ms);
  if (found == open.end()) return;
  open_serials_.erase(found->second);
  open.erase(found);
}

absl::Status BillBook::Advance(const std::string& partner, int64_t period_ms) {
  next_period_[partner] = period_ms;
  return ledger_->SetNextPeriod(partner, period_ms);
}

int64_t BillBook::TooOldBefore() const {
  int64_t line = purge_line_ms_ > 0 ? purge_line_ms_ : kNever;
  for (const auto& [partner, next_ms] : next_period_) {
    line = std::max(line, next_ms - config_.ledger.keep_days * 86'400'000);
  }
  return line;
}

}  // namespace firstseen
