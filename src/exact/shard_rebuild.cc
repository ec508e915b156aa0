// Sizes and storage of shards; growing, splitting, filling and copying them.
#include <algorithm>

#include "base/check.h"
#include "exact/shard.h"
#include "exact/shard_limits.h"
#include "exact/shard_scratch.h"

namespace firstseen {

ShardScratch& ThreadScratch() {
  thread_local ShardScratch scratch;
  return scratch;
}

// Groups of three or four lines waste fewer bits by rounding where two-line ones waste many, but a
// lookup that hits touches more lines: taken where they hold 3 per cent more keys, and in large
// sets 1.5 per cent.
void Shard::ChooseLines(const ShardContext& context, int depth, ShardShape* shape) {
  if (shape->chunks == 0) return;
  const uint64_t gain_per_mille = depth >= kLargeFromDepth ? 1015 : 1030;
  shape->lines = 2;
  uint64_t most = GeometryOf(context, depth, *shape).slot_count();
  ShardShape best = *shape;
  for (int lines = 3; lines <= 4; ++lines) {
    ShardShape other = *shape;
    other.lines = lines;
    const uint64_t slots = GeometryOf(context, depth, other).slot_count();
    if (slots * 1000 < most * gain_per_mille) continue;
    most = slots;
    best = other;
  }
  *shape = best;
}

ShardShape Shard::ShapeFor(const ShardContext& context, int depth, uint64_t count,
                           uint64_t load_per_mille) const {
  ShardShape shape;
  shape.units = units();
  while (count > 0 && shape.chunks < ShardShape::kChunksMax) {
    shape = shape.Next();
    ChooseLines(context, depth, &shape);
    if (GeometryOf(context, depth, shape).slot_count() * load_per_mille >= count * 1000) break;
  }
  return shape;
}

uint64_t Shard::BuildMaxFor(const ShardContext& context, int depth, int units) {
  ShardShape shape{ShardShape::kChunksMax, units, 2, 0};
  ChooseLines(context, depth, &shape);
  return GeometryOf(context, depth, shape).slot_count() * kLoadBuiltPerMille / 1000;
}

// For its first key. A set that was told its size takes the chunks of that size that fit best.
ShardShape Shard::FirstShape(const ShardContext& context) const {
  const int depth = this->depth();
  const uint64_t expected = context.expected >> depth;
  ShardShape best = ShapeFor(context, depth, std::max<uint64_t>(expected, 1),
                             expected <= 1 ? 1000 : kLoadExpectedPerMille);
  if (best.chunks == 0 || units_ != 0) return best;
  uint64_t fewest = ~uint64_t{0};
  for (int units = ShardShape::kUnitsMin; units <= Arena::kUnitsMax; ++units) {
    for (int chunks = 1; chunks < ShardShape::kChunksMax; ++chunks) {
      ShardShape shape{chunks, units, 2, 0};
      ChooseLines(context, depth, &shape);
      const uint64_t slots = GeometryOf(context, depth, shape).slot_count();
      const auto total = static_cast<uint64_t>(units * chunks);
      if (slots * kLoadExpectedPerMille >= expected * 1000 && total < fewest) {
        fewest = total;
        best = shape;
      }
    }
  }
  return best;
}

// Gets what `fresh` needs beyond what there is. The content of a small block is lost when it
// returns true; nothing is changed when it returns false.
bool Shard::AddStorage(ShardContext& context, const ShardShape& fresh) {
  Arena& arena = *context.arena;
  const ShardShape old = shape();
  char* small = nullptr;
  if (fresh.small_bytes() > 0) {
    small = static_cast<char*>(arena.AllocateSmall(fresh.small_bytes()));
    if (small == nullptr) return false;
  }
  std::array<uint32_t, ShardShape::kChunksMax> numbers{};
  for (int i = old.chunks; i < fresh.chunks; ++i) {
    void* const chunk = arena.Allocate(fresh.units);
    if (chunk == nullptr) {
      while (--i >= old.chunks) {
        arena.Free(anchor_ + size_t{numbers[size_t(i)]} * Arena::kNumberBytes, fresh.units);
      }
      return false;
    }
    numbers[size_t(i)] = static_cast<uint32_t>(
        static_cast<size_t>(static_cast<char*>(chunk) - anchor_) / Arena::kNumberBytes);
  }
  const Writing writing(this);
  if (small_ != nullptr) arena.FreeSmall(small_, old.small_bytes());
  small_ = small;
  if (fresh.chunks > 0) units_ = static_cast<uint8_t>(fresh.units);
  for (int i = old.chunks; i < fresh.chunks; ++i) {
    chunks_[size_t(i)].store(numbers[size_t(i)], std::memory_order_release);
  }
  return true;
}

// Gives back the chunks that `fresh` does not need. While writing, so that no reader takes what
// their next owner puts there for this shard's.
void Shard::DropStorage(ShardContext& context, const ShardShape& fresh) {
  for (int i = fresh.chunks; i < state().chunks(); ++i) {
    const uint32_t number = chunks_[size_t(i)].exchange(0, std::memory_order_acq_rel);
    context.arena->Free(anchor_ + size_t{number} * Arena::kNumberBytes, units_);
  }
}

void Shard::Publish(ShardContext& context, const ShardShape& fresh, int depth, uint32_t count) {
  const auto bytes = [](const ShardShape& shape) {
    return shape.chunks == 0 ? shape.small_bytes()
                             : static_cast<size_t>(shape.chunks * shape.units) * Arena::kUnitBytes;
  };
  context.storage_bytes.fetch_add(bytes(fresh) - bytes(shape()), std::memory_order_relaxed);
  context.slot_count.fetch_add(
      GeometryOf(context, depth, fresh).slot_count() - geometry(context).slot_count(),
      std::memory_order_relaxed);
  ShardState state(fresh, depth);
  state.set_count(count);
  state.set_overflow(overflow_ != nullptr);
  set_state(state);
}

void Shard::Collect(const ShardContext& context, std::vector<Uint128>* values) const {
  const Geometry geometry = this->geometry(context);
  const Group::Layout& layout = geometry.layout();
  values->clear();
  values->reserve(count());
  for (uint32_t g = 0; g < static_cast<uint32_t>(geometry.groups()); ++g) {
    const Group& group = *GroupAt(geometry, g);
    group.ForEach(layout, layout.slots - group.home_count(layout), layout.slots,
                  [&](Uint128 remainder) { values->push_back(geometry.ValueFrom(g, remainder)); });
    group.ForEach(layout, 0, group.foreign_count(layout), [&](Uint128 remainder) {
      values->push_back(geometry.ValueFrom(geometry.HomeOfAlternate(g, remainder), remainder));
    });
  }
  if (overflow_ != nullptr) {
    values->insert(values->end(), overflow_->values.begin(), overflow_->values.end());
  }
  FIRSTSEEN_CHECK(values->size() == count());
}

// Puts `values`, in any order, into the groups of `shape`, whose storage is there. First every key
// that fits into its home group, then the others: so the fewest are displaced.
void Shard::Fill(ShardContext& context, const ShardShape& shape, int depth,
                 std::span<const Uint128> values) {
  const Writing writing(this);
  DropOverflow(context);
  Publish(context, shape, depth, 0);
  const Geometry geometry = this->geometry(context);
  for (auto& word : full_) word.store(0, std::memory_order_relaxed);
  for (uint32_t g = 0; g < static_cast<uint32_t>(geometry.groups()); ++g) {
    GroupAt(geometry, g)->Clear(geometry.layout());
  }
  std::vector<Key>& displaced = ThreadScratch().displaced[0];
  displaced.clear();
  for (const Uint128 value : values) {
    const Key key = KeyOf(geometry, value);
    if (Full(key.home)) {
      displaced.push_back(key);
    } else {
      AppendHome(geometry, GroupAt(geometry, key.home), key.home, key);
    }
  }
  AddToCount(static_cast<int>(values.size() - displaced.size()));
  PlaceAll(context, displaced);
}

void Shard::PlaceAll(ShardContext& context, std::span<const Key> keys) {
  const Geometry geometry = this->geometry(context);
  int placed = 0;
  for (const Key& key : keys) {
    if (Place(geometry, key)) {
      ++placed;
      continue;
    }
    InsertOverflow(context, geometry.ValueFrom(key.home, key.remainder),
                   context.arena->Charge(kOverflowEntryBytes));
  }
  AddToCount(placed);
}

bool Shard::Grow(ShardContext& context) {
  const ShardShape old = shape();
  const bool first = old.groups() == 0;
  ShardShape fresh = first ? FirstShape(context) : old.Next();
  if (depth() < kLargeFromDepth && old.chunks >= kCoarseStepsFromChunks &&
      old.chunks + 2 <= ShardShape::kChunksMax) {
    fresh.chunks = old.chunks + 2;
  }
  ChooseLines(context, depth(), &fresh);
  if (CanMove(context, fresh, depth())) return GrowMoving(context, fresh);
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(context, &values);
  if (!AddStorage(context, fresh)) {
    // What was expected does not fit: begin small.
    if (!first || fresh.small == 1) return false;
    fresh = ShardShape{.units = units()}.Next();
    if (!AddStorage(context, fresh)) return false;
  }
  Fill(context, fresh, depth(), values);
  return true;
}

bool Shard::SplitInto(ShardContext& context, Shard* upper) {
  upper->stamp_ = stamp_;
  bool done = false;
  if (!SplitMoving(context, upper, &done)) return false;
  return done || SplitAnew(context, upper);
}

bool Shard::SplitAnew(ShardContext& context, Shard* upper) {
  std::vector<Uint128>& values = ThreadScratch().values;
  Collect(context, &values);
  const auto middle = std::partition(values.begin(), values.end(),
                                     [](Uint128 value) { return (value >> 127) == 0; });
  const std::span<Uint128> low(values.begin(), middle);
  const std::span<Uint128> high(middle, values.end());
  for (Uint128& value : values) value <<= 1;

  const int depth = upper->depth();
  const ShardShape low_shape = ShapeFor(context, depth, low.size(), kLoadBuiltPerMille);
  const ShardShape high_shape = upper->ShapeFor(context, depth, high.size(), kLoadBuiltPerMille);
  if (!upper->AddStorage(context, high_shape)) return false;
  if (!AddStorage(context, low_shape)) {
    upper->Publish(context, high_shape, depth, 0);
    upper->FreeStorage(context);
    return false;
  }
  {
    const Writing writing(this);
    DropStorage(context, low_shape);
  }
  Fill(context, low_shape, depth, low);
  upper->Fill(context, high_shape, depth, high);
  return true;
}

bool Shard::Build(ShardContext& context, std::span<const Fingerprint> fingerprints) {
  FIRSTSEEN_CHECK(count() == 0);
  const ShardShape fresh = ShapeFor(context, depth(), fingerprints.size(), kLoadBuiltPerMille);
  if (!AddStorage(context, fresh)) return false;
  {
    const Writing writing(this);
    DropStorage(context, fresh);
  }
  std::vector<Uint128>& values = ThreadScratch().values;
  values.clear();
  values.reserve(fingerprints.size());
  const Geometry geometry = this->geometry(context);
  for (const Fingerprint& fingerprint : fingerprints) {
    FIRSTSEEN_CHECK(Covers(fingerprint));
    values.push_back(geometry.ValueOf(fingerprint));
  }
  Fill(context, fresh, depth(), values);
  return true;
}

void Shard::Copy(const ShardContext& context, Raw* raw) const {
  raw->prefix = prefix_;
  raw->stamp = stamp_;
  raw->geometry = geometry(context);
  Collect(context, &raw->values);
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
  ShardShape nothing;
  nothing.units = units();
  AddStorage(context, nothing);
  const Writing writing(this);
  DropStorage(context, nothing);
  DropOverflow(context);
  Publish(context, nothing, depth(), 0);
}

}  // namespace firstseen
