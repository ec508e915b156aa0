// The inside of ExactSet: directory, splits, and the adding that may need them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "exact/directory.h"
#include "exact/exact_set.h"
#include "exact/shard.h"

namespace firstseen {

class HeldShards;

struct ExactSet::Impl {
  Impl(Arena* arena, const Options& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // The shard that holds `fingerprint`, locked.
  Shard* Lock(const Fingerprint& fingerprint) const;
  // Adds to a locked shard of `held`; splits, if need be, put the new halves into `held`.
  AddOutcome Add(HeldShards& held, const Fingerprint& fingerprint);

  // Splits a shard of `held`; false when out of memory. With `may_split` from MaySplit.
  bool Split(HeldShards& held, Shard* shard);
  bool MaySplit(const Shard& shard) const;
  // Leading bits that a shard may be chosen by.
  int DepthMax() const;

  // Parts of LoadShard.
  bool SplitDownTo(const ShardImage& image);
  bool LoadRange(const ShardImage& image, size_t* next, Fingerprint* cursor, bool* last);

  mutable ShardContext context;  // counters and the arena; const operations do not change sizes
  std::atomic<uint64_t> size{0};
  std::atomic<uint64_t> shard_count{1};
  std::atomic<Directory*> directory{nullptr};
  Mutex directory_mutex;  // held while a split publishes its new shard
};

// The shards that one call has locked, in ascending order of range; unlocks them at the end.
class HeldShards final : public ExactSet::LockedShard {
 public:
  explicit HeldShards(ExactSet::Impl* set) : set_(set) {}
  ~HeldShards();
  HeldShards(const HeldShards&) = delete;
  HeldShards& operator=(const HeldShards&) = delete;

  // Locks the shard of `fingerprint` unless it is held. Fingerprints must come in ascending order.
  void Acquire(const Fingerprint& fingerprint);
  // Takes over a shard that is locked already and follows `neighbour`.
  void Insert(Shard* neighbour, Shard* shard);
  // The held shard of `fingerprint`, which must be there.
  Shard* Find(const Fingerprint& fingerprint) const;

  bool Contains(const Fingerprint& fingerprint) const override;
  AddOutcome Add(const Fingerprint& fingerprint) override;
  bool Remove(const Fingerprint& fingerprint) override;
  uint64_t stamp(const Fingerprint& fingerprint) const override;
  void set_stamp(const Fingerprint& fingerprint, uint64_t stamp) override;

 private:
  friend struct ExactSet::Impl;

  ExactSet::Impl* const set_;
  Shard* first_ = nullptr;      // the common case of one shard needs no memory
  std::vector<Shard*> others_;  // behind it
  int64_t size_change_ = 0;
};

}  // namespace firstseen
