#include "billing/bill_run.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "billing/bill_book.h"
#include "billing/closing.h"
#include "billing/content_hash.h"
#include "billing/held.h"
#include "billing/inbox.h"
#include "billing/ledger.h"
#include "billing/ledger_tie.h"
#include "billing/retention.h"
#include "billing/run_context.h"
#include "store/embedded_store.h"
#include "store/set_options.h"

namespace firstseen {
namespace {

// Wall-clock time as `--now` says; the monotonic clock is the machine's.
class GivenClock : public Clock {
 public:
  explicit GivenClock(absl::Time now) : now_(now) {}
  absl::Time Now() const override { return now_; }
  int64_t MonotonicNanos() const override { return Clock::Real()->MonotonicNanos(); }

 private:
  const absl::Time now_;
};

absl::Status CheckSets(const BillingConfig& config, const Store& store) {
  for (const SetConfig& set : config.sets) {
    const absl::StatusOr<SetOptions> options = store.Options(set.name);
    if (!options.ok()) {
      if (!absl::IsNotFound(options.status())) return options.status();
      return InvalidArgument("set {}: {}; make it with `firstseen create`", set.name,
                             Message(options.status()));
    }
    SetOptions asked = *options;
    asked.window = set.options.window;
    asked.time_zone = set.options.time_zone;
    asked.fields = set.options.fields;
    asked.member_encoding = set.options.member_encoding;
    const std::string difference = DescribeDifference(*options, asked);
    if (!difference.empty()) {
      return InvalidArgument(
          "set {} is not what {} says in [[sets]]: {}; correct the configuration, or use a set "
          "that was created so",
          set.name, config.path, difference);
    }
  }
  return absl::OkStatus();
}

class BillingRun {
 public:
  BillingRun(const BillingConfig& config, const BillRunOptions& options)
      : config_(config),
        options_(options),
        given_clock_(options.now.value_or(absl::UnixEpoch())),
        clock_(options.now.has_value() ? &given_clock_ : Clock::Real()) {}

  absl::Status Open() {
    const std::string ledger_file =
        config_.ledger.connection.substr(config_.ledger.connection.find("://") + 3);
    ASSIGN_OR_RETURN(ledger_lock_, options_.files->Lock(ledger_file + ".lock", kHolder));
    EmbeddedStoreOptions store;
    store.directory = config_.store.data;
    store.key_file = config_.store.key_file;
    store.files = options_.files;
    store.clock = clock_;
    store.holder = kHolder;
    store.memory_bytes_max = config_.store.memory_bytes_max;
    store.owner_bytes_max = config_.store.owner_bytes_max;
    ASSIGN_OR_RETURN(store_, OpenEmbeddedStore(store));
    RETURN_IF_ERROR(CheckSets(config_, *store_));
    ASSIGN_OR_RETURN(ledger_, OpenRunLedger(config_, options_.files, options_.accept_ledger));
    ASSIGN_OR_RETURN(const std::string secret, ledger_->Secret());
    hasher_ = std::make_unique<ContentHasher>(config_, secret);
    book_ = std::make_unique<BillBook>(config_, ledger_.get());
    return book_->Load();
  }

  absl::Status Run() {
    const TransactionSchema schema(config_);
    const RunContext context{config_,       options_,      options_.files, clock_,
                             store_.get(),  ledger_.get(), book_.get(),    &schema,
                             hasher_.get(), &report_};
    Inbox inbox(context);
    Closing closing(context);
    RETURN_IF_ERROR(inbox.Recover());
    RETURN_IF_ERROR(RecoverHeldRows(context));
    RETURN_IF_ERROR(closing.Recover());
    while (true) {
      RETURN_IF_ERROR(Pass(context, &inbox, &closing));
      if (options_.once || Stopped()) return absl::OkStatus();
      Wait();
      if (Stopped()) return absl::OkStatus();
    }
  }

  absl::Status Close() { return store_->Close(); }
  const BillRunReport& report() const { return report_; }

 private:
  static constexpr std::string_view kHolder = "firstseen bill run";

  // The time is taken first: what is in the inbox by then is in the files closed now.
  absl::Status Pass(const RunContext& context, Inbox* inbox, Closing* closing) {
    const absl::Time now = clock_->Now();
    RETURN_IF_ERROR(RetryHeldRows(context, now));
    RETURN_IF_ERROR(inbox->TakeAll(now));
    if (Stopped()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const uint64_t closed, closing->CloseUntil(now));
    if (closed == 0 && !first_pass_) return absl::OkStatus();
    first_pass_ = false;
    return ApplyRetention(context, now);
  }

  bool Stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void Wait() const {
    constexpr int64_t kSliceMs = 20;
    for (int64_t waited_ms = 0; waited_ms < config_.inbox.poll_ms && !Stopped();
         waited_ms += kSliceMs) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kSliceMs));
    }
  }

  const BillingConfig& config_;
  const BillRunOptions& options_;
  const GivenClock given_clock_;
  const Clock* clock_;
  BillRunReport report_;
  bool first_pass_ = true;
  std::unique_ptr<FileLock> ledger_lock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<ContentHasher> hasher_;
  std::unique_ptr<BillBook> book_;
};

absl::Status CheckOptions(const BillRunOptions& options) {
  if (!options.now.has_value()) return absl::OkStatus();
  if (!options.once)
    return InvalidArgument("--now needs --once: a service has the machine's clock");
  // Periods would be closed for good until then.
  constexpr int64_t kAheadDaysMax = 400;
  if (*options.now > absl::Now() + absl::Hours(24 * kAheadDaysMax)) {
    return InvalidArgument("--now is more than {} days ahead of this machine's clock",
                           kAheadDaysMax);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BillRunReport> RunBilling(const BillingConfig& config,
                                         const BillRunOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const int64_t start_ns = Clock::Real()->MonotonicNanos();
  BillingRun run(config, options);
  RETURN_IF_ERROR(run.Open());
  RETURN_IF_ERROR(run.Run());
  RETURN_IF_ERROR(run.Close());
  BillRunReport report = run.report();
  report.seconds = static_cast<double>(Clock::Real()->MonotonicNanos() - start_ns) / 1e9;
  return report;
}

}  // namespace firstseen
