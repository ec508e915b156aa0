#include "exact/shard.h"

#include "exact/shard_limits.h"

namespace firstseen {
Shard::Shard(const ShardContext& context, uint64_t prefix, int depth)
    : prefix_(prefix), anchor_(context.arena->anchor()) {
  set_geometry(Geometry(context.bits, depth, 0));
}

bool Shard::ContainsKey(const Geometry& geometry, const Key& key, Uint128 value) const {
  const Group& home = *GroupAt(key.home);
  if (Find(geometry, home, key, 0) >= 0) return true;
  if (Marked(geometry, home, key.tag)) {
    const Group& alternate = *GroupAt(geometry.Alternate(key.home, key.remainder));
    if (Find(geometry, alternate, key, geometry.alternate_flag()) >= 0) return true;
  }
  return overflow_ != nullptr && overflow_->values.contains(value);
}

bool Shard::Contains(const Fingerprint& fingerprint) const {
  if (count_ == 0) return false;
  const Geometry geometry = this->geometry();
  const Uint128 value = geometry.ValueOf(fingerprint);
  return ContainsKey(geometry, KeyOf(geometry, value), value);
}

bool Shard::OverLimit(const Geometry& geometry) const {
  return geometry.groups() >= kLoadLimitedFrom &&
         uint64_t{count_} * 100 >= geometry.slot_count() * kLoadMaxPercent;
}

Shard::Added Shard::Add(const Fingerprint& fingerprint) {
  const Geometry geometry = this->geometry();
  if (geometry.groups() == 0) return Added::kFull;
  const Uint128 value = geometry.ValueOf(fingerprint);
  const Key key = KeyOf(geometry, value);
  if (ContainsKey(geometry, key, value)) return Added::kPresent;
  if (OverLimit(geometry)) return Added::kFull;
  const Writing writing(this);
  if (!Place(geometry, key)) return Added::kFull;
  ++count_;
  return Added::kAdded;
}

Shard::Added Shard::AddProbed(Probe* probe) {
  if (probe->home == nullptr || version_.load(std::memory_order_relaxed) != probe->version) {
    return Added::kUndecided;
  }
  const Geometry& geometry = probe->geometry;
  const Key& key = probe->key;
  if (probe->home->FindIn(probe->matches, geometry.rest_bits(), key.remainder >> 8) >= 0) {
    return Added::kPresent;
  }
  if (overflow_ != nullptr || OverLimit(geometry)) {
    probe->home = nullptr;  // not for PlaceProbed
    return Added::kUndecided;
  }
  if (Full(key.home) || Marked(geometry, *probe->home, key.tag)) {
    PrefetchPlacing(probe);
    return Added::kUndecided;
  }
  const Writing writing(this);
  Append(geometry, key.home, key.tag, key.remainder >> 8);
  ++count_;
  return Added::kAdded;
}

Shard::Added Shard::PlaceProbed(const Probe& probe) {
  if (probe.home == nullptr || version_.load(std::memory_order_relaxed) != probe.version) {
    return Added::kUndecided;
  }
  const Geometry& geometry = probe.geometry;
  if (Marked(geometry, *probe.home, probe.key.tag)) {
    const uint32_t alternate = geometry.Alternate(probe.key.home, probe.key.remainder);
    if (Find(geometry, *GroupAt(alternate), probe.key, geometry.alternate_flag()) >= 0) {
      return Added::kPresent;
    }
  }
  const Writing writing(this);
  if (!Place(geometry, probe.key, probe.move_slot)) return Added::kUndecided;
  ++count_;
  return Added::kAdded;
}

bool Shard::AddBeyondLimit(const Fingerprint& fingerprint) {
  const Geometry geometry = this->geometry();
  if (geometry.groups() == 0) return false;
  const Writing writing(this);
  if (!Place(geometry, KeyOf(geometry, geometry.ValueOf(fingerprint)))) return false;
  ++count_;
  return true;
}

bool Shard::AddToOverflow(ShardContext& context, const Fingerprint& fingerprint) {
  if (!context.arena->Charge(kOverflowEntryBytes)) return false;
  const Writing writing(this);
  InsertOverflow(context, geometry().ValueOf(fingerprint), /*charged=*/true);
  ++count_;
  return true;
}

void Shard::InsertOverflow(ShardContext& context, Uint128 value, bool charged) {
  if (overflow_ == nullptr) overflow_ = std::make_unique<Overflow>();
  has_overflow_.store(true, std::memory_order_release);
  overflow_->values.insert(value);
  overflow_->charged += charged ? 1 : 0;
  context.storage_bytes.fetch_add(kOverflowEntryBytes, std::memory_order_relaxed);
}

bool Shard::Remove(ShardContext& context, const Fingerprint& fingerprint) {
  if (count_ == 0) return false;
  const Geometry geometry = this->geometry();
  const Uint128 value = geometry.ValueOf(fingerprint);
  const Key key = KeyOf(geometry, value);
  const Writing writing(this);
  uint32_t group = key.home;
  int i = Find(geometry, *GroupAt(group), key, 0);
  if (i < 0 && Marked(geometry, *GroupAt(group), key.tag)) {
    group = geometry.Alternate(key.home, key.remainder);
    i = Find(geometry, *GroupAt(group), key, geometry.alternate_flag());
  }
  if (i >= 0) {
    GroupAt(group)->Erase(geometry.slots(), geometry.rest_bits(), i);
    ClearFull(group);
    --count_;
    return true;
  }
  if (overflow_ == nullptr || overflow_->values.erase(value) == 0) return false;
  --count_;
  context.storage_bytes.fetch_sub(kOverflowEntryBytes, std::memory_order_relaxed);
  if (overflow_->charged > overflow_->values.size()) {
    context.arena->Discharge(kOverflowEntryBytes);
    --overflow_->charged;
  }
  if (overflow_->values.empty()) {
    has_overflow_.store(false, std::memory_order_release);
    overflow_.reset();
  }
  return true;
}

bool Shard::Place(const Geometry& geometry, const Key& key, int first_slot) {
  const Uint128 rest = key.remainder >> 8;
  if (!Full(key.home)) {
    Append(geometry, key.home, key.tag, rest);
    return true;
  }
  if (geometry.groups() < 2) return false;
  const uint32_t alternate = geometry.Alternate(key.home, key.remainder);
  if (!Full(alternate)) {
    Append(geometry, alternate, key.tag, rest | geometry.alternate_flag());
    Mark(geometry, key.home, key.tag);
    return true;
  }
  return PlaceByMoving(geometry, key, alternate, first_slot);
}

bool Shard::PlaceByMoving(const Geometry& geometry, const Key& key, uint32_t alternate,
                          int first_slot) {
  const int slots = geometry.slots();
  const int rest_bits = geometry.rest_bits();
  const Uint128 rest = key.remainder >> 8;
  int freed = 0;
  if (MoveOneAway(geometry, key.home, first_slot, &freed)) {
    GroupAt(key.home)->Set(slots, rest_bits, freed, key.tag, rest);
    return true;
  }
  if (MoveOneAway(geometry, alternate, Group::kSlotsMax, &freed)) {
    GroupAt(alternate)->Set(slots, rest_bits, freed, key.tag, rest | geometry.alternate_flag());
    Mark(geometry, key.home, key.tag);
    return true;
  }
  return false;
}

// Copies one entry of the full group `from` to its other group and says which slot may now be
// overwritten.
bool Shard::MoveOneAway(const Geometry& geometry, uint32_t from, int first_slot, int* freed) {
  const Move move = FindMove(geometry, from, first_slot);
  if (move.slot < 0) return false;
  Group* const group = GroupAt(from);
  const uint8_t tag = group->tag(geometry.slots(), move.slot);
  const Uint128 rest = group->rest(geometry.rest_bits(), move.slot);
  Append(geometry, move.to, tag, rest ^ geometry.alternate_flag());
  if ((rest & geometry.alternate_flag()) == 0) Mark(geometry, from, tag);
  *freed = move.slot;
  return true;
}

// An entry of the full group `from` whose other group has a free slot. Looks at `first_slot` first
// and then downwards: the last slots are in the cache line of the tags.
Shard::Move Shard::FindMove(const Geometry& geometry, uint32_t from, int first_slot) const {
  const int slots = geometry.slots();
  const Group& group = *GroupAt(from);
  int i = first_slot < slots ? first_slot : slots - 1;
  for (int k = 0; k < slots; ++k, i = i == 0 ? slots - 1 : i - 1) {
    const Uint128 rest = group.rest(geometry.rest_bits(), i);
    const Uint128 remainder = geometry.RemainderFrom(rest, group.tag(slots, i));
    const uint32_t to = (rest & geometry.alternate_flag()) == 0
                            ? geometry.Alternate(from, remainder)
                            : geometry.HomeOfAlternate(from, remainder);
    if (!Full(to)) return {i, to};
  }
  return {-1, 0};
}

// Fetches the groups that adding this key will most likely write to.
void Shard::PrefetchPlacing(Probe* probe) const {
  const uint32_t home = probe->key.home;
  const uint32_t alternate = probe->geometry.Alternate(home, probe->key.remainder);
  __builtin_prefetch(reinterpret_cast<const char*>(GroupAt(alternate)) + 64);
  if (!Full(home) || !Full(alternate)) return;
  const Move move = FindMove(probe->geometry, home, Group::kSlotsMax);
  if (move.slot < 0) return;
  probe->move_slot = move.slot;
  __builtin_prefetch(reinterpret_cast<const char*>(GroupAt(move.to)) + 64);
}

}  // namespace firstseen
