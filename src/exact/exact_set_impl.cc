#include "exact/exact_set_impl.h"

#include <algorithm>

#include "base/check.h"

namespace firstseen {
namespace {

// A shard keeps at least this many bits of its own, and the directory never has more than 2^26
// pointers (enough for 4e11 fingerprints).
constexpr int kValueBitsMin = 12;
constexpr int kDirectoryDepthMax = 26;
// The directory may have this many pointers for every shard, and a few to begin with. Fingerprints
// that are uniform need two to four; keys made to share long prefixes must not blow it up.
constexpr uint64_t kPointersPerShardMax = 16;
constexpr uint64_t kPointersFree = 1024;

}  // namespace

ExactSet::Impl::Impl(Arena* arena, const Options& options) {
  FIRSTSEEN_CHECK(options.bits >= 32 && options.bits <= 128);
  context.arena = arena;
  context.bits = options.bits;
  // Shards scatter by the square root of their size: a little less than what one may hold.
  int depth = 0;
  while (depth < DepthMax() &&
         (options.expected >> depth) > Shard::BuildMax(context, depth) * 94 / 100) {
    ++depth;
  }
  if (options.expected > 0) {
    context.depth_expected = depth;
    context.groups_expected =
        std::max(1, Shard::GroupsFor(context, depth, options.expected >> depth));
  }
  auto fresh = std::make_unique<Directory>(depth, nullptr);
  for (uint64_t i = 0; i < fresh->size(); ++i) {
    const uint64_t prefix = depth == 0 ? 0 : i << (64 - depth);
    fresh->Set(prefix, depth, new Shard(context, prefix, depth));
  }
  shard_count = fresh->size();
  directory = fresh.release();
}

ExactSet::Impl::~Impl() {
  const std::unique_ptr<Directory> last(directory.load());
  uint64_t i = 0;
  while (i < last->size()) {
    Shard* const shard = last->at(i);
    i += uint64_t{1} << (last->depth() - shard->depth());
    shard->FreeStorage(context);
    delete shard;
  }
}

int ExactSet::Impl::DepthMax() const {
  return std::min(kDirectoryDepthMax, context.bits - kValueBitsMin);
}

Shard* ExactSet::Impl::Lock(const Fingerprint& fingerprint) const {
  for (;;) {
    Shard* const shard = directory.load(std::memory_order_acquire)->Find(fingerprint.hi);
    shard->Lock();
    if (shard->Covers(fingerprint)) return shard;
    shard->Unlock();  // it was split after the directory had been read
  }
}

bool ExactSet::Impl::MaySplit(const Shard& shard) const {
  const int depth = shard.depth() + 1;
  if (depth > DepthMax()) return false;
  if (depth <= directory.load(std::memory_order_acquire)->depth()) return true;
  return (uint64_t{1} << depth) <=
         kPointersFree + kPointersPerShardMax * shard_count.load(std::memory_order_relaxed);
}

bool ExactSet::Impl::Split(HeldShards& held, Shard* shard) {
  const int depth = shard->depth() + 1;
  const uint64_t prefix = shard->prefix() | (uint64_t{1} << (64 - depth));
  auto upper = std::make_unique<Shard>(context, prefix, depth);
  upper->Lock();
  if (!shard->SplitInto(context, upper.get())) return false;
  {
    MutexLock lock(directory_mutex);
    Directory* current = directory.load(std::memory_order_relaxed);
    while (current->depth() < depth) {
      auto twice =
          std::make_unique<Directory>(current->depth() + 1, std::unique_ptr<Directory>(current));
      for (uint64_t i = 0; i < current->size(); ++i) {
        const uint64_t first = i << (64 - current->depth() - 1) << 1;
        twice->Set(current->depth() == 0 ? 0 : first, current->depth(), current->at(i));
      }
      current = twice.release();
      directory.store(current, std::memory_order_release);
    }
    current->Set(prefix, depth, upper.get());
  }
  shard_count.fetch_add(1, std::memory_order_relaxed);
  held.Insert(shard, upper.release());
  return true;
}

AddOutcome ExactSet::Impl::Add(HeldShards& held, const Fingerprint& fingerprint) {
  bool grow = true;
  for (;;) {
    Shard* const shard = held.Find(fingerprint);
    const Shard::Added added = shard->Add(fingerprint);
    if (added == Shard::Added::kPresent) return AddOutcome::kPresent;
    if (added == Shard::Added::kAdded) break;
    bool memory = true;
    if (grow && shard->Crowded()) {
      if (!shard->AtMaximum()) {
        if (shard->Grow(context)) continue;
        memory = false;
      } else if (MaySplit(*shard)) {
        if (Split(held, shard)) continue;
        memory = false;
      }
    }
    if (shard->AddBeyondLimit(fingerprint)) break;
    if (!memory || !shard->AddToOverflow(context, fingerprint)) return AddOutcome::kNoMemory;
    break;
  }
  ++held.size_change_;
  return AddOutcome::kAdded;
}

HeldShards::~HeldShards() {
  if (size_change_ != 0) {
    set_->size.fetch_add(static_cast<uint64_t>(size_change_), std::memory_order_relaxed);
  }
  if (first_ != nullptr) first_->Unlock();
  for (Shard* shard : others_) shard->Unlock();
}

void HeldShards::Acquire(const Fingerprint& fingerprint) {
  if (first_ == nullptr) {
    first_ = set_->Lock(fingerprint);
    return;
  }
  const Shard* last = others_.empty() ? first_ : others_.back();
  if (last->Covers(fingerprint)) return;
  FIRSTSEEN_CHECK(fingerprint.hi > last->prefix());
  others_.push_back(set_->Lock(fingerprint));
}

void HeldShards::Insert(Shard* neighbour, Shard* shard) {
  if (neighbour == first_) {
    others_.insert(others_.begin(), shard);
    return;
  }
  const auto found = std::find(others_.begin(), others_.end(), neighbour);
  FIRSTSEEN_CHECK(found != others_.end());
  others_.insert(found + 1, shard);
}

Shard* HeldShards::Find(const Fingerprint& fingerprint) const {
  if (first_->Covers(fingerprint)) return first_;
  const auto next =
      std::upper_bound(others_.begin(), others_.end(), fingerprint.hi,
                       [](uint64_t hi, const Shard* shard) { return hi < shard->prefix(); });
  FIRSTSEEN_CHECK(next != others_.begin() && next[-1]->Covers(fingerprint));
  return next[-1];
}

bool HeldShards::Contains(const Fingerprint& fingerprint) const {
  return Find(fingerprint)->Contains(fingerprint);
}

AddOutcome HeldShards::Add(const Fingerprint& fingerprint) { return set_->Add(*this, fingerprint); }

bool HeldShards::Remove(const Fingerprint& fingerprint) {
  if (!Find(fingerprint)->Remove(set_->context, fingerprint)) return false;
  --size_change_;
  return true;
}

uint64_t HeldShards::stamp(const Fingerprint& fingerprint) const {
  return Find(fingerprint)->stamp();
}

void HeldShards::set_stamp(const Fingerprint& fingerprint, uint64_t stamp) {
  Find(fingerprint)->set_stamp(stamp);
}

}  // namespace firstseen
