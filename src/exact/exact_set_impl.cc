#include "exact/exact_set_impl.h"

#include <algorithm>
#include <memory>
#include <new>

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
// From so many shards on headers come from chunks of the arena.
constexpr size_t kHeadersOneByOne = 64;

}  // namespace

ExactSet::Impl::Impl(Arena* arena, const Options& options) {
  FIRSTSEEN_CHECK(options.bits >= 32 && options.bits <= 128);
  context.arena = arena;
  context.anchor = arena->anchor();
  context.bits = options.bits;
  context.expected = options.expected;
  // Shards scatter by the square root of their size: a little less than what one may hold.
  constexpr int kUnits = (ShardShape::kUnitsMin + Arena::kUnitsMax + 1) / 2;
  int depth = 0;
  while (depth < DepthMax() &&
         (options.expected >> depth) > Shard::BuildMaxFor(context, depth, kUnits) * 94 / 100) {
    ++depth;
  }
  auto fresh = std::make_unique<Directory>(depth, nullptr);
  for (uint64_t i = 0; i < fresh->size(); ++i) {
    const uint64_t prefix = depth == 0 ? 0 : i << (64 - depth);
    fresh->Set(prefix, depth, NewShard(prefix, depth, /*anyway=*/true));
  }
  shard_count = fresh->size();
  arena->ChargeAnyway(fresh->bytes());
  directory = fresh.release();
}

ExactSet::Impl::~Impl() {
  const std::unique_ptr<Directory> last(directory.load());
  uint64_t i = 0;
  while (i < last->size()) {
    const auto [shard, depth] = last->at(i);
    i += uint64_t{1} << (last->depth() - depth);
    shard->FreeStorage(context);
    shard->~Shard();
  }
  for (const Directory* one = last.get(); one != nullptr; one = one->previous()) {
    context.arena->Discharge(one->bytes());
  }
  MutexLock lock(header_mutex);
  for (void* block : header_blocks) {
    ::operator delete (block, std::align_val_t{alignof(Shard)});
    context.arena->Discharge(sizeof(Shard));
  }
  for (void* chunk : header_chunks) context.arena->Free(chunk, Arena::kUnitsMax);
}

void ExactSet::Impl::DropShard(Shard* shard) {
  shard->~Shard();
  MutexLock lock(header_mutex);
  spare_headers.push_back(shard);
}

Shard* ExactSet::Impl::NewShard(uint64_t prefix, int depth, bool anyway) {
  MutexLock lock(header_mutex);
  void* const header = NewHeader(anyway);
  return header == nullptr ? nullptr
                           : std::construct_at(static_cast<Shard*>(header), context, prefix, depth);
}

void* ExactSet::Impl::NewHeader(bool anyway) {
  if (!spare_headers.empty()) {
    void* const spare = spare_headers.back();
    spare_headers.pop_back();
    return spare;
  }
  if (next_header == headers_end && header_blocks.size() >= kHeadersOneByOne) {
    if (void* const chunk = context.arena->Allocate(Arena::kUnitsMax); chunk != nullptr) {
      header_chunks.push_back(chunk);
      next_header = static_cast<char*>(chunk);
      headers_end =
          next_header + Arena::kUnitsMax * Arena::kUnitBytes / sizeof(Shard) * sizeof(Shard);
    }
  }
  if (next_header != headers_end) {
    void* const header = next_header;
    next_header += sizeof(Shard);
    return header;
  }
  if (anyway) {
    context.arena->ChargeAnyway(sizeof(Shard));
  } else if (!context.arena->Charge(sizeof(Shard))) {
    return nullptr;
  }
  header_blocks.push_back(::operator new (sizeof(Shard), std::align_val_t{alignof(Shard)}));
  return header_blocks.back();
}

uint64_t ExactSet::Impl::HeaderBytes() const {
  uint64_t bytes = shard_count.load(std::memory_order_relaxed) * sizeof(Shard);
  for (const Directory* one = directory.load(std::memory_order_acquire); one != nullptr;
       one = one->previous()) {
    bytes += one->bytes();
  }
  return bytes;
}

int ExactSet::Impl::DepthMax() const {
  return std::min(kDirectoryDepthMax, context.bits - kValueBitsMin);
}

Shard* ExactSet::Impl::Lock(const Fingerprint& fingerprint) const {
  for (;;) {
    Shard* const shard = directory.load(std::memory_order_acquire)->Find(fingerprint.hi).shard;
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
  if (!Deepen(depth)) return false;
  Shard* const upper = NewShard(prefix, depth, /*anyway=*/false);
  if (upper == nullptr) return false;
  upper->Lock();
  if (!shard->SplitInto(context, upper)) {
    upper->Unlock();
    DropShard(upper);
    return false;
  }
  {
    MutexLock lock(directory_mutex);
    Directory* const current = directory.load(std::memory_order_relaxed);
    current->Set(prefix, depth, upper);
    current->Set(shard->prefix(), depth, shard);
  }
  shard_count.fetch_add(1, std::memory_order_relaxed);
  held.Insert(shard, upper);
  return true;
}

// Doubles the directory until it tells shards of this depth apart; false when out of memory.
bool ExactSet::Impl::Deepen(int depth) {
  if (directory.load(std::memory_order_acquire)->depth() >= depth) return true;
  MutexLock lock(directory_mutex);
  Directory* current = directory.load(std::memory_order_relaxed);
  while (current->depth() < depth) {
    if (!context.arena->Charge(Directory::BytesOf(current->depth() + 1))) return false;
    auto twice =
        std::make_unique<Directory>(current->depth() + 1, std::unique_ptr<Directory>(current));
    twice->CopyFromPrevious();
    current = twice.release();
    directory.store(current, std::memory_order_release);
  }
  return true;
}

AddOutcome ExactSet::Impl::Add(HeldShards& held, const Fingerprint& fingerprint) {
  bool grow = true;
  for (;;) {
    Shard* const shard = held.Find(fingerprint);
    const Shard::Added added = shard->Add(context, fingerprint);
    if (added == Shard::Added::kPresent) return AddOutcome::kPresent;
    if (added == Shard::Added::kAdded) break;
    bool memory = true;
    if (grow && shard->Crowded(context)) {
      if (!shard->AtMaximum()) {
        if (shard->Grow(context)) continue;
        memory = false;
      } else if (MaySplit(*shard)) {
        if (Split(held, shard)) continue;
        memory = false;
      }
    }
    if (shard->AddBeyondLimit(context, fingerprint)) break;
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
  return Find(fingerprint)->Contains(set_->context, fingerprint);
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
