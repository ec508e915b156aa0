// Growing, splitting and copying shards: all that touches every entry.
#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "exact/shard.h"
#include "exact/shard_limits.h"

namespace firstseen {
namespace {

// Sizes that a shard goes through: blocks of a few groups, then chunks. From 8 to 15 chunks, where
// the shards of a large set are, it is six steps of 9 to 18 percent. Each key is moved about nine
// times while the set doubles; finer steps would move it more often, coarser ones waste memory.
constexpr int kSmallGroups[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
constexpr int kChunks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15};
static_assert(kChunks[std::size(kChunks) - 1] == Shard::kChunksMax);

int NextGroups(int groups) {
  for (int next : kSmallGroups) {
    if (next > groups && next < Shard::kGroupsPerChunk) return next;
  }
  for (int next : kChunks) {
    if (next * Shard::kGroupsPerChunk > groups) return next * Shard::kGroupsPerChunk;
  }
  return Shard::kGroupsMax;
}

}  // namespace

// Entries by home group, unpacked; those beyond what a group can hold are kept apart. The memory is
// the thread's scratch: one at a time.
class Shard::Unpacked {
 public:
  explicit Unpacked(const Geometry& geometry);

  void Add(uint32_t home, Uint128 remainder) {
    UnpackedGroup& group = groups_[home];
    if (group.count < slots_) [[likely]] {
      group.remainder[group.count++] = remainder;
    } else {
      displaced_.push_back({home, static_cast<uint8_t>(remainder), remainder});
    }
  }
  const UnpackedGroup& group(uint32_t index) const { return groups_[index]; }
  std::span<const Key> displaced() const { return displaced_; }

 private:
  const uint64_t slots_;
  UnpackedGroup* const groups_;
  std::vector<Key>& displaced_;
};

namespace {

// Reused by every rebuild of a thread, so that a growing set does not allocate; half a megabyte at
// the most.
struct Scratch {
  std::vector<Uint128> values;
  std::vector<Shard::Key> displaced;
  std::vector<UnpackedGroup> groups;
};
Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

Shard::Unpacked::Unpacked(const Geometry& geometry)
    : slots_(static_cast<uint64_t>(geometry.slots())),
      groups_((ThreadScratch().groups.resize(Shard::kGroupsMax), ThreadScratch().groups.data())),
      displaced_(ThreadScratch().displaced) {
  for (int g = 0; g < geometry.groups(); ++g) groups_[g].count = 0;
  displaced_.clear();
}

void Shard::Collect(std::vector<Uint128>* values) const {
  const Geometry geometry = this->geometry();
  values->resize(count_);
  Uint128* next = values->data();
  for (uint32_t g = 0; g < static_cast<uint32_t>(geometry.groups()); ++g) {
    const Group& group = *GroupAt(g);
    FIRSTSEEN_CHECK(next + group.count() <= values->data() + count_);
    group.ForEach(geometry.slots(), geometry.rest_bits(), [&](uint8_t tag, Uint128 rest) {
      const Uint128 remainder = geometry.RemainderFrom(rest, tag);
      const bool at_home = (rest & geometry.alternate_flag()) == 0;
      const uint32_t home = at_home ? g : geometry.HomeOfAlternate(g, remainder);
      *next++ = geometry.ValueFrom(home, remainder);
    });
  }
  if (overflow_ != nullptr) {
    for (const Uint128 value : overflow_->values) *next++ = value;
  }
  FIRSTSEEN_CHECK(next == values->data() + count_);
}

// Gets or gives back memory for `groups` groups. The content is lost when it returns true and
// intact when it returns false.
bool Shard::Reserve(ShardContext& context, int old_groups, int groups) {
  Arena& arena = *context.arena;
  const int old_chunks = old_groups / kGroupsPerChunk;
  const int chunks = groups / kGroupsPerChunk;
  Group* small = nullptr;
  if (chunks == 0 && groups > 0) {
    small = static_cast<Group*>(arena.AllocateSmall(size_t(groups) * Group::kBytes));
    if (small == nullptr) return false;
  }
  std::array<Group*, kChunksMax> fresh{};
  for (int i = old_chunks; i < chunks; ++i) {
    fresh[size_t(i)] = static_cast<Group*>(arena.Allocate());
    if (fresh[size_t(i)] == nullptr) {
      while (--i >= old_chunks) arena.Free(fresh[size_t(i)]);
      return false;
    }
  }
  const Writing writing(this);
  if (small_ != nullptr) arena.FreeSmall(small_, size_t(old_groups) * Group::kBytes);
  small_ = small;
  for (int i = old_chunks; i < chunks; ++i) {
    const auto offset = reinterpret_cast<const char*>(fresh[size_t(i)]) - anchor_;
    chunks_[size_t(i)].store(static_cast<uint32_t>(size_t(offset) / Arena::kChunkBytes),
                             std::memory_order_release);
  }
  for (int i = chunks; i < old_chunks; ++i) {
    arena.Free(Chunk(chunks_[size_t(i)].load(std::memory_order_relaxed)));
    chunks_[size_t(i)].store(0, std::memory_order_release);
  }
  return true;
}

// Puts `values`, which need not be in any order, into `groups` groups that Reserve has made.
void Shard::Rebuild(ShardContext& context, int depth, int groups, std::span<const Uint128> values) {
  const Writing writing(this);
  if (overflow_ != nullptr) {
    context.arena->Discharge(overflow_->charged * kOverflowEntryBytes);
    context.storage_bytes.fetch_sub(overflow_->values.size() * kOverflowEntryBytes,
                                    std::memory_order_relaxed);
    overflow_.reset();
    has_overflow_.store(false, std::memory_order_release);
  }
  Publish(context, Geometry(context.bits, depth, groups));
  count_ = static_cast<uint32_t>(values.size());
  if (groups > 0) Fill(context, values);
}

void Shard::Publish(ShardContext& context, const Geometry& fresh) {
  const Geometry old = geometry();
  set_geometry(fresh);
  context.slot_count.fetch_add(fresh.slot_count() - old.slot_count(), std::memory_order_relaxed);
  context.storage_bytes.fetch_add(
      static_cast<uint64_t>(fresh.groups() - old.groups()) * uint64_t{Group::kBytes},
      std::memory_order_relaxed);
}

void Shard::Fill(ShardContext& context, std::span<const Uint128> values) {
  const Geometry geometry = this->geometry();
  Unpacked unpacked(geometry);
  for (const Uint128 value : values) {
    const uint32_t home = geometry.HomeOf(value);
    unpacked.Add(home, geometry.RemainderOf(home, value));
  }
  PackAll(context, unpacked);
}

// First every key that fits into its home group, then the others: so the fewest are displaced.
void Shard::PackAll(ShardContext& context, const Unpacked& unpacked) {
  const Geometry geometry = this->geometry();
  full_.fill(0);
  for (uint32_t g = 0; g < static_cast<uint32_t>(geometry.groups()); ++g) {
    const UnpackedGroup& group = unpacked.group(g);
    if (group.count == static_cast<uint64_t>(geometry.slots())) SetFull(g);
    GroupAt(g)->Pack(geometry.slots(), geometry.rest_bits(), group);
  }
  PlaceAll(context, unpacked.displaced());
}

void Shard::PlaceAll(ShardContext& context, std::span<const Key> keys) {
  const Geometry geometry = this->geometry();
  for (const Key& key : keys) {
    if (Place(geometry, key)) continue;
    InsertOverflow(context, geometry.ValueFrom(key.home, key.remainder),
                   context.arena->Charge(kOverflowEntryBytes));
  }
}

bool Shard::Grow(ShardContext& context) {
  const Geometry old = geometry();
  const int groups = old.groups() == 0 && old.depth() == context.depth_expected
                         ? context.groups_expected
                         : NextGroups(old.groups());
  if (old.groups() >= kGroupsPerChunk && old.CanRehome() && overflow_ == nullptr) {
    return GrowStreaming(context, groups);
  }
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(&values);
  if (Reserve(context, old.groups(), groups)) {
    Rebuild(context, old.depth(), groups, values);
    return true;
  }
  if (old.groups() != 0 || groups == 1 || !Reserve(context, 0, 1)) return false;
  Rebuild(context, old.depth(), 1, values);
  return true;
}

// The common case: moves remainders in place, from the last old group to the first. What lies in
// group g goes to new groups at and a little above g * new / old groups, so a window of a few new
// groups is open at any time, and those behind it are written where nothing is read any more.
bool Shard::GrowStreaming(ShardContext& context, int groups) {
  const Geometry old = geometry();
  const Geometry fresh(context.bits, old.depth(), groups);
  if (!Reserve(context, old.groups(), groups)) return false;
  const Writing writing(this);
  full_.fill(0);
  const auto slots = static_cast<uint64_t>(fresh.slots());
  std::vector<Key>& displaced = ThreadScratch().displaced;
  displaced.clear();
  constexpr uint32_t kReadAhead = 8;  // groups
  std::array<UnpackedGroup, 16> window;
  for (UnpackedGroup& group : window) group.count = 0;
  int next = groups - 1;  // the new groups above it are written
  const auto write_down_to = [&](int last) {
    for (; next >= last; --next) {
      UnpackedGroup* const group = &window[static_cast<size_t>(next) % window.size()];
      if (group->count == slots) SetFull(static_cast<uint32_t>(next));
      GroupAt(static_cast<uint32_t>(next))->Pack(fresh.slots(), fresh.rest_bits(), *group);
      group->count = 0;
    }
  };
  const auto move = [&](uint32_t g, uint8_t tag, Uint128 rest) {
    Uint128 remainder = (rest << 8) | tag;
    if ((rest & old.alternate_flag()) != 0) [[unlikely]] {
      remainder = old.RemainderFrom(rest, tag);
      const uint32_t home = fresh.Rehome(old, old.HomeOfAlternate(g, remainder), &remainder);
      displaced.push_back({home, static_cast<uint8_t>(remainder), remainder});
      return;
    }
    const uint32_t home = fresh.Rehome(old, g, &remainder);
    UnpackedGroup* const group = &window[home % window.size()];
    if (group->count < slots) [[likely]] {
      group->remainder[group->count++] = remainder;
    } else {
      displaced.push_back({home, static_cast<uint8_t>(remainder), remainder});
    }
  };
  for (int i = old.groups() - 2; i >= 0; i -= 2) {  // whole chunks: an even number
    const auto g = static_cast<uint32_t>(i);
    if (g >= kReadAhead) {
      GroupAt(g - kReadAhead)->Prefetch();
      GroupAt(g - kReadAhead + 1)->Prefetch();
    }
    Group::ForEachOfTwo(
        GroupAt(g), GroupAt(g + 1), old.slots(), old.rest_bits(),
        [&](bool first, uint8_t tag, Uint128 rest) { move(first ? g : g + 1, tag, rest); });
    write_down_to(static_cast<int>(fresh.HomeOf(old.ValueFrom(g, 0))) + 2);
  }
  write_down_to(0);
  Publish(context, fresh);
  PlaceAll(context, displaced);
  return true;
}

bool Shard::SplitInto(ShardContext& context, Shard* upper) {
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(&values);
  const auto middle = std::partition(values.begin(), values.end(),
                                     [](Uint128 value) { return (value >> 127) == 0; });
  const std::span<Uint128> low(values.begin(), middle);
  const std::span<Uint128> high(middle, values.end());
  for (Uint128& value : values) value <<= 1;

  const int depth = upper->depth();
  const int low_groups = GroupsFor(context, depth, low.size());
  const int high_groups = GroupsFor(context, depth, high.size());
  if (!upper->Reserve(context, 0, high_groups)) return false;
  if (!Reserve(context, groups(), low_groups)) {
    upper->Reserve(context, high_groups, 0);
    return false;
  }
  Rebuild(context, depth, low_groups, low);
  upper->Rebuild(context, depth, high_groups, high);
  upper->stamp_ = stamp_;
  return true;
}

bool Shard::Build(ShardContext& context, std::span<const Fingerprint> fingerprints) {
  FIRSTSEEN_CHECK(count_ == 0);
  const int groups = GroupsFor(context, depth(), fingerprints.size());
  if (!Reserve(context, this->groups(), groups)) return false;
  std::vector<Uint128>& values = ThreadScratch().values;
  values.clear();
  values.reserve(fingerprints.size());
  const Geometry geometry = this->geometry();
  for (const Fingerprint& fingerprint : fingerprints) {
    FIRSTSEEN_CHECK(Covers(fingerprint));
    values.push_back(geometry.ValueOf(fingerprint));
  }
  Rebuild(context, depth(), groups, values);
  return true;
}

uint64_t Shard::BuildMax(const ShardContext& context, int depth) {
  return Geometry(context.bits, depth, kGroupsMax).slot_count() * kLoadMaxPercent / 100;
}

int Shard::GroupsFor(const ShardContext& context, int depth, uint64_t count) {
  if (count == 0) return 0;
  int groups = 1;
  while (groups < kGroupsMax &&
         Geometry(context.bits, depth, groups).slot_count() * kLoadBuiltPercent < count * 100) {
    groups = NextGroups(groups);
  }
  return groups;
}

void Shard::Copy(Raw* raw) const {
  raw->prefix = prefix_;
  raw->stamp = stamp_;
  raw->geometry = geometry();
  Collect(&raw->values);
}

void Shard::Sorted(const Raw& raw, std::vector<Fingerprint>* fingerprints) {
  // Home groups are in the order of the values: distribute by home, then sort a dozen at a time.
  const Geometry& geometry = raw.geometry;
  std::vector<uint32_t> ends(static_cast<size_t>(geometry.groups()) + 1);
  for (const Uint128 value : raw.values) ++ends[geometry.HomeOf(value)];
  uint32_t end = 0;
  for (uint32_t& entry : ends) {
    const uint32_t size = entry;
    entry = end;
    end += size;
  }
  fingerprints->resize(raw.values.size());
  const Uint128 prefix = Uint128{raw.prefix} << 64;
  for (const Uint128 value : raw.values) {
    const Uint128 aligned = value >> geometry.depth();
    (*fingerprints)[ends[geometry.HomeOf(value)]++] = ToFingerprint(prefix | aligned);
  }
  uint32_t begin = 0;
  for (const uint32_t next : ends) {
    std::sort(fingerprints->begin() + begin, fingerprints->begin() + next);
    begin = next;
  }
}

void Shard::FreeStorage(ShardContext& context) {
  Reserve(context, groups(), 0);
  Rebuild(context, depth(), 0, {});
}

}  // namespace firstseen
