#include "exact/shard.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace firstseen {
namespace {

// Beyond this share of its slots in use a shard grows. Small ones fill up first.
constexpr uint64_t kLoadMaxPercent = 95;
constexpr int kLoadLimitedFrom = 8;  // groups
// A shard that is built anew (split, load) is filled to this.
constexpr uint64_t kLoadBuiltPercent = 90;
constexpr int kSmallGroups[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48};
constexpr size_t kOverflowEntryBytes = 64;

int NextGroups(int groups) {
  for (int small : kSmallGroups) {
    if (small > groups && small < Shard::kGroupsPerChunk) return small;
  }
  return (groups / Shard::kGroupsPerChunk + 1) * Shard::kGroupsPerChunk;
}

// Reused by every rebuild of a thread, so that a growing set does not allocate; a quarter megabyte
// at the most.
struct Scratch {
  std::vector<Uint128> values;
  std::vector<Uint128> displaced;
};
Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

Shard::Shard(const ShardContext& context, uint64_t prefix, int depth)
    : prefix_(prefix), geometry_(context.bits - depth, 0), depth_(depth) {}

bool Shard::ContainsKey(const Key& key, Uint128 value) const {
  const Group& home = *GroupAt(key.home);
  if (Find(home, key, 0) >= 0) return true;
  if (home.marked(key.tag)) {
    const Group& alternate = *GroupAt(geometry_.Alternate(key.home, key.remainder));
    if (Find(alternate, key, geometry_.alternate_flag()) >= 0) return true;
  }
  return overflow_ != nullptr && overflow_->values.contains(value);
}

bool Shard::Contains(const Fingerprint& fingerprint) const {
  if (count_ == 0) return false;
  const Uint128 value = ValueOf(fingerprint);
  return ContainsKey(KeyOf(value), value);
}

Shard::Answer Shard::ProbeHome(const Fingerprint& fingerprint) const {
  if (count_ == 0) return Answer::kNo;
  const Key key = KeyOf(ValueOf(fingerprint));
  const Group& home = *GroupAt(key.home);
  if (Find(home, key, 0) >= 0) return Answer::kYes;
  return home.marked(key.tag) || overflow_ != nullptr ? Answer::kUndecided : Answer::kNo;
}

void Shard::PrefetchAlternate(const Fingerprint& fingerprint) const {
  if (geometry_.groups() < 2) return;
  const Key key = KeyOf(ValueOf(fingerprint));
  PrefetchGroup(geometry_.Alternate(key.home, key.remainder));
}

bool Shard::OverLimit() const {
  return geometry_.groups() >= kLoadLimitedFrom &&
         uint64_t{count_} * 100 >= geometry_.slot_count() * kLoadMaxPercent;
}

Shard::Added Shard::Add(const Fingerprint& fingerprint) {
  if (geometry_.groups() == 0) return Added::kFull;
  const Uint128 value = ValueOf(fingerprint);
  const Key key = KeyOf(value);
  if (ContainsKey(key, value)) return Added::kPresent;
  if (OverLimit() || !Place(key)) return Added::kFull;
  ++count_;
  return Added::kAdded;
}

Shard::Added Shard::AddToHome(const Fingerprint& fingerprint) {
  if (geometry_.groups() == 0) return Added::kUndecided;
  const Key key = KeyOf(ValueOf(fingerprint));
  Group* const home = GroupAt(key.home);
  if (Find(*home, key, 0) >= 0) return Added::kPresent;
  if (home->marked(key.tag) || overflow_ != nullptr || !HasRoom(*home) || OverLimit()) {
    return Added::kUndecided;
  }
  Append(home, key, 0);
  ++count_;
  return Added::kAdded;
}

bool Shard::AddBeyondLimit(const Fingerprint& fingerprint) {
  if (geometry_.groups() == 0 || !Place(KeyOf(ValueOf(fingerprint)))) return false;
  ++count_;
  return true;
}

bool Shard::AddToOverflow(ShardContext& context, const Fingerprint& fingerprint) {
  if (!context.arena->Charge(kOverflowEntryBytes)) return false;
  InsertOverflow(context, ValueOf(fingerprint), /*charged=*/true);
  ++count_;
  return true;
}

void Shard::InsertOverflow(ShardContext& context, Uint128 value, bool charged) {
  if (overflow_ == nullptr) overflow_ = std::make_unique<Overflow>();
  overflow_->values.insert(value);
  overflow_->charged += charged ? 1 : 0;
  context.storage_bytes.fetch_add(kOverflowEntryBytes, std::memory_order_relaxed);
}

bool Shard::Remove(ShardContext& context, const Fingerprint& fingerprint) {
  if (count_ == 0) return false;
  const Uint128 value = ValueOf(fingerprint);
  const Key key = KeyOf(value);
  Group* const home = GroupAt(key.home);
  const int slots = geometry_.slots();
  const int rest_bits = geometry_.rest_bits();
  if (const int i = Find(*home, key, 0); i >= 0) {
    home->Erase(slots, rest_bits, i);
    --count_;
    return true;
  }
  if (home->marked(key.tag)) {
    Group* const alternate = GroupAt(geometry_.Alternate(key.home, key.remainder));
    if (const int i = Find(*alternate, key, geometry_.alternate_flag()); i >= 0) {
      alternate->Erase(slots, rest_bits, i);
      --count_;
      return true;
    }
  }
  if (overflow_ == nullptr || overflow_->values.erase(value) == 0) return false;
  --count_;
  context.storage_bytes.fetch_sub(kOverflowEntryBytes, std::memory_order_relaxed);
  if (overflow_->charged > overflow_->values.size()) {
    context.arena->Discharge(kOverflowEntryBytes);
    --overflow_->charged;
  }
  if (overflow_->values.empty()) overflow_.reset();
  return true;
}

bool Shard::Place(const Key& key) {
  Group* const home = GroupAt(key.home);
  if (HasRoom(*home)) {
    Append(home, key, 0);
    return true;
  }
  if (geometry_.groups() < 2) return false;
  const uint32_t alternate = geometry_.Alternate(key.home, key.remainder);
  if (HasRoom(*GroupAt(alternate))) {
    Append(GroupAt(alternate), key, geometry_.alternate_flag());
    home->Mark(key.tag);
    return true;
  }
  return PlaceByMoving(key, alternate);
}

bool Shard::PlaceByMoving(const Key& key, uint32_t alternate) {
  const int slots = geometry_.slots();
  const int rest_bits = geometry_.rest_bits();
  int freed = 0;
  if (MoveOneAway(key.home, &freed)) {
    GroupAt(key.home)->Set(slots, rest_bits, freed, key.tag, key.rest);
    return true;
  }
  if (MoveOneAway(alternate, &freed)) {
    GroupAt(alternate)->Set(slots, rest_bits, freed, key.tag,
                            key.rest | geometry_.alternate_flag());
    GroupAt(key.home)->Mark(key.tag);
    return true;
  }
  return false;
}

// Copies one entry of the full group `from` to its other group and says which slot may now be
// overwritten.
bool Shard::MoveOneAway(uint32_t from, int* freed) {
  const int slots = geometry_.slots();
  const int rest_bits = geometry_.rest_bits();
  Group* const group = GroupAt(from);
  for (int i = 0; i < slots; ++i) {
    const uint8_t tag = group->tag(slots, i);
    const Uint128 rest = group->rest(rest_bits, i);
    const Uint128 remainder = geometry_.RemainderOf(rest, tag);
    const bool at_home = (rest & geometry_.alternate_flag()) == 0;
    Group* const other = GroupAt(at_home ? geometry_.Alternate(from, remainder)
                                         : geometry_.HomeOfAlternate(from, remainder));
    if (!HasRoom(*other)) continue;
    other->Append(slots, rest_bits, tag, rest ^ geometry_.alternate_flag());
    if (at_home) group->Mark(tag);
    *freed = i;
    return true;
  }
  return false;
}

void Shard::Collect(std::vector<Uint128>* values) const {
  values->clear();
  values->reserve(count_);
  const int slots = geometry_.slots();
  const int rest_bits = geometry_.rest_bits();
  const uint32_t groups = static_cast<uint32_t>(geometry_.groups());
  for (uint32_t g = 0; g < groups; ++g) {
    const Group& group = *GroupAt(g);
    const Uint128 lower = geometry_.LowerBound(g);
    for (int i = 0, used = group.count(); i < used; ++i) {
      const Uint128 rest = group.rest(rest_bits, i);
      const Uint128 remainder = geometry_.RemainderOf(rest, group.tag(slots, i));
      if ((rest & geometry_.alternate_flag()) == 0) {
        values->push_back(lower + remainder);
      } else {
        const uint32_t home = geometry_.HomeOfAlternate(g, remainder);
        values->push_back(geometry_.LowerBound(home) + remainder);
      }
    }
  }
  if (overflow_ != nullptr) {
    values->insert(values->end(), overflow_->values.begin(), overflow_->values.end());
  }
  FIRSTSEEN_CHECK(values->size() == count_);
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
  if (old_chunks == 0 && old_groups > 0) {
    arena.FreeSmall(chunks_[0].load(std::memory_order_relaxed), size_t(old_groups) * Group::kBytes);
  }
  for (int i = old_chunks; i < chunks; ++i) {
    chunks_[size_t(i)].store(fresh[size_t(i)], std::memory_order_relaxed);
  }
  for (int i = chunks; i < old_chunks; ++i) {
    arena.Free(chunks_[size_t(i)].load(std::memory_order_relaxed));
    chunks_[size_t(i)].store(nullptr, std::memory_order_relaxed);
  }
  if (chunks == 0) chunks_[0].store(small, std::memory_order_relaxed);
  return true;
}

// Puts `values`, which need not be in any order, into `groups` groups that Reserve has made. First
// every key that fits into its home group, then the others: so the fewest are displaced.
void Shard::Rebuild(ShardContext& context, int depth, int groups, std::span<const Uint128> values) {
  if (overflow_ != nullptr) {
    context.arena->Discharge(overflow_->charged * kOverflowEntryBytes);
    context.storage_bytes.fetch_sub(overflow_->values.size() * kOverflowEntryBytes,
                                    std::memory_order_relaxed);
    overflow_.reset();
  }
  const Geometry old = geometry_;
  depth_ = depth;
  geometry_ = Geometry(context.bits - depth, groups);
  hint_.store(static_cast<uint32_t>(groups) | (static_cast<uint32_t>(depth) << 16),
              std::memory_order_relaxed);
  context.slot_count.fetch_add(geometry_.slot_count() - old.slot_count(),
                               std::memory_order_relaxed);
  context.storage_bytes.fetch_add(
      static_cast<uint64_t>(groups - old.groups()) * uint64_t{Group::kBytes},
      std::memory_order_relaxed);
  for (uint32_t g = 0; g < static_cast<uint32_t>(groups); ++g) GroupAt(g)->Clear();
  count_ = static_cast<uint32_t>(values.size());
  if (groups == 0) return;

  std::vector<Uint128>& displaced = ThreadScratch().displaced;
  displaced.clear();
  for (const Uint128 value : values) {
    const Key key = KeyOf(value);
    Group* const home = GroupAt(key.home);
    if (HasRoom(*home)) {
      Append(home, key, 0);
    } else {
      displaced.push_back(value);
    }
  }
  for (const Uint128 value : displaced) {
    if (Place(KeyOf(value))) continue;
    InsertOverflow(context, value, context.arena->Charge(kOverflowEntryBytes));
  }
}

bool Shard::Grow(ShardContext& context) {
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(&values);
  const int old_groups = groups();
  int groups = old_groups == 0 && depth_ == context.depth_expected ? context.groups_expected
                                                                   : NextGroups(old_groups);
  if (!Reserve(context, old_groups, groups)) {
    if (old_groups != 0 || groups == 1) return false;
    groups = 1;
    if (!Reserve(context, old_groups, groups)) return false;
  }
  Rebuild(context, depth_, groups, values);
  return true;
}

bool Shard::SplitInto(ShardContext& context, Shard* upper) {
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(&values);
  const int half_bits = geometry_.value_bits() - 1;
  const auto middle = std::partition(values.begin(), values.end(), [half_bits](Uint128 value) {
    return (value >> half_bits) == 0;
  });
  const std::span<Uint128> low(values.begin(), middle);
  const std::span<Uint128> high(middle, values.end());
  for (Uint128& value : high) value &= LowBits(half_bits);

  const int low_groups = GroupsFor(context, depth_ + 1, low.size());
  const int high_groups = GroupsFor(context, depth_ + 1, high.size());
  if (!upper->Reserve(context, 0, high_groups)) return false;
  if (!Reserve(context, groups(), low_groups)) {
    upper->Reserve(context, high_groups, 0);
    return false;
  }
  Rebuild(context, depth_ + 1, low_groups, low);
  upper->Rebuild(context, depth_, high_groups, high);
  upper->stamp_ = stamp_;
  return true;
}

bool Shard::Build(ShardContext& context, std::span<const Fingerprint> fingerprints) {
  FIRSTSEEN_CHECK(count_ == 0);
  const int groups = GroupsFor(context, depth_, fingerprints.size());
  if (!Reserve(context, this->groups(), groups)) return false;
  std::vector<Uint128>& values = ThreadScratch().values;
  values.clear();
  values.reserve(fingerprints.size());
  for (const Fingerprint& fingerprint : fingerprints) {
    FIRSTSEEN_CHECK(Covers(fingerprint));
    values.push_back(ValueOf(fingerprint));
  }
  Rebuild(context, depth_, groups, values);
  return true;
}

uint64_t Shard::BuildMax(const ShardContext& context, int depth) {
  return Geometry(context.bits - depth, kGroupsMax).slot_count() * kLoadMaxPercent / 100;
}

int Shard::GroupsFor(const ShardContext& context, int depth, uint64_t count) {
  if (count == 0) return 0;
  int groups = 1;
  while (groups < kGroupsMax &&
         Geometry(context.bits - depth, groups).slot_count() * kLoadBuiltPercent < count * 100) {
    groups = NextGroups(groups);
  }
  return groups;
}

void Shard::Copy(Raw* raw) const {
  raw->prefix = prefix_;
  raw->depth = depth_;
  raw->stamp = stamp_;
  raw->geometry = geometry_;
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
    const Uint128 aligned = (value << (128 - geometry.value_bits())) >> raw.depth;
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
  Rebuild(context, depth_, 0, {});
}

}  // namespace firstseen
