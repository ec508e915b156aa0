// Growing and splitting in place: moves remainders, a group at a time, from the last to the first.
//
// What lies at home in group g goes to one of a few neighbouring new groups, which begin where g
// begins or behind it: so a window of a few new groups is open at any time, and those behind it are
// written where nothing is read any more. A remainder changes by a constant for each pair of old
// and new group. Keys away from home, and those that no more fit at home, are placed at the end.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "exact/shard.h"
#include "exact/shard_limits.h"
#include "exact/shard_scratch.h"

namespace firstseen {
namespace {

constexpr uint32_t kWindow = 8;  // new groups that one old group may spread over, and some
constexpr uint32_t kReadAhead = 6;

}  // namespace

// Takes keys for the groups of one shard, in about descending order.
class Shard::Mover {
 public:
  // `base` is the lowest value of the target's range among those of the source.
  Mover(Shard* target, const Geometry& fresh, Uint128 base, std::vector<Key>* displaced)
      : target_(target),
        fresh_(fresh),
        base_(base),
        displaced_(displaced),
        next_(fresh.groups() - 1) {
    displaced_->clear();
    for (auto& word : target->full_) word.store(0, std::memory_order_relaxed);
  }

  // Takes those at home in group `g` of the source.
  void MoveHome(const Geometry& old, const Group& group, uint32_t g) {
    const Uint128 lowest = old.LowestOf(g) - base_;
    // The first group of a range may begin a little before it, by rounding.
    const bool before = static_cast<__int128>(lowest) < 0;
    const uint32_t first = before ? 0 : fresh_.HomeOfUpper(fresh_.UpperOf(lowest));
    std::array<Uint128, kWindow> change;
    for (uint32_t k = 0; k < kWindow; ++k) change[k] = lowest - fresh_.LowestOf(first + k);
    const Group::Layout& layout = old.layout();
    const auto slots = static_cast<uint32_t>(fresh_.slots());
    const uint64_t lowest_upper = fresh_.UpperOf(lowest);
    const auto move_all = [&](auto upper_of) {
      group.ForEach(layout, layout.slots - group.home_count(layout), layout.slots,
                    [&](Uint128 remainder) {
                      const uint32_t home = fresh_.HomeOfUpper(upper_of(remainder) + lowest_upper);
                      const Uint128 changed = remainder + change[(home - first) % kWindow];
                      Open& open = window_[home % kWindow];
                      if (open.count < slots) [[likely]] {
                        open.remainders[open.count++] = changed;
                      } else {
                        displaced_->push_back({home, static_cast<uint8_t>(changed), changed});
                      }
                    });
    };
    // Whether the N bits reach below the upper word is asked once, not for every key.
    const int below = fresh_.value_bits() - 64;
    if (below >= 0) {
      move_all([below](Uint128 remainder) {
        return static_cast<uint64_t>(ShiftRight(remainder, below));
      });
    } else {
      move_all([this](Uint128 remainder) { return fresh_.UpperOf(remainder); });
    }
    WriteDownTo(static_cast<int>(first) + 1);
  }

  // Takes one key by its value, for the end.
  void Take(Uint128 value) {
    value -= base_;
    const uint32_t home = fresh_.HomeOfUpper(fresh_.UpperOf(value));
    const Uint128 remainder = value - fresh_.LowestOf(home);
    displaced_->push_back({home, static_cast<uint8_t>(remainder), remainder});
  }

  // Writes what is left. Then Publish and PlaceAll(displaced) make the target whole.
  uint32_t Finish() {
    WriteDownTo(0);
    return written_;
  }

 private:
  struct Open {
    uint32_t count = 0;
    std::array<Uint128, Group::Layout::kSlotsMax> remainders;
  };

  void WriteDownTo(int last) {
    for (; next_ >= last; --next_) {
      const auto index = static_cast<uint32_t>(next_);
      Open& open = window_[index % kWindow];
      if (open.count == static_cast<uint32_t>(fresh_.slots())) target_->SetFull(index, true);
      target_->InChunk(fresh_, index)
          ->Pack(fresh_.layout(), open.remainders.data(), static_cast<int>(open.count));
      written_ += open.count;
      open.count = 0;
    }
  }

  Shard* const target_;
  const Geometry fresh_;
  const Uint128 base_;
  std::vector<Key>* const displaced_;
  int next_;  // the groups above it are written
  uint32_t written_ = 0;
  std::array<Open, kWindow> window_;
};

bool Shard::CanMove(const ShardContext& context, const ShardShape& fresh, int depth) const {
  const Geometry old = geometry(context);
  if (state().chunks() == 0 || fresh.chunks == 0 || overflow_ != nullptr ||
      old.value_bits() > 127) {
    return false;
  }
  // The lower half, or all when growing, must not be written before it is read; and an old group
  // must not spread over more than the window.
  const int halves = depth - old.depth() + 1;
  const int new_groups = fresh.groups() * halves;
  return fresh.chunks * halves >= state().chunks() &&
         new_groups <= old.groups() * static_cast<int>(kWindow - 3);
}

bool Shard::GrowMoving(ShardContext& context, const ShardShape& fresh) {
  const Geometry old = geometry(context);
  if (!AddStorage(context, fresh)) return false;
  const Writing writing(this);
  std::vector<Key>& displaced = ThreadScratch().displaced[0];
  Mover mover(this, GeometryOf(context, old.depth(), fresh), 0, &displaced);
  const Group::Layout& layout = old.layout();
  for (int i = old.groups() - 1; i >= 0; --i) {
    const auto g = static_cast<uint32_t>(i);
    if (g >= kReadAhead) InChunk(old, g - kReadAhead)->Prefetch(layout);
    const Group& group = *InChunk(old, g);
    group.ForEach(layout, 0, group.foreign_count(layout), [&](Uint128 remainder) {
      mover.Take(remainder + old.LowestOf(old.HomeOfAlternate(g, remainder)));
    });
    mover.MoveHome(old, group, g);
  }
  Publish(context, fresh, old.depth(), mover.Finish());
  PlaceAll(context, displaced);
  return true;
}

// Sets *done when it could do it; false when out of memory.
bool Shard::SplitMoving(ShardContext& context, Shard* upper, bool* done) {
  const Geometry old = geometry(context);
  const Group::Layout& layout = old.layout();
  const int depth = upper->depth();
  if (state().chunks() == 0) return true;
  // About how many keys each half will have.
  std::array<uint64_t, 2> counts{};
  for (uint32_t g = 0; g < static_cast<uint32_t>(old.groups()); ++g) {
    const int home = InChunk(old, g)->home_count(layout);
    counts[2 * g >= static_cast<uint32_t>(old.groups()) ? 1 : 0] += static_cast<uint64_t>(home);
  }
  const uint64_t foreign = count() - counts[0] - counts[1];
  const auto most = std::max(counts[0], counts[1]) + foreign / 2;
  if (most * 16 > count() * 9) return true;
  const ShardShape low = ShapeFor(context, depth, most, kLoadBuiltPerMille);
  const ShardShape high = upper->ShapeFor(context, depth, most, kLoadBuiltPerMille);
  const int high_groups = 2 * high.groups();
  if (!CanMove(context, low, depth) || low.chunks > state().chunks() || high.chunks == 0 ||
      high_groups > old.groups() * static_cast<int>(kWindow - 3)) {
    return true;
  }
  if (!upper->AddStorage(context, high)) return false;
  *done = true;

  const Writing writing(this);
  const Writing writing_upper(upper);
  const Uint128 half = Uint128{1} << (old.value_bits() - 1);
  std::array<std::vector<Key>, 2>& displaced = ThreadScratch().displaced;
  Mover low_mover(this, GeometryOf(context, depth, low), 0, &displaced[0]);
  Mover high_mover(upper, GeometryOf(context, depth, high), half, &displaced[1]);
  const auto take = [&](Uint128 value) { (value >= half ? high_mover : low_mover).Take(value); };
  for (int i = old.groups() - 1; i >= 0; --i) {
    const auto g = static_cast<uint32_t>(i);
    if (g >= kReadAhead) InChunk(old, g - kReadAhead)->Prefetch(layout);
    const Group& group = *InChunk(old, g);
    group.ForEach(layout, 0, group.foreign_count(layout), [&](Uint128 remainder) {
      take(remainder + old.LowestOf(old.HomeOfAlternate(g, remainder)));
    });
    if (2 * i >= old.groups()) {
      high_mover.MoveHome(old, group, g);
    } else if (2 * i + 2 <= old.groups()) {
      low_mover.MoveHome(old, group, g);
    } else {  // the middle one belongs to both
      group.ForEach(layout, layout.slots - group.home_count(layout), layout.slots,
                    [&](Uint128 remainder) { take(remainder + old.LowestOf(g)); });
    }
  }
  const uint32_t high_count = high_mover.Finish();
  const uint32_t low_count = low_mover.Finish();
  DropStorage(context, low);
  Publish(context, low, depth, low_count);
  upper->Publish(context, high, depth, high_count);
  PlaceAll(context, displaced[0]);
  upper->PlaceAll(context, displaced[1]);
  return true;
}

}  // namespace firstseen
