#include "store/engine_store.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/time_text.h"
#include "store/row_resolver.h"
#include "store/set_options.h"

namespace firstseen {
namespace {

// Requests handed to the engine at once: bounds the memory of a call, and is enough to share the
// cost of a commit.
constexpr size_t kChunkRows = 16 << 10;
// An import batch is one record of the log.
constexpr size_t kImportRowsMax = 500'000;

class EngineStore : public Store {
 public:
  EngineStore(std::unique_ptr<Engine> engine, Keyring keys, const Clock* clock,
              absl::Duration future_max)
      : engine_(std::move(engine)),
        keys_(std::move(keys)),
        clock_(clock),
        future_max_(future_max) {}

  absl::Status CreateSet(std::string_view name, const SetOptions& options) override {
    RETURN_IF_ERROR(ValidateSet(name, options));
    const absl::StatusOr<SetId> created = engine_->CreateSet(name, options);
    if (created.ok() || !absl::IsAlreadyExists(created.status())) return created.status();
    ASSIGN_OR_RETURN(const SetOptions existing, Options(name));
    const std::string difference = DescribeDifference(existing, options);
    if (difference.empty()) return absl::OkStatus();
    return AlreadyExists(
        "set {} exists and is different: {}; use it as it is or choose another "
        "name",
        name, difference);
  }

  absl::StatusOr<SetOptions> Options(std::string_view set) const override {
    ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(set));
    return engine_->Options(id);
  }

  std::vector<std::string> ListSets() const override { return engine_->ListSets(); }

  absl::Status Claim(std::string_view set, std::span<const MemberRequest> requests,
                     std::span<MemberResult> results) override {
    return Run(set, requests, results, clock_->Now() + future_max_, &Engine::Claim);
  }
  absl::Status Check(std::string_view set, std::span<const MemberRequest> requests,
                     std::span<MemberResult> results) override {
    return Run(set, requests, results, absl::InfiniteFuture(), &Engine::Check);
  }
  absl::Status Remove(std::string_view set, std::span<const MemberRequest> requests,
                      std::span<MemberResult> results) override {
    return Run(set, requests, results, absl::InfiniteFuture(), &Engine::Remove);
  }

  absl::StatusOr<uint64_t> Settle(std::string_view set,
                                  std::span<const std::string_view> tokens) override {
    ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(set));
    uint64_t settled = 0;
    std::vector<uint64_t> owners;
    while (!tokens.empty()) {
      const auto chunk = tokens.first(std::min(kChunkRows, tokens.size()));
      tokens = tokens.subspan(chunk.size());
      owners.clear();
      // A token says nothing of its window, and so of the key that made its owner.
      for (const Keyring::Key& key : keys_.keys()) {
        for (const std::string_view token : chunk) {
          if (!token.empty()) owners.push_back(key.hasher.Owner(token));
        }
      }
      ASSIGN_OR_RETURN(const uint64_t count, engine_->Settle(id, owners));
      settled += count;
    }
    return settled;
  }

  absl::Status AcceptsWindow(std::string_view set, WindowId window) const override {
    ASSIGN_OR_RETURN(const std::shared_ptr<const SetContext> context, Find(set));
    return RowResolver(*context, keys_, clock_->Now() + future_max_).UseWindow(window);
  }
  absl::StatusOr<ImportTotals> Import(std::string_view set, std::string_view source,
                                      std::string_view position, std::span<const ImportRow> rows,
                                      ImportOwners owners,
                                      std::span<absl::Status> statuses) override;

  std::optional<ImportState> FindImport(std::string_view set,
                                        std::string_view source) const override {
    const absl::StatusOr<SetId> id = engine_->FindSet(set);
    if (!id.ok()) return std::nullopt;
    const auto progress = engine_->FindImport(*id, source);
    if (!progress.has_value()) return std::nullopt;
    return ImportState{progress->position, Totals(progress->totals)};
  }
  absl::Status ForgetImports(std::string_view set, std::string_view prefix) override {
    ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(set));
    return engine_->ForgetImports(id, prefix);
  }
  absl::Status ImportSync() override { return engine_->ImportSync(); }

  absl::Status Drop(std::string_view set, WindowId window) override {
    ASSIGN_OR_RETURN(const SetId id, FindWithWindow(set, window));
    return engine_->Drop(id, window);
  }
  absl::Status Reopen(std::string_view set, WindowId window) override {
    ASSIGN_OR_RETURN(const SetId id, FindWithWindow(set, window));
    return engine_->Reopen(id, window);
  }

  absl::StatusOr<StoreSetStats> SetStats(std::string_view set) const override;
  StoreStats Stats() const override;
  absl::Status Snapshot() override { return engine_->Snapshot(); }
  absl::Status Close() override { return engine_->Close(); }

 private:
  using Operation = absl::Status (Engine::*)(SetId, std::span<const ClaimRequest>,
                                             std::span<ClaimResult>);

  // What rows of a set need; NotFound when there is no such set. Sets are never removed, so what
  // was found once stays true.
  absl::StatusOr<std::shared_ptr<const SetContext>> Find(std::string_view name) const;
  // InvalidArgument when the set can have no such window.
  absl::StatusOr<SetId> FindWithWindow(std::string_view name, WindowId window) const {
    ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(name));
    ASSIGN_OR_RETURN(const SetOptions options, engine_->Options(id));
    RETURN_IF_ERROR(ValidateWindow(options.window, window));
    return id;
  }
  absl::Status Run(std::string_view set, std::span<const MemberRequest> requests,
                   std::span<MemberResult> results, absl::Time latest_start, Operation operation);
  absl::Status RunChunk(const SetContext& set, RowResolver* resolver,
                        std::span<const MemberRequest> requests, std::span<MemberResult> results,
                        Operation operation);

  static ImportTotals Totals(const ImportResult& result) {
    return {result.added, result.duplicates, result.closed};
  }

  const std::unique_ptr<Engine> engine_;
  const Keyring keys_;
  const Clock* const clock_;
  const absl::Duration future_max_;

  mutable SharedMutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const SetContext>, std::less<>> sets_
      GUARDED_BY(mutex_);
};

absl::StatusOr<std::shared_ptr<const SetContext>> EngineStore::Find(std::string_view name) const {
  {
    const ReaderLock lock(mutex_);
    const auto found = sets_.find(name);
    if (found != sets_.end()) return found->second;
  }
  ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(name));
  ASSIGN_OR_RETURN(SetOptions options, engine_->Options(id));
  ASSIGN_OR_RETURN(const absl::TimeZone zone, LoadTimeZone(options.time_zone));
  auto context = std::make_shared<const SetContext>(id, std::move(options), zone);
  const WriterLock lock(mutex_);
  return sets_.emplace(name, std::move(context)).first->second;
}

absl::Status EngineStore::Run(std::string_view set, std::span<const MemberRequest> requests,
                              std::span<MemberResult> results, absl::Time latest_start,
                              Operation operation) {
  FIRSTSEEN_CHECK(requests.size() == results.size());
  ASSIGN_OR_RETURN(const std::shared_ptr<const SetContext> context, Find(set));
  RowResolver resolver(*context, keys_, latest_start);
  for (size_t begin = 0; begin < requests.size(); begin += kChunkRows) {
    const size_t size = std::min(kChunkRows, requests.size() - begin);
    RETURN_IF_ERROR(RunChunk(*context, &resolver, requests.subspan(begin, size),
                             results.subspan(begin, size), operation));
  }
  return absl::OkStatus();
}

absl::Status EngineStore::RunChunk(const SetContext& set, RowResolver* resolver,
                                   std::span<const MemberRequest> requests,
                                   std::span<MemberResult> results, Operation operation) {
  std::vector<ClaimRequest> engine_requests;
  std::vector<MemberResult*> targets;
  engine_requests.reserve(requests.size());
  targets.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const MemberRequest& request = requests[i];
    results[i] = MemberResult();
    absl::StatusOr<ClaimRequest> resolved =
        resolver->Resolve(request.fields, request.window, request.time, request.token);
    if (!resolved.ok()) {
      results[i].status = std::move(resolved).status();
      continue;
    }
    results[i].window = resolved->window;
    engine_requests.push_back(*resolved);
    targets.push_back(&results[i]);
  }
  std::vector<ClaimResult> engine_results(engine_requests.size());
  RETURN_IF_ERROR(((*engine_).*operation)(set.id, engine_requests, engine_results));
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i]->status = std::move(engine_results[i].status);
    targets[i]->verdict = engine_results[i].verdict;
    targets[i]->sequence = engine_results[i].sequence;
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportTotals> EngineStore::Import(std::string_view set, std::string_view source,
                                                 std::string_view position,
                                                 std::span<const ImportRow> rows,
                                                 ImportOwners owners,
                                                 std::span<absl::Status> statuses) {
  FIRSTSEEN_CHECK(rows.size() == statuses.size());
  if (rows.size() > kImportRowsMax) {
    return InvalidArgument("an import batch of {} rows; the limit is {}", rows.size(),
                           kImportRowsMax);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const SetContext> context, Find(set));
  RowResolver resolver(*context, keys_, clock_->Now() + future_max_);
  ImportBatch batch{.source = std::string(source),
                    .position = std::string(position),
                    .rows = {},
                    .settled = owners == ImportOwners::kSettled};
  batch.rows.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const absl::StatusOr<ClaimRequest> resolved =
        resolver.Resolve(rows[i].fields, rows[i].window, absl::Time(), rows[i].token);
    statuses[i] = resolved.status();
    if (!resolved.ok()) continue;
    batch.rows.push_back({resolved->window, resolved->fingerprint, resolved->owner});
  }
  ASSIGN_OR_RETURN(const ImportResult result, engine_->Import(context->id, batch));
  return Totals(result);
}

absl::StatusOr<StoreSetStats> EngineStore::SetStats(std::string_view set) const {
  ASSIGN_OR_RETURN(const SetId id, engine_->FindSet(set));
  ASSIGN_OR_RETURN(firstseen::SetStats stats, engine_->Stats(id));
  StoreSetStats result{std::move(stats.name), std::move(stats.options), {}};
  for (const WindowStats& window : stats.windows) {
    result.windows.push_back({.window = window.window,
                              .closed = window.closed,
                              .members = window.members,
                              .bytes = window.bytes,
                              .owners = window.owners,
                              .owner_bytes = window.owner_bytes,
                              .load_factor = window.load_factor,
                              .false_duplicate_probability =
                                  FalseDuplicateProbability(window.members, result.options.bits)});
  }
  return result;
}

StoreStats EngineStore::Stats() const {
  const EngineStats stats = engine_->Stats();
  return {.log_bytes = stats.log_bytes,
          .log_time = stats.log_time,
          .snapshot_bytes = stats.snapshot_bytes,
          .snapshot_time = stats.snapshot_time,
          .memory_bytes = stats.memory_bytes,
          .owner_bytes = stats.owner_bytes};
}

}  // namespace

std::unique_ptr<Store> NewEngineStore(std::unique_ptr<Engine> engine, Keyring keys,
                                      const Clock* clock, absl::Duration future_max) {
  return std::make_unique<EngineStore>(std::move(engine), std::move(keys), clock, future_max);
}

}  // namespace firstseen
