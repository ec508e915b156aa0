// Claims, checks, removals and settling.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "engine/engine_impl.h"
#include "engine/records.h"

namespace firstseen {

absl::Status EngineImpl::RunBatch(Operation operation, SetId id,
                                  std::span<const ClaimRequest> requests,
                                  std::span<ClaimResult> results) {
  FIRSTSEEN_CHECK(requests.size() == results.size());
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  std::fill(results.begin(), results.end(), ClaimResult());
  uint64_t rests_on = 0;
  bool recorded = false;
  for (size_t at = 0; at < requests.size(); at += kBlock) {
    if (operation != Operation::kCheck) RETURN_IF_ERROR(log_->WaitForSpace());
    const size_t size = std::min(kBlock, requests.size() - at);
    Block block{.operation = operation,
                .set = set,
                .requests = requests.subspan(at, size),
                .results = results.subspan(at, size),
                .windows = {},
                .prints = {}};
    RunBlock(&block);
    rests_on = std::max(rests_on, block.rests_on);
    recorded = recorded || block.recorded;
  }
  return AwaitAnswer(*set, rests_on, recorded);
}

absl::Status EngineImpl::AwaitAnswer(const Set& set, uint64_t sequence, bool recorded) {
  if (set.options().durability == Durability::kFsync) {
    RETURN_IF_ERROR(log_->WaitDurable(sequence));
  } else if (recorded) {
    log_->Nudge();
  }
  return log_->status();
}

void EngineImpl::RunBlock(Block* block) {
  for (size_t i = 0; i < block->requests.size(); ++i) {
    block->prints[i] = block->requests[i].fingerprint.Truncated(block->set->options().bits);
  }
  while (true) {
    {
      SetReader lock(state_.gate(), *block->set);
      if (FindWindows(block)) {
        PrefetchBlock(*block);
        for (size_t i = 0; i < block->requests.size(); ++i) RunOne(block, i);
        return;
      }
    }
    MakeWindows(block);
  }
}

// Fills in the windows; false when a claim needs one that is not ready.
bool EngineImpl::FindWindows(Block* block) {
  for (size_t i = 0; i < block->requests.size(); ++i) {
    const ClaimRequest& request = block->requests[i];
    Window*& window = block->windows[i];
    const bool same = i > 0 && request.window == block->requests[i - 1].window;
    window = same ? block->windows[i - 1] : block->set->Find(request.window);
    if (block->operation != Operation::kClaim || !block->results[i].status.ok()) continue;
    const bool ready = window != nullptr &&
                       (window->closed || (window->members != nullptr &&
                                           (request.owner == 0 || window->owners != nullptr)));
    if (!ready) return false;
  }
  return true;
}

// Makes the windows the claims need. Those whose window is refused are done with.
void EngineImpl::MakeWindows(Block* block) {
  for (size_t i = 0; i < block->requests.size(); ++i) {
    ClaimResult& result = block->results[i];
    if (!result.status.ok()) continue;
    result.status =
        MakeWindow(block->set, block->requests[i].window, block->requests[i].owner != 0);
  }
}

void EngineImpl::PrefetchBlock(const Block& block) {
  const size_t size = block.requests.size();
  size_t end = 0;
  for (size_t begin = 0; begin < size; begin = end) {
    const Window* window = block.windows[begin];
    for (end = begin + 1; end < size && block.windows[end] == window; ++end) {
    }
    if (window != nullptr && window->members != nullptr) {
      window->members->Prefetch(std::span(block.prints).subspan(begin, end - begin));
    }
  }
}

void EngineImpl::RunOne(Block* block, size_t index) {
  ClaimResult& result = block->results[index];
  if (!result.status.ok()) return;
  Window* window = block->windows[index];
  result.verdict = Verdict::kFirst;  // not there, as long as nobody says otherwise
  if (window == nullptr) return;
  // That the window is open, or closed, rests on its last drop or reopening.
  block->rests_on = std::max(block->rests_on, window->state_sequence);
  if (window->closed) {
    result.verdict = Verdict::kClosed;
    return;
  }
  if (window->members == nullptr) return;
  const Fingerprint& print = block->prints[index];
  window->members->WithShard(print, [&](ExactSet::LockedShard& shard) {
    switch (block->operation) {
      case Operation::kClaim:
        ClaimOne(block, index, shard);
        break;
      case Operation::kCheck:
        if (shard.Contains(print)) result.verdict = Verdict::kDuplicate;
        break;
      case Operation::kRemove:
        RemoveOne(block, index, shard);
        break;
    }
    block->rests_on = std::max(block->rests_on, shard.stamp(print));
  });
}

void EngineImpl::ClaimOne(Block* block, size_t index, ExactSet::LockedShard& shard) {
  const ClaimRequest& request = block->requests[index];
  ClaimResult& result = block->results[index];
  const Fingerprint& print = block->prints[index];
  Window& window = *block->windows[index];
  switch (shard.Add(print)) {
    case AddOutcome::kNoMemory:
      result.status =
          ResourceExhausted("memory_bytes_max ({} bytes) is reached; raise it or drop a window",
                            options_.memory_bytes_max);
      return;
    case AddOutcome::kPresent: {
      const std::optional<Ownership> owner =
          request.owner == 0 ? std::nullopt : LiveOwner(window, print);
      const bool repeat = owner.has_value() && owner->owner == request.owner;
      result.verdict = repeat ? Verdict::kRepeat : Verdict::kDuplicate;
      result.sequence = repeat ? owner->sequence : 2 * log_->last_appended() + 1;
      return;
    }
    case AddOutcome::kAdded:
      break;
  }
  if (request.owner != 0 && !window.owners->HasRoom(print, options_.owner_bytes_max)) {
    FIRSTSEEN_CHECK(shard.Remove(print));
    result.status =
        ResourceExhausted("owner_bytes_max ({} bytes) is reached; settle claims or raise it",
                          options_.owner_bytes_max);
    return;
  }
  thread_local std::string record;
  EncodeAdded(
      {.set = block->set->id(), .window = window.id, .owner = request.owner, .fingerprint = print},
      block->set->options().bits, &record);
  const uint64_t sequence = log_->Append(record);
  if (sequence == 0) return;  // the log has failed: nobody hears this answer
  block->recorded = true;
  shard.set_stamp(print, sequence);
  result.verdict = Verdict::kFirst;
  result.sequence = 2 * sequence;
  if (request.owner == 0) return;
  window.owners->Put({.fingerprint = print, .owner = request.owner, .sequence = result.sequence});
}

void EngineImpl::RemoveOne(Block* block, size_t index, ExactSet::LockedShard& shard) {
  const ClaimRequest& request = block->requests[index];
  ClaimResult& result = block->results[index];
  const Fingerprint& print = block->prints[index];
  Window& window = *block->windows[index];
  if (request.owner != 0) {
    const std::optional<Ownership> owner = LiveOwner(window, print);
    if (!owner.has_value() || owner->owner != request.owner) return;
  }
  if (!shard.Remove(print)) return;
  if (window.owners != nullptr) window.owners->Erase(print);
  const uint64_t sequence = log_->Append(EncodeRecord(
      RemovedRecord{.set = block->set->id(), .window = window.id, .fingerprint = print},
      block->set->options().bits));
  if (sequence == 0) return;
  block->recorded = true;
  shard.set_stamp(print, sequence);
  result.verdict = Verdict::kDuplicate;
  result.sequence = 2 * sequence;
}

std::optional<Ownership> EngineImpl::LiveOwner(const Window& window,
                                               const Fingerprint& print) const {
  if (window.owners == nullptr) return std::nullopt;
  std::optional<Ownership> owner = window.owners->Find(print);
  if (owner.has_value() && owner->settled_open_ms != Ownership::kUnsettled &&
      owner->settled_open_ms + options_.owner_keep_open_ms <= OpenMs()) {
    return std::nullopt;
  }
  return owner;
}

absl::StatusOr<uint64_t> EngineImpl::Settle(SetId id, std::span<const uint64_t> owners) {
  ASSIGN_OR_RETURN(Set * set, GetSetForWriting(id));
  std::vector<WindowId> windows;
  {
    SetReader lock(state_.gate(), *set);
    for (const auto& window : set->windows()) {
      if (window->owners != nullptr) windows.push_back(window->id);
    }
  }
  constexpr size_t kChunk = 1024;
  uint64_t settled = 0;
  uint64_t rests_on = 0;
  for (WindowId window : windows) {
    for (size_t at = 0; at < owners.size(); at += kChunk) {
      RETURN_IF_ERROR(log_->WaitForSpace());
      SettleChunk(set, window, owners.subspan(at, std::min(kChunk, owners.size() - at)), &settled,
                  &rests_on);
    }
  }
  RETURN_IF_ERROR(AwaitAnswer(*set, rests_on, settled > 0));
  return settled;
}

void EngineImpl::SettleChunk(Set* set, WindowId id, std::span<const uint64_t> owners,
                             uint64_t* settled, uint64_t* rests_on) {
  SetReader lock(state_.gate(), *set);
  Window* window = set->Find(id);
  if (window == nullptr || window->owners == nullptr) return;
  const int64_t open_ms = OpenMs();
  for (const OwnerTable::Unsettled& claim : window->owners->SelectUnsettled(owners)) {
    const Fingerprint& print = claim.fingerprint;
    window->members->WithShard(print, [&](ExactSet::LockedShard& shard) {
      // Removed, claimed by somebody else or settled since it was selected?
      if (!window->owners->Settle(print, claim.owner, open_ms)) return;
      const uint64_t sequence = log_->Append(EncodeRecord(SettledRecord{.set = set->id(),
                                                                        .window = id,
                                                                        .owner = claim.owner,
                                                                        .open_ms = open_ms,
                                                                        .fingerprint = print},
                                                          set->options().bits));
      if (sequence == 0) return;
      shard.set_stamp(print, sequence);
      *rests_on = std::max(*rests_on, sequence);
      ++*settled;
    });
  }
}

}  // namespace firstseen
