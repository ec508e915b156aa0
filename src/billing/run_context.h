// What the parts of a billing run share.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/file.h"
#include "billing/bill_book.h"
#include "billing/bill_run.h"
#include "billing/config.h"
#include "billing/content_hash.h"
#include "billing/ledger.h"
#include "billing/transactions.h"
#include "store/store.h"

namespace firstseen {

struct RunContext {
  const BillingConfig& config;
  const BillRunOptions& options;
  FileSystem* files;
  const Clock* clock;
  Store* store;
  Ledger* ledger;
  BillBook* book;
  const TransactionSchema* schema;
  const ContentHasher* hasher;
  BillRunReport* report;

  // Before anything outside of memory is changed.
  absl::Status Step(std::string_view name) const {
    return options.step_hook ? options.step_hook(name) : absl::OkStatus();
  }
};

}  // namespace firstseen
