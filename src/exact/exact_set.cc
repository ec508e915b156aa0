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
constexpr size_t kBlock = 32;

using ShardBlock = std::array<Shard*, kBlock>;

// Fetches the shards' headers, then the home groups. `shards` may be out of date when used.
void PrefetchBlock(const Directory& directory, std::span<const Fingerprint> block,
                   ShardBlock* shards) {
  for (size_t i = 0; i < block.size(); ++i) {
    (*shards)[i] = directory.Find(block[i].hi);
    (*shards)[i]->PrefetchHeader();
  }
  for (size_t i = 0; i < block.size(); ++i) (*shards)[i]->PrefetchHome(block[i]);
}

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
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    const auto block = fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin));
    ShardBlock shards;
    PrefetchBlock(*impl_->directory.load(std::memory_order_acquire), block, &shards);
    std::array<uint8_t, kBlock> undecided;
    size_t undecided_count = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      Shard::Added result = Shard::Added::kUndecided;
      shards[i]->Lock();
      if (shards[i]->Covers(block[i])) {
        result = shards[i]->AddToHome(block[i]);
        if (result == Shard::Added::kUndecided) shards[i]->PrefetchAlternate(block[i]);
      }
      shards[i]->Unlock();
      if (result == Shard::Added::kUndecided) {
        undecided[undecided_count++] = static_cast<uint8_t>(i);
      } else {
        outcomes[begin + i] =
            result == Shard::Added::kAdded ? AddOutcome::kAdded : AddOutcome::kPresent;
        added += result == Shard::Added::kAdded ? 1 : 0;
      }
    }
    for (size_t k = 0; k < undecided_count; ++k) {
      outcomes[begin + undecided[k]] = Add(block[undecided[k]]);
    }
  }
  if (added != 0) impl_->size.fetch_add(added, std::memory_order_relaxed);
}

void ExactSet::ContainsBatch(std::span<const Fingerprint> fingerprints,
                             std::span<bool> present) const {
  FIRSTSEEN_CHECK(fingerprints.size() == present.size());
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    const auto block = fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin));
    ShardBlock shards;
    PrefetchBlock(*impl_->directory.load(std::memory_order_acquire), block, &shards);
    std::array<uint8_t, kBlock> undecided;
    size_t undecided_count = 0;
    for (size_t i = 0; i < block.size(); ++i) {
      Shard::Answer answer = Shard::Answer::kUndecided;
      shards[i]->Lock();
      if (shards[i]->Covers(block[i])) {
        answer = shards[i]->ProbeHome(block[i]);
        if (answer == Shard::Answer::kUndecided) shards[i]->PrefetchAlternate(block[i]);
      }
      shards[i]->Unlock();
      present[begin + i] = answer == Shard::Answer::kYes;
      if (answer == Shard::Answer::kUndecided) {
        undecided[undecided_count++] = static_cast<uint8_t>(i);
      }
    }
    for (size_t k = 0; k < undecided_count; ++k) {
      present[begin + undecided[k]] = Contains(block[undecided[k]]);
    }
  }
}

uint64_t ExactSet::size() const { return impl_->size.load(std::memory_order_relaxed); }

void ExactSet::Prefetch(std::span<const Fingerprint> fingerprints) const {
  const Directory& directory = *impl_->directory.load(std::memory_order_acquire);
  ShardBlock shards;
  for (size_t begin = 0; begin < fingerprints.size(); begin += kBlock) {
    PrefetchBlock(directory,
                  fingerprints.subspan(begin, std::min(kBlock, fingerprints.size() - begin)),
                  &shards);
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
