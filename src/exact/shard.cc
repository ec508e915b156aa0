#include "exact/shard.h"

#include "exact/shard_limits.h"

namespace firstseen {

Shard::Shard(const ShardContext& context, uint64_t prefix, int depth)
    : state_(ShardState({}, depth).word()), prefix_(prefix), anchor_(context.anchor) {}

uint64_t Shard::count() const {
  return state().count() + (overflow_ == nullptr ? 0 : overflow_->values.size());
}

bool Shard::Crowded(const ShardContext& context) const {
  return 2 * count() >= geometry(context).slot_count();
}

bool Shard::ContainsKey(const Geometry& geometry, const Key& key, Uint128 value) const {
  const Group& home = *GroupAt(geometry, key.home);
  if (FindHome(geometry, home, key) >= 0) return true;
  if (home.marked(geometry.layout(), key.tag)) {
    const Group& alternate = *GroupAt(geometry, geometry.Alternate(key.home, key.remainder));
    if (FindForeign(geometry, alternate, key) >= 0) return true;
  }
  return overflow_ != nullptr && overflow_->values.contains(value);
}

bool Shard::Contains(const ShardContext& context, const Fingerprint& fingerprint) const {
  const Geometry geometry = this->geometry(context);
  if (geometry.groups() == 0) return false;
  const Uint128 value = geometry.ValueOf(fingerprint);
  return ContainsKey(geometry, KeyOf(geometry, value), value);
}

bool Shard::OverLimit(const Geometry& geometry) const {
  return geometry.groups() >= kLoadLimitedFrom &&
         uint64_t{state().count()} * 1000 >= geometry.slot_count() * kLoadMaxPerMille;
}

Shard::Added Shard::Add(const ShardContext& context, const Fingerprint& fingerprint) {
  const Geometry geometry = this->geometry(context);
  if (geometry.groups() == 0) return Added::kFull;
  const Uint128 value = geometry.ValueOf(fingerprint);
  const Key key = KeyOf(geometry, value);
  if (ContainsKey(geometry, key, value)) return Added::kPresent;
  if (OverLimit(geometry)) return Added::kFull;
  const Writing writing(this);
  if (!Place(geometry, key)) return Added::kFull;
  AddToCount(1);
  return Added::kAdded;
}

void Shard::MatchForAdd(Probe* probe) const {
  if (probe->home == nullptr) return;
  const Group::Layout& layout = probe->geometry.layout();
  probe->alternate = nullptr;
  probe->move_slot = Group::Layout::kSlotsMax;
  probe->matches = probe->home->MatchHome(layout, probe->key.tag);
  if (probe->matches != 0) {
    probe->home->PrefetchRest(layout, std::countr_zero(probe->matches));
  }
  if (!probe->home->full(layout)) {
    probe->home->PrefetchRest(layout, probe->home->next_home_slot(layout));
    if (!probe->home->marked(layout, probe->key.tag)) return;
  } else {
    probe->home->Prefetch(layout);
    __builtin_prefetch(&full_[probe->key.home / 64]);
  }
  FindAlternate(probe);
  __builtin_prefetch(&full_[probe->alternate_index / 64]);
}

void Shard::PlanPlacing(Probe* probe) const {
  if (probe->home == nullptr || probe->alternate == nullptr) return;
  const Group::Layout& layout = probe->geometry.layout();
  if (!probe->alternate->full(layout)) {
    probe->alternate->PrefetchRest(layout, probe->alternate->foreign_count(layout));
    return;
  }
  if (!probe->home->full(layout)) return;
  const Move move =
      FindMove(probe->geometry, *probe->home, probe->key.home, Group::Layout::kSlotsMax);
  if (move.slot < 0) return;
  probe->move_slot = move.slot;
  const Group* const to = InChunk(probe->geometry, move.to);
  if (to != nullptr) to->Prefetch(layout);
}

Shard::Added Shard::AddProbed(const ShardContext& context, const Fingerprint& fingerprint,
                              const Probe& probe) {
  if (probe.home == nullptr || !SameVersion(probe)) {
    return Covers(fingerprint) ? Add(context, fingerprint) : Added::kFull;
  }
  const Geometry& geometry = probe.geometry;
  const Key& key = probe.key;
  if (probe.home->FindIn(probe.matches, geometry.layout(), key.remainder >> 8) >= 0) {
    return Added::kPresent;
  }
  if (probe.alternate != nullptr && probe.home->marked(geometry.layout(), key.tag) &&
      FindForeign(geometry, *probe.alternate, key) >= 0) {
    return Added::kPresent;
  }
  if (OverLimit(geometry)) return Added::kFull;
  const Writing writing(this);
  if (!Full(key.home)) {
    AppendHome(geometry, probe.home, key.home, key);
  } else if (!Place(geometry, key, probe.move_slot)) {
    return Added::kFull;
  }
  AddToCount(1);
  return Added::kAdded;
}

bool Shard::AddBeyondLimit(const ShardContext& context, const Fingerprint& fingerprint) {
  const Geometry geometry = this->geometry(context);
  if (geometry.groups() == 0) return false;
  const Writing writing(this);
  if (!Place(geometry, KeyOf(geometry, geometry.ValueOf(fingerprint)))) return false;
  AddToCount(1);
  return true;
}

bool Shard::AddToOverflow(ShardContext& context, const Fingerprint& fingerprint) {
  if (!context.arena->Charge(kOverflowEntryBytes)) return false;
  const Writing writing(this);
  InsertOverflow(context, geometry(context).ValueOf(fingerprint), /*charged=*/true);
  return true;
}

void Shard::InsertOverflow(ShardContext& context, Uint128 value, bool charged) {
  if (overflow_ == nullptr) {
    overflow_ = std::make_unique<Overflow>();
    ShardState state = this->state();
    state.set_overflow(true);
    set_state(state);
  }
  overflow_->values.insert(value);
  overflow_->charged += charged ? 1 : 0;
  context.storage_bytes.fetch_add(kOverflowEntryBytes, std::memory_order_relaxed);
}

void Shard::DropOverflow(ShardContext& context) {
  if (overflow_ == nullptr) return;
  context.arena->Discharge(overflow_->charged * kOverflowEntryBytes);
  context.storage_bytes.fetch_sub(overflow_->values.size() * kOverflowEntryBytes,
                                  std::memory_order_relaxed);
  overflow_.reset();
  ShardState state = this->state();
  state.set_overflow(false);
  set_state(state);
}

bool Shard::Remove(ShardContext& context, const Fingerprint& fingerprint) {
  const Geometry geometry = this->geometry(context);
  if (geometry.groups() == 0) return false;
  const Uint128 value = geometry.ValueOf(fingerprint);
  const Key key = KeyOf(geometry, value);
  const Writing writing(this);
  uint32_t index = key.home;
  Group* group = GroupAt(geometry, index);
  int slot = FindHome(geometry, *group, key);
  if (slot < 0 && group->marked(geometry.layout(), key.tag)) {
    index = geometry.Alternate(key.home, key.remainder);
    group = GroupAt(geometry, index);
    slot = FindForeign(geometry, *group, key);
  }
  if (slot >= 0) {
    group->Erase(geometry.layout(), slot);
    SetFull(index, false);
    AddToCount(-1);
    return true;
  }
  if (overflow_ == nullptr || overflow_->values.erase(value) == 0) return false;
  context.storage_bytes.fetch_sub(kOverflowEntryBytes, std::memory_order_relaxed);
  if (overflow_->charged > overflow_->values.size()) {
    context.arena->Discharge(kOverflowEntryBytes);
    --overflow_->charged;
  }
  if (overflow_->values.empty()) DropOverflow(context);
  return true;
}

bool Shard::Place(const Geometry& geometry, const Key& key, int first_slot) {
  if (!Full(key.home)) {
    AppendHome(geometry, GroupAt(geometry, key.home), key.home, key);
    return true;
  }
  if (geometry.groups() < 2) return false;
  const uint32_t alternate = geometry.Alternate(key.home, key.remainder);
  if (!Full(alternate)) {
    AppendForeign(geometry, GroupAt(geometry, alternate), alternate, key);
    GroupAt(geometry, key.home)->Mark(geometry.layout(), key.tag);
    return true;
  }
  return PlaceByMoving(geometry, key, alternate, first_slot);
}

bool Shard::PlaceByMoving(const Geometry& geometry, const Key& key, uint32_t alternate,
                          int first_slot) {
  if (MoveOneAway(geometry, key.home, first_slot)) {
    AppendHome(geometry, GroupAt(geometry, key.home), key.home, key);
    return true;
  }
  if (MoveOneAway(geometry, alternate, Group::Layout::kSlotsMax)) {
    AppendForeign(geometry, GroupAt(geometry, alternate), alternate, key);
    GroupAt(geometry, key.home)->Mark(geometry.layout(), key.tag);
    return true;
  }
  return false;
}

// Moves one entry of the full group `from` to its other group; leaves the slot it had free.
bool Shard::MoveOneAway(const Geometry& geometry, uint32_t from, int first_slot) {
  const Group::Layout& layout = geometry.layout();
  Group* const group = GroupAt(geometry, from);
  const Move move = FindMove(geometry, *group, from, first_slot);
  if (move.slot < 0) return false;
  const uint8_t tag = group->tag(layout, move.slot);
  const Key key{from, tag, group->rest(layout, move.slot) << 8 | tag};
  Group* const to = GroupAt(geometry, move.to);
  if (move.slot < group->foreign_count(layout)) {
    AppendHome(geometry, to, move.to, key);
  } else {
    AppendForeign(geometry, to, move.to, key);
    group->Mark(layout, tag);
  }
  group->Erase(layout, move.slot);
  return true;
}

// An entry of `group`, full and number `from`, whose other group has a free slot. Looks at
// `first_slot` first and then downwards: the last slots are in the cache line of the tags.
Shard::Move Shard::FindMove(const Geometry& geometry, const Group& group, uint32_t from,
                            int first_slot) const {
  const Group::Layout& layout = geometry.layout();
  const int foreign = group.foreign_count(layout);
  int i = first_slot < layout.slots ? first_slot : layout.slots - 1;
  for (int k = 0; k < layout.slots; ++k, i = i == 0 ? layout.slots - 1 : i - 1) {
    const Uint128 remainder = group.rest(layout, i) << 8 | group.tag(layout, i);
    const uint32_t to = i < foreign ? geometry.HomeOfAlternate(from, remainder)
                                    : geometry.Alternate(from, remainder);
    if (!Full(to)) return {i, to};
  }
  return {-1, 0};
}

}  // namespace firstseen
