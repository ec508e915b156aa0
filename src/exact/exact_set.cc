#include "exact/exact_set.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "exact/exact_set_impl.h"

namespace firstseen {
namespace {

// Keys of a batch whose cache lines are fetched together: enough to keep all line-fill buffers of
// a core busy, few enough that the lines stay in the first-level cache.
constexpr size_t kBlock = 64;

using ProbeBlock = std::array<Shard::Probe, kBlock>;

// Fetches the shards' headers, then the tags of the home groups.
void StartProbes(const Directory& directory, std::span<const Fingerprint> block,
                 ProbeBlock* probes) {
  for (size_t i = 0; i < block.size(); ++i) {
    (*probes)[i].shard = directory.Find(block[i].hi);
    (*probes)[i].shard->PrefetchHeader();
  }
  for (size_t i = 0; i < block.size(); ++i) {
    (*probes)[i].shard->StartProbe(block[i], &(*probes)[i]);
  }
}

// The indices of those keys of a block that need a second look.
struct Undecided {
  std::array<uint8_t, kBlock> indices;
  size_t count = 0;
  void Push(size_t i) { indices[count++] = static_cast<uint8_t>(i); }
};

}  // namespace

ExactSet::ExactSet(Arena* arena, Options options) : impl_(std::make_unique<Impl>(arena, options)) {}
ExactSet::~ExactSet() = default;

AddOutcome ExactSet::Add(const Fingerprint& fingerprint) {
  HeldShards held(impl_.get());
  held.Acquire(fingerprint);
  return held.Add(fingerprint);
}

bool ExactSet::Contains(const Fingerprint& fingerprint) const {
  Shard* const shard = impl_->Lock(fingerprint);
  const bool present = shard->Contains(fingerprint);
  shard->Unlock();
  return present;
}

bool ExactSet::Remove(const Fingerprint& fingerprint) {
  HeldShards held(impl_.get());
  held.Acquire(fingerprint);
  return held.Remove(fingerprint);
}

void ExactSet::AddBatch(std::span<const Fingerprint> fingerprints, std::span<AddOutcome> outcomes) {
  FIRSTSEEN_CHECK(fingerprints.size() == outcomes.size());
  uint64_t added = 0;
  ProbeBlock probes;
  // Runs one of the two looks at a key under its shard's lock; true when that settled it.
  const auto settle = [&](Shard* shard, AddOutcome* outcome, auto look) {
    shard->Lock();
    const Shard::Added result = look(shard);
    shard->Unlock();
    if (result == Shard::Added::kUndecided) return false;
    *outcome = result == Shard::Added::kAdded ? AddOutcome::kAdded : AddOutcome::kPresent;
    added += result == Shard::Added::kAdded ? 1 : 0;
    return true;
  };
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    const auto block = fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin));
    StartProbes(*impl_->directory.load(std::memory_order_acquire), block, &probes);
    for (size_t i = 0; i < block.size(); ++i) Shard::MatchProbe(&probes[i]);
    Undecided undecided;
    for (size_t i = 0; i < block.size(); ++i) {
      Shard::Probe* const probe = &probes[i];
      if (!settle(probe->shard, &outcomes[begin + i],
                  [probe](Shard* shard) { return shard->AddProbed(probe); })) {
        undecided.Push(i);
      }
    }
    for (size_t k = 0; k < undecided.count; ++k) {
      const size_t i = undecided.indices[k];
      const Shard::Probe& probe = probes[i];
      if (!settle(probe.shard, &outcomes[begin + i],
                  [&probe](Shard* shard) { return shard->PlaceProbed(probe); })) {
        outcomes[begin + i] = Add(block[i]);
      }
    }
  }
  if (added != 0) impl_->size.fetch_add(added, std::memory_order_relaxed);
}

void ExactSet::ContainsBatch(std::span<const Fingerprint> fingerprints,
                             std::span<bool> present) const {
  FIRSTSEEN_CHECK(fingerprints.size() == present.size());
  ProbeBlock probes;
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    const auto block = fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin));
    StartProbes(*impl_->directory.load(std::memory_order_acquire), block, &probes);
    for (size_t i = 0; i < block.size(); ++i) Shard::MatchProbe(&probes[i]);
    Undecided undecided;
    for (size_t i = 0; i < block.size(); ++i) {
      const Shard::Answer answer = Shard::FinishProbe(probes[i]);
      present[begin + i] = answer == Shard::Answer::kYes;
      if (answer == Shard::Answer::kUndecided) {
        Shard::PrefetchAlternate(probes[i]);
        undecided.Push(i);
      }
    }
    for (size_t k = 0; k < undecided.count; ++k) {
      const size_t i = undecided.indices[k];
      const Shard::Answer answer = Shard::ProbeAlternate(probes[i]);
      present[begin + i] =
          answer == Shard::Answer::kUndecided ? Contains(block[i]) : answer == Shard::Answer::kYes;
    }
  }
}

uint64_t ExactSet::size() const { return impl_->size.load(std::memory_order_relaxed); }

void ExactSet::Prefetch(std::span<const Fingerprint> fingerprints) const {
  const Directory& directory = *impl_->directory.load(std::memory_order_acquire);
  ProbeBlock probes;
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    const auto block = fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin));
    StartProbes(directory, block, &probes);
    for (size_t i = 0; i < block.size(); ++i) Shard::MatchProbe(&probes[i]);
  }
}

void ExactSet::WithShard(const Fingerprint& fingerprint, absl::FunctionRef<void(LockedShard&)> f) {
  HeldShards held(impl_.get());
  held.Acquire(fingerprint);
  f(held);
}

void ExactSet::WithShards(std::span<const Fingerprint> sorted,
                          absl::FunctionRef<void(LockedShard&)> f) {
  HeldShards held(impl_.get());
  for (const Fingerprint& fingerprint : sorted) held.Acquire(fingerprint);
  f(held);
}

int ExactSet::bits() const { return impl_->context.bits; }

uint64_t ExactSet::memory_bytes() const {
  uint64_t bytes = sizeof(ExactSet) + sizeof(Impl) +
                   impl_->context.storage_bytes.load(std::memory_order_relaxed) +
                   impl_->shard_count.load(std::memory_order_relaxed) * sizeof(Shard);
  for (const Directory* directory = impl_->directory.load(std::memory_order_acquire);
       directory != nullptr; directory = directory->previous()) {
    bytes += directory->bytes();
  }
  return bytes;
}

uint64_t ExactSet::slot_count() const {
  return impl_->context.slot_count.load(std::memory_order_relaxed);
}

}  // namespace firstseen
