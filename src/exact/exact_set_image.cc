// Shard images: CopyShard and LoadShard.
#include <algorithm>

#include "base/check.h"
#include "exact/exact_set_impl.h"

namespace firstseen {
namespace {

// Moves to the first fingerprint behind the range; false when the range was the last.
bool NextRange(uint64_t prefix, int depth, Fingerprint* cursor) {
  const uint64_t next = depth == 0 ? 0 : prefix + (uint64_t{1} << (64 - depth));
  *cursor = {next, 0};
  return next != 0;
}

}  // namespace

bool ExactSet::CopyShard(Fingerprint* cursor, ShardImage* image) const {
  Shard::Raw raw;
  Shard* const shard = impl_->Lock(*cursor);
  shard->Copy(&raw);
  shard->Unlock();
  image->first = {raw.prefix, 0};
  image->depth = raw.geometry.depth();
  image->stamp = raw.stamp;
  Shard::Sorted(raw, &image->fingerprints);
  return NextRange(raw.prefix, raw.geometry.depth(), cursor);
}

bool ExactSet::LoadShard(const ShardImage& image) {
  FIRSTSEEN_CHECK(image.depth >= 0 && image.depth <= impl_->DepthMax());
  if (!impl_->SplitDownTo(image)) return false;
  Fingerprint cursor = image.first;
  size_t next = 0;
  for (bool last = false; !last;) {
    if (!impl_->LoadRange(image, &next, &cursor, &last)) return false;
  }
  FIRSTSEEN_CHECK(next == image.fingerprints.size());
  return true;
}

// Splits the shard that the image falls into until it has the image's range or less.
bool ExactSet::Impl::SplitDownTo(const ShardImage& image) {
  HeldShards held(this);
  held.Acquire(image.first);
  for (;;) {
    Shard* const shard = held.Find(image.first);
    if (shard->depth() >= image.depth) return true;
    if (!Split(held, shard)) return false;
  }
}

// Loads that part of the image that falls into the shard of *cursor, and moves on.
bool ExactSet::Impl::LoadRange(const ShardImage& image, size_t* next, Fingerprint* cursor,
                               bool* last) {
  HeldShards held(this);
  held.Acquire(*cursor);
  Shard* shard = held.Find(*cursor);
  const auto begin = image.fingerprints.begin() + static_cast<ptrdiff_t>(*next);
  auto end = std::partition_point(begin, image.fingerprints.end(),
                                  [&](const Fingerprint& f) { return shard->Covers(f); });
  // A shard that cannot be split takes its excess one by one, as in growing.
  while (static_cast<uint64_t>(end - begin) > Shard::BuildMax(context, shard->depth()) &&
         MaySplit(*shard)) {
    if (!Split(held, shard)) return false;
    end = std::partition_point(begin, end, [&](const Fingerprint& f) { return shard->Covers(f); });
  }
  shard->set_stamp(image.stamp);  // before any further split, which copies it
  auto rest = begin;
  if (shard->count() == 0 && begin != end) {
    const auto built = static_cast<ptrdiff_t>(Shard::BuildMax(context, shard->depth()));
    rest = begin + std::min(end - begin, built);
    if (!shard->Build(context, std::span(begin, rest))) return false;
    held.size_change_ += rest - begin;
  }
  for (; rest != end; ++rest) {
    if (Add(held, *rest) == AddOutcome::kNoMemory) return false;
  }
  *next += static_cast<size_t>(end - begin);
  Fingerprint after;
  const bool more = NextRange(shard->prefix(), shard->depth(), &after);
  Fingerprint image_end;
  const bool image_bounded = NextRange(image.first.hi, image.depth, &image_end);
  *last = !more || (image_bounded && after.hi >= image_end.hi);
  *cursor = after;
  return true;
}

}  // namespace firstseen
