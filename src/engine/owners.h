// OwnerTable: who claimed which member of a window first, apart from the compact set.
//
//   table:  1 stripe while small, kStripes from kStripeAt entries on (by the fingerprint)
//   stripe: entries   [ fingerprint 16 | owner 8 | sequence 8 | settled 8 | next 4 | prev 4 ] ...
//           by_print  hash set of entry numbers, looked up by fingerprint
//           by_owner  hash set of entry numbers, looked up by owner: the head of a list, threaded
//                     through next and prev, of all entries of this owner (a token may claim
//                     several members)
//
// 48 bytes an entry and two 5-byte hash slots at a load of 0.44 to 0.88: 60 to 75 bytes an owner.
// Entries are numbered, not pointed to, because a number takes half the room of a pointer and
// survives the array's growth. Erased entries are reused.
//
// Costs: Find, Put, Erase, Settle O(1) under one stripe's lock; SelectUnsettled O(stripes) an
// owner; Expire and CopyStripe O(entries), one stripe locked at a time.
// Thread safety: all methods may be called from any number of threads. What holds between calls is
// the caller's matter: the engine changes the entry of a member only with that member's shard
// locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "keys/fingerprint.h"

namespace firstseen {

struct Ownership {
  static constexpr int64_t kUnsettled = -1;

  Fingerprint fingerprint;
  uint64_t owner = 0;
  uint64_t sequence = 0;                 // ClaimResult::sequence of the FIRST
  int64_t settled_open_ms = kUnsettled;  // open time when it was settled
};

class OwnerTable {
 public:
  static constexpr size_t kStripes = 64;
  static constexpr uint64_t kStripeAt = 32768;

  // `bytes_total`: memory of all tables, kept up to date by each; must outlive the table.
  explicit OwnerTable(std::atomic<uint64_t>* bytes_total);
  ~OwnerTable();
  OwnerTable(const OwnerTable&) = delete;
  OwnerTable& operator=(const OwnerTable&) = delete;

  std::optional<Ownership> Find(const Fingerprint& fingerprint) const;
  // Replaces what the fingerprint had.
  void Put(const Ownership& ownership);
  bool Erase(const Fingerprint& fingerprint);
  // True when the entry was this owner's and unsettled.
  bool Settle(const Fingerprint& fingerprint, uint64_t owner, int64_t open_ms);
  // Whether one more entry for this fingerprint keeps `bytes_total` within `bytes_max`. Threads
  // that ask at the same time may together exceed it by one growth step of their stripes.
  bool HasRoom(const Fingerprint& fingerprint, uint64_t bytes_max) const;

  struct Unsettled {
    uint64_t owner = 0;
    Fingerprint fingerprint;
  };
  // All unsettled entries of these owners.
  std::vector<Unsettled> SelectUnsettled(std::span<const uint64_t> owners) const;
  // Forgets entries settled at or before this open time; returns how many.
  uint64_t Expire(int64_t settled_open_ms_max);
  // Appends stripe `index`'s entries to `out`; returns how many stripes there are.
  size_t CopyStripe(size_t index, std::vector<Ownership>* out) const;

  uint64_t size() const { return size_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  class Stripe;

  // Runs f(stripe) with the fingerprint's stripe locked.
  template <typename F>
  auto WithStripe(const Fingerprint& fingerprint, F f) const;
  Stripe& StripeAt(size_t index) const;
  void AddBytes(int64_t delta);
  // Spreads the first stripe, which the caller has locked, over all of them.
  void Split(Stripe* first);

  std::atomic<uint64_t>* const bytes_total_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> size_ = 0;
  // 1, then kStripes for good. While it is 1 every operation locks the first stripe, so whoever
  // holds that lock may split; whoever got the lock afterwards sees the new number and goes on to
  // its own stripe.
  std::atomic<size_t> stripe_count_ = 1;
  std::unique_ptr<Stripe> first_;
  std::unique_ptr<std::unique_ptr<Stripe>[]> others_;  // stripes 1 to kStripes - 1
};

}  // namespace firstseen
