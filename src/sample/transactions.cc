#include "sample/transactions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/time_text.h"
#include "sample/output.h"

namespace firstseen::sample {
namespace {

constexpr int kPeriods = 288;  // of five minutes, from noon to noon
constexpr int kQuietPeriod = 190;
constexpr int kMidnightPeriod = 144;  // the first of 2024
constexpr int kNdjsonEvery = 24;      // periods
constexpr int64_t kPeriodMs = 300'000;
constexpr int64_t kLateMsMax = 600'000;
constexpr int kLateReversalPeriods = 12;  // an hour after its bill file, at the least
constexpr uint64_t kRecent = 200;         // transactions, people

enum class Outcome { kBillable, kDuplicate, kNotCounting, kReversed };
constexpr std::string_view kOutcomes[] = {"billable", "duplicate", "not_counting", "reversed"};

struct Transaction {
  int64_t event_ms = 0;
  int64_t cents = 0;
  uint64_t person = 0;
  std::string name;  // as written: a retry repeats it byte by byte
  std::string id_number;
  int period = 0;  // in whose file it arrived
  int app = 0;
  bool failed = false;
  bool adjusted = false;  // reversed long after its bill file
  Outcome outcome = Outcome::kBillable;
};

class Writer {
 public:
  Writer(const GenerateOptions& options, const People& people, GenerateTotals* totals)
      : options_(options),
        people_(people),
        totals_(totals),
        random_(options.seed ^ 0x747261646573ull),
        zone_(absl::FixedTimeZone(8 * 3600)),
        start_ms_(absl::ToUnixMillis(absl::FromCivil(absl::CivilHour(2023, 12, 31, 12), zone_))),
        known_people_(totals->history_members + totals->gap_new_members),
        next_person_(known_people_) {}

  absl::Status WriteFiles(GenerateProgress progress);
  absl::Status WriteTruth();

 private:
  struct Reversal {
    size_t transaction;
    uint64_t row;  // of the file, at the latest
  };

  absl::Status WriteFile(int period, uint64_t rows);
  void AppendRow(int period, uint64_t row, uint64_t rows);
  void AppendNew(int period, uint64_t row, uint64_t rows);
  bool AppendRetry();
  bool AppendLateReversal(int period, int64_t now_ms);
  uint64_t PickPerson();
  void Judge(Transaction* transaction);
  void Reverse(size_t index, int64_t now_ms);
  void AppendText(size_t index, int64_t event_ms, std::string_view status);
  void Release(const Transaction& transaction);
  static uint64_t ClaimKey(uint64_t person, bool year_2024) { return person * 2 + year_2024; }
  bool In2024(const Transaction& t) const {
    return t.event_ms >= start_ms_ + kMidnightPeriod * kPeriodMs;
  }
  std::string Serial(size_t index) const { return fmt::format("2023123190{:010}", index); }

  const GenerateOptions& options_;
  const People& people_;
  GenerateTotals* totals_;
  Random random_;
  absl::TimeZone zone_;
  int64_t start_ms_;
  uint64_t known_people_;
  uint64_t next_person_;
  std::vector<Transaction> transactions_;
  std::vector<size_t> retriable_;          // neither reversed nor going to be
  std::vector<uint64_t> seen_;             // people in transactions so far
  std::vector<Reversal> pending_;          // in this file, oldest first
  absl::flat_hash_set<uint64_t> claimed_;  // ClaimKey
  bool ndjson_ = false;                    // the file in hand
  std::string text_;                       // its content
};

absl::Status Writer::WriteFiles(GenerateProgress progress) {
  uint64_t done = 0;
  for (int period = 0; period < kPeriods; ++period) {
    if (period == kQuietPeriod) continue;
    const int later = kPeriods - period - (period < kQuietPeriod ? 1 : 0);
    const uint64_t rows = (options_.transactions - done) / later;
    RETURN_IF_ERROR(WriteFile(period, rows));
    done += rows;
    progress(options_.history_rows + done, options_.history_rows + options_.transactions);
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteFile(int period, uint64_t rows) {
  ndjson_ = period % kNdjsonEvery == 0;
  const absl::CivilMinute arrival =
      absl::ToCivilMinute(absl::FromUnixMillis(start_ms_ + period * kPeriodMs), zone_);
  const std::string path = fmt::format(
      "{}/transactions/{:04}-{:02}-{:02}/transactions-{:04}{:02}{:02}-{:02}{:02}.{}", options_.out,
      arrival.year(), arrival.month(), arrival.day(), arrival.year(), arrival.month(),
      arrival.day(), arrival.hour(), arrival.minute(), ndjson_ ? "ndjson" : "txt");
  if (!ndjson_) text_ = "biz_seq_no|order_no|app_id|event_time|amount|status|name|id_no\n";
  for (uint64_t row = 0; row < rows; ++row) AppendRow(period, row, rows);
  ASSIGN_OR_RETURN(Output output, Output::Create(options_.files, path));
  output.text().swap(text_);
  ++totals_->transaction_files;
  totals_->transaction_rows += rows;
  return output.Flush();
}

void Writer::AppendRow(int period, uint64_t row, uint64_t rows) {
  const int64_t now_ms =
      start_ms_ + period * kPeriodMs + static_cast<int64_t>(kPeriodMs * row / rows);
  if (!pending_.empty() && (pending_.front().row <= row || pending_.size() >= rows - row)) {
    const size_t index = pending_.front().transaction;
    pending_.erase(pending_.begin());
    Reverse(index, now_ms);
    return;
  }
  const uint64_t kind = random_.Below(1000);
  if (kind < 30 && AppendRetry()) return;
  if (kind >= 30 && kind < 35 && AppendLateReversal(period, now_ms)) return;
  AppendNew(period, row, rows);
}

void Writer::AppendNew(int period, uint64_t row, uint64_t rows) {
  // The last second of the year and the first of the next, by the same person, and both count.
  const bool year_end = period == kMidnightPeriod - 1 && row == rows - 1;
  const bool new_year = period == kMidnightPeriod && row == 0;
  const uint64_t app = random_.Below(10);
  Transaction t;
  t.period = period;
  t.app = year_end || new_year ? 0 : app < 6 ? 0 : app < 9 ? 1 : 2;
  t.cents = 1 + static_cast<int64_t>(random_.Below(50'000));
  t.failed = !year_end && !new_year && random_.Chance(20'000);
  const int64_t delay = random_.Chance(20'000) ? random_.Below(kLateMsMax) : random_.Below(900);
  const int64_t now_ms =
      start_ms_ + period * kPeriodMs + static_cast<int64_t>(kPeriodMs * row / rows);
  t.event_ms = std::max(now_ms - delay, start_ms_);
  if (year_end) t.event_ms = start_ms_ + kMidnightPeriod * kPeriodMs - 1;
  if (new_year) t.event_ms = start_ms_ + kMidnightPeriod * kPeriodMs;
  const bool reverse = !t.failed && !year_end && !new_year && rows - row > pending_.size() + 2 &&
                       random_.Chance(10'000);
  // Nobody else's row may come between a claim and its release: a new person, known to nobody yet.
  t.person = reverse || year_end ? next_person_++ : new_year ? seen_.back() : PickPerson();
  Person person;
  people_.Get(t.person, &person);
  AppendName(person.name, random_, &t.name);
  AppendIdNumber(person.id_number, random_, &t.id_number);
  Judge(&t);
  const size_t index = transactions_.size();
  transactions_.push_back(std::move(t));
  if (reverse) {
    pending_.push_back({index, row + 1 + random_.Below(20)});
  } else {
    retriable_.push_back(index);
    seen_.push_back(transactions_[index].person);
  }
  const Transaction& written = transactions_[index];
  AppendText(index, written.event_ms, written.failed ? "FAILED" : "SUCCESS");
}

uint64_t Writer::PickPerson() {
  const uint64_t kind = random_.Below(100);
  if (kind < 25 && known_people_ > 0) return random_.Below(known_people_);
  if (kind < 45 && !seen_.empty()) return seen_[random_.Below(seen_.size())];
  if (kind < 50 && !seen_.empty()) {
    return seen_[seen_.size() - 1 - random_.Below(std::min(kRecent, uint64_t{seen_.size()}))];
  }
  return next_person_++;
}

// What the bill must say, from the numbers of people alone.
void Writer::Judge(Transaction* t) {
  if (t->failed) {
    t->outcome = Outcome::kNotCounting;
  } else if (t->app == 2) {
    t->outcome = Outcome::kBillable;
  } else if ((!In2024(*t) && t->person < known_people_) ||
             !claimed_.insert(ClaimKey(t->person, In2024(*t))).second) {
    t->outcome = Outcome::kDuplicate;
  }
}

bool Writer::AppendRetry() {
  if (retriable_.empty()) return false;
  const size_t back = random_.Below(std::min(kRecent, uint64_t{retriable_.size()}));
  const size_t index = retriable_[retriable_.size() - 1 - back];
  const Transaction& t = transactions_[index];
  if (t.adjusted) return false;
  AppendText(index, t.event_ms, t.failed ? "FAILED" : "SUCCESS");
  return true;
}

bool Writer::AppendLateReversal(int period, int64_t now_ms) {
  // Only next year's files reverse last year's transactions, which are billed whether files are
  // closed as they come or a day at a time.
  if (period < kMidnightPeriod + kLateReversalPeriods || retriable_.empty()) return false;
  const size_t index = retriable_[random_.Below(retriable_.size())];
  Transaction& t = transactions_[index];
  if (t.period >= kMidnightPeriod - 1 || t.adjusted || t.outcome != Outcome::kBillable) {
    return false;
  }
  t.adjusted = true;
  AppendText(index, now_ms, "REVERSED");
  return true;
}

void Writer::Reverse(size_t index, int64_t now_ms) {
  Transaction& t = transactions_[index];
  if (t.app != 2) claimed_.erase(ClaimKey(t.person, In2024(t)));
  t.outcome = Outcome::kReversed;
  seen_.push_back(t.person);
  AppendText(index, now_ms, "REVERSED");
}

void Writer::AppendText(size_t index, int64_t event_ms, std::string_view status) {
  const Transaction& t = transactions_[index];
  const std::string order = fmt::format("O{:011}", Mix(index) % 100'000'000'000);
  const std::string time = FormatEventTime(absl::FromUnixMillis(event_ms), zone_);
  const std::string amount = fmt::format("{}.{:02}", t.cents / 100, t.cents % 100);
  if (ndjson_) {
    const nlohmann::ordered_json row = {{"biz_seq_no", Serial(index)},
                                        {"order_no", order},
                                        {"app_id", kApps[t.app]},
                                        {"event_time", time},
                                        {"amount", amount},
                                        {"status", status},
                                        {"name", t.name},
                                        {"id_no", t.id_number}};
    text_ += row.dump() + "\n";
    return;
  }
  fmt::format_to(std::back_inserter(text_), "{}|{}|{}|{}|{}|{}|{}|{}\n", Serial(index), order,
                 kApps[t.app], time, amount, status, t.name, t.id_number);
}

absl::Status Writer::WriteTruth() {
  ASSIGN_OR_RETURN(Output output, Output::Create(options_.files, options_.out + "/truth.csv"));
  output.text() = "biz_seq_no,app_id,window,outcome,adjusted,amount\n";
  for (size_t i = 0; i < transactions_.size(); ++i) {
    const Transaction& t = transactions_[i];
    fmt::format_to(
        std::back_inserter(output.text()), "{},{},{},{},{},{}.{:02}\n", Serial(i), kApps[t.app],
        t.app == 2  ? "none"
        : In2024(t) ? "2024"
                    : "2023",
        kOutcomes[static_cast<int>(t.outcome)], t.adjusted ? 1 : 0, t.cents / 100, t.cents % 100);
    RETURN_IF_ERROR(output.FlushIfFull());
    totals_->duplicates += t.outcome == Outcome::kDuplicate;
    totals_->not_counting += t.outcome == Outcome::kNotCounting;
    totals_->reversed += t.outcome == Outcome::kReversed;
    totals_->adjustments += t.adjusted;
    if (t.outcome == Outcome::kBillable) {
      ++totals_->billable;
      totals_->billable_cents += t.cents;
    }
  }
  totals_->serials = transactions_.size();
  totals_->members_2023 = known_people_;
  for (const uint64_t key : claimed_) {
    ++(key % 2 == 0 ? totals_->members_2023 : totals_->members_2024);
  }
  return output.Flush();
}

}  // namespace

absl::Status WriteTransactions(const GenerateOptions& options, const People& people,
                               GenerateProgress progress, GenerateTotals* totals) {
  for (const char* directory :
       {"/transactions", "/transactions/2023-12-31", "/transactions/2024-01-01"}) {
    RETURN_IF_ERROR(options.files->CreateDirectory(options.out + directory));
  }
  Writer writer(options, people, totals);
  RETURN_IF_ERROR(writer.WriteFiles(progress));
  return writer.WriteTruth();
}

}  // namespace firstseen::sample
