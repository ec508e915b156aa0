// A store in memory that can be wound back to any of its import batches: what a crash leaves of the
// embedded store is always such a beginning. The embedded store itself is tested beside it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "store/store.h"

namespace firstseen {

class MemoryStore : public Store {
 public:
  using Member = std::pair<WindowId, std::vector<std::string>>;

  explicit MemoryStore(SetOptions options) : options_(std::move(options)) {}

  absl::StatusOr<ImportTotals> Import(std::string_view, std::string_view source,
                                      std::string_view position, std::span<const ImportRow> rows,
                                      ImportOwners, std::span<absl::Status>) override {
    MutexLock lock(mutex_);
    if (batches_.size() == fail_at_) return Unavailable("the disk failed");
    Batch batch{std::string(source), std::string(position), {}, {}};
    for (const ImportRow& row : rows) {
      const Member member(row.window,
                          std::vector<std::string>(row.fields.begin(), row.fields.end()));
      batch.rows.emplace_back(member, row.token);
    }
    batches_.push_back(std::move(batch));
    return Apply(&batches_.back());
  }
  std::optional<ImportState> FindImport(std::string_view, std::string_view source) const override {
    MutexLock lock(mutex_);
    const auto found = positions_.find(std::string(source));
    if (found == positions_.end()) return std::nullopt;
    return found->second;
  }
  absl::Status ForgetImports(std::string_view, std::string_view prefix) override {
    MutexLock lock(mutex_);
    ++forgotten_;
    std::erase_if(positions_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
    return absl::OkStatus();
  }
  absl::Status AcceptsWindow(std::string_view, WindowId window) const override {
    if (window > window_max_) return InvalidArgument("window begins too far in the future");
    return absl::OkStatus();
  }
  absl::Status ImportSync() override { return absl::OkStatus(); }
  absl::StatusOr<SetOptions> Options(std::string_view) const override { return options_; }

  // Forgets all but the first `count` batches.
  void Crash(size_t count) {
    MutexLock lock(mutex_);
    batches_.resize(count);
    members_.clear();
    positions_.clear();
    for (Batch& batch : batches_) Apply(&batch);
  }
  // The batch after this many fails.
  void FailAt(size_t count) { fail_at_ = count; }
  void RefuseWindowsAfter(WindowId window) { window_max_ = window; }

  // Each member and its owner.
  std::map<Member, std::string> members() const {
    MutexLock lock(mutex_);
    return members_;
  }
  size_t batches() const {
    MutexLock lock(mutex_);
    return batches_.size();
  }
  size_t positions() const {
    MutexLock lock(mutex_);
    return positions_.size();
  }
  int forgotten() const {
    MutexLock lock(mutex_);
    return forgotten_;
  }

  // What an import does not use.
  absl::Status CreateSet(std::string_view, const SetOptions&) override { return Unused(); }
  std::vector<std::string> ListSets() const override { return {}; }
  absl::Status Claim(std::string_view, std::span<const MemberRequest>,
                     std::span<MemberResult>) override {
    return Unused();
  }
  absl::Status Check(std::string_view, std::span<const MemberRequest>,
                     std::span<MemberResult>) override {
    return Unused();
  }
  absl::Status Remove(std::string_view, std::span<const MemberRequest>,
                      std::span<MemberResult>) override {
    return Unused();
  }
  absl::StatusOr<uint64_t> Settle(std::string_view, std::span<const std::string_view>) override {
    return Unused();
  }
  absl::Status Drop(std::string_view, WindowId) override { return Unused(); }
  absl::Status Reopen(std::string_view, WindowId) override { return Unused(); }
  absl::StatusOr<StoreSetStats> SetStats(std::string_view) const override { return Unused(); }
  StoreStats Stats() const override { return {}; }
  absl::Status Snapshot() override { return Unused(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  struct Batch {
    std::string source;
    std::string position;
    std::vector<std::pair<Member, std::string>> rows;
    ImportTotals totals;
  };

  static absl::Status Unused() { return Internal("an import has no use for this"); }

  ImportTotals Apply(Batch* batch) REQUIRES(mutex_) {
    batch->totals = {};
    for (const auto& [member, token] : batch->rows) {
      ++(members_.emplace(member, token).second ? batch->totals.added : batch->totals.duplicates);
    }
    ImportState& state = positions_[batch->source];
    state.position = batch->position;
    state.totals.added += batch->totals.added;
    state.totals.duplicates += batch->totals.duplicates;
    return batch->totals;
  }

  const SetOptions options_;
  mutable Mutex mutex_;
  std::vector<Batch> batches_ GUARDED_BY(mutex_);
  std::map<Member, std::string> members_ GUARDED_BY(mutex_);
  std::map<std::string, ImportState> positions_ GUARDED_BY(mutex_);
  int forgotten_ GUARDED_BY(mutex_) = 0;
  size_t fail_at_ = SIZE_MAX;
  WindowId window_max_ = 9999;
};

}  // namespace firstseen
