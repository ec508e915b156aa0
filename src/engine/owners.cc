#include "engine/owners.h"

#include <algorithm>

#include "base/check.h"

namespace firstseen {
namespace {

constexpr uint32_t kNil = ~uint32_t{0};

// Fingerprints and owners are keyed hashes already; this only spreads them over all bits, so that
// tests and old data with poor hashes are served too.
size_t Mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15ull;
  return value ^ (value >> 32);
}
size_t Mix(const Fingerprint& print) { return Mix(print.hi ^ (print.lo * 0xff51afd7ed558ccdull)); }

}  // namespace

class OwnerTable::Stripe {
 public:
  Stripe()
      : by_print_(0, PrintHash{this}, PrintEqual{this}),
        by_owner_(0, OwnerHash{this}, OwnerEqual{this}) {}

  // The caller locks it.
  Mutex mutex;

  size_t size() const { return by_print_.size(); }

  uint64_t Bytes() const {
    return sizeof(Stripe) + entries_.capacity() * sizeof(Entry) +
           (by_print_.capacity() + by_owner_.capacity()) * kIndexSlotBytes;
  }

  // Upper bound of what the next insertion adds to Bytes().
  uint64_t GrowthBytes() const {
    uint64_t bytes = 0;
    if (free_ == kNil && entries_.size() == entries_.capacity()) {
      bytes += (GrownCapacity() - entries_.capacity()) * sizeof(Entry);
    }
    for (const size_t capacity : {by_print_.capacity(), by_owner_.capacity()}) {
      const size_t size = by_print_.size();  // no less than owners
      if (size + 1 > capacity - capacity / 8) bytes += (capacity + 1) * kIndexSlotBytes;
    }
    return bytes;
  }

  const Ownership* Find(const Fingerprint& print) const {
    const auto it = by_print_.find(print);
    return it == by_print_.end() ? nullptr : &entries_[*it].ownership;
  }

  void Insert(const Ownership& ownership) {
    const uint32_t number = TakeEntry();
    Entry& entry = entries_[number];
    entry.ownership = ownership;
    entry.prev = kNil;
    const auto head = by_owner_.find(ownership.owner);
    if (head == by_owner_.end()) {
      entry.next = kNil;
      by_owner_.insert(number);
    } else {  // second in the list: the head stays what the index points to
      Entry& first = entries_[*head];
      entry.prev = *head;
      entry.next = first.next;
      if (first.next != kNil) entries_[first.next].prev = number;
      first.next = number;
    }
    by_print_.insert(number);
  }

  bool Erase(const Fingerprint& print) {
    const auto it = by_print_.find(print);
    if (it == by_print_.end()) return false;
    EraseEntry(*it);
    return true;
  }

  bool Settle(const Fingerprint& print, uint64_t owner, int64_t open_ms) {
    const auto it = by_print_.find(print);
    if (it == by_print_.end()) return false;
    Ownership& ownership = entries_[*it].ownership;
    if (ownership.owner != owner || ownership.settled_open_ms != Ownership::kUnsettled) {
      return false;
    }
    ownership.settled_open_ms = open_ms;
    return true;
  }

  void SelectUnsettled(uint64_t owner, std::vector<Unsettled>* out) const {
    const auto head = by_owner_.find(owner);
    if (head == by_owner_.end()) return;
    for (uint32_t number = *head; number != kNil; number = entries_[number].next) {
      const Ownership& ownership = entries_[number].ownership;
      if (ownership.settled_open_ms == Ownership::kUnsettled) {
        out->push_back({owner, ownership.fingerprint});
      }
    }
  }

  uint64_t Expire(int64_t settled_open_ms_max) {
    uint64_t expired = 0;
    for (uint32_t number = 0; number < entries_.size(); ++number) {
      const Entry& entry = entries_[number];
      if (entry.prev == kFree || entry.ownership.settled_open_ms == Ownership::kUnsettled ||
          entry.ownership.settled_open_ms > settled_open_ms_max) {
        continue;
      }
      EraseEntry(number);
      ++expired;
    }
    if (expired > 0 && size() < entries_.size() / 4) Shrink();
    return expired;
  }

  void Copy(std::vector<Ownership>* out) const {
    for (const Entry& entry : entries_) {
      if (entry.prev != kFree) out->push_back(entry.ownership);
    }
  }

  void Clear() {
    by_print_ = PrintIndex(0, PrintHash{this}, PrintEqual{this});
    by_owner_ = OwnerIndex(0, OwnerHash{this}, OwnerEqual{this});
    std::vector<Entry>().swap(entries_);  // assigning {} would keep the memory
    free_ = kNil;
  }

 private:
  static constexpr uint32_t kFree = kNil - 1;     // in Entry::prev: not in use
  static constexpr uint64_t kIndexSlotBytes = 5;  // number and control byte

  struct Entry {
    Ownership ownership;
    uint32_t next = kNil;  // of the same owner; of the free list when not in use
    uint32_t prev = kNil;
  };
  static_assert(sizeof(Entry) == 48);

  struct PrintHash {
    using is_transparent = void;
    const Stripe* stripe;
    size_t operator()(uint32_t number) const {
      return Mix(stripe->entries_[number].ownership.fingerprint);
    }
    size_t operator()(const Fingerprint& print) const { return Mix(print); }
  };
  struct PrintEqual {
    using is_transparent = void;
    const Stripe* stripe;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t number, const Fingerprint& print) const {
      return stripe->entries_[number].ownership.fingerprint == print;
    }
    bool operator()(const Fingerprint& print, uint32_t number) const {
      return (*this)(number, print);
    }
  };
  struct OwnerHash {
    using is_transparent = void;
    const Stripe* stripe;
    size_t operator()(uint32_t number) const {
      return Mix(stripe->entries_[number].ownership.owner);
    }
    size_t operator()(uint64_t owner) const { return Mix(owner); }
  };
  struct OwnerEqual {
    using is_transparent = void;
    const Stripe* stripe;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t number, uint64_t owner) const {
      return stripe->entries_[number].ownership.owner == owner;
    }
    bool operator()(uint64_t owner, uint32_t number) const { return (*this)(number, owner); }
  };

  size_t GrownCapacity() const {
    return std::max<size_t>(2, entries_.capacity() + entries_.capacity() / 4 + 1);
  }

  uint32_t TakeEntry() {
    if (free_ != kNil) {
      const uint32_t number = free_;
      free_ = entries_[number].next;
      return number;
    }
    FIRSTSEEN_CHECK(entries_.size() < kFree);
    if (entries_.size() == entries_.capacity()) entries_.reserve(GrownCapacity());
    entries_.emplace_back();
    return static_cast<uint32_t>(entries_.size() - 1);
  }

  void EraseEntry(uint32_t number) {
    Entry& entry = entries_[number];
    by_print_.erase(by_print_.find(entry.ownership.fingerprint));
    if (entry.prev == kNil) {  // the head: the next one takes its place in the index
      by_owner_.erase(by_owner_.find(entry.ownership.owner));
      if (entry.next != kNil) {
        entries_[entry.next].prev = kNil;
        by_owner_.insert(entry.next);
      }
    } else {
      entries_[entry.prev].next = entry.next;
      if (entry.next != kNil) entries_[entry.next].prev = entry.prev;
    }
    entry.prev = kFree;
    entry.next = free_;
    free_ = number;
  }

  // Gives the memory of erased entries back.
  void Shrink() {
    std::vector<Ownership> kept;
    kept.reserve(size());
    Copy(&kept);
    Clear();
    entries_.reserve(kept.size());
    for (const Ownership& ownership : kept) Insert(ownership);
  }

  using PrintIndex = absl::flat_hash_set<uint32_t, PrintHash, PrintEqual>;
  using OwnerIndex = absl::flat_hash_set<uint32_t, OwnerHash, OwnerEqual>;

  std::vector<Entry> entries_;
  uint32_t free_ = kNil;
  PrintIndex by_print_;
  OwnerIndex by_owner_;
};

OwnerTable::OwnerTable(std::atomic<uint64_t>* bytes_total)
    : bytes_total_(bytes_total), first_(std::make_unique<Stripe>()) {
  AddBytes(static_cast<int64_t>(sizeof(*this) + first_->Bytes()));
}

OwnerTable::~OwnerTable() { bytes_total_->fetch_sub(bytes()); }

void OwnerTable::AddBytes(int64_t delta) {
  bytes_.fetch_add(static_cast<uint64_t>(delta), std::memory_order_relaxed);
  bytes_total_->fetch_add(static_cast<uint64_t>(delta), std::memory_order_relaxed);
}

OwnerTable::Stripe& OwnerTable::StripeAt(size_t index) const {
  return index == 0 ? *first_ : *others_[index - 1];
}

template <typename F>
auto OwnerTable::WithStripe(const Fingerprint& fingerprint, F f) const {
  for (;;) {
    const size_t count = stripe_count_.load(std::memory_order_acquire);
    // The top bits of the mix; the hash sets use the low ones.
    Stripe& stripe = count == 1 ? *first_ : StripeAt(Mix(fingerprint) >> 58);
    MutexLock lock(stripe.mutex);
    if (stripe_count_.load(std::memory_order_acquire) == count) return f(stripe);
  }
}

std::optional<Ownership> OwnerTable::Find(const Fingerprint& fingerprint) const {
  return WithStripe(fingerprint, [&](Stripe& stripe) {
    const Ownership* found = stripe.Find(fingerprint);
    return found == nullptr ? std::nullopt : std::optional<Ownership>(*found);
  });
}

void OwnerTable::Put(const Ownership& ownership) {
  WithStripe(ownership.fingerprint, [&](Stripe& stripe) {
    const auto before = static_cast<int64_t>(stripe.Bytes());
    if (!stripe.Erase(ownership.fingerprint)) size_.fetch_add(1, std::memory_order_relaxed);
    stripe.Insert(ownership);
    AddBytes(static_cast<int64_t>(stripe.Bytes()) - before);
    if (stripe.size() >= kStripeAt && stripe_count_.load(std::memory_order_relaxed) == 1) {
      Split(&stripe);
    }
  });
}

bool OwnerTable::Erase(const Fingerprint& fingerprint) {
  return WithStripe(fingerprint, [&](Stripe& stripe) {
    const bool erased = stripe.Erase(fingerprint);
    if (erased) size_.fetch_sub(1, std::memory_order_relaxed);
    return erased;
  });
}

bool OwnerTable::Settle(const Fingerprint& fingerprint, uint64_t owner, int64_t open_ms) {
  return WithStripe(fingerprint,
                    [&](Stripe& stripe) { return stripe.Settle(fingerprint, owner, open_ms); });
}

bool OwnerTable::HasRoom(const Fingerprint& fingerprint, uint64_t bytes_max) const {
  return WithStripe(fingerprint, [&](Stripe& stripe) {
    return bytes_total_->load(std::memory_order_relaxed) + stripe.GrowthBytes() <= bytes_max;
  });
}

std::vector<OwnerTable::Unsettled> OwnerTable::SelectUnsettled(
    std::span<const uint64_t> owners) const {
  std::vector<Unsettled> selected;
  size_t count = 1;
  for (size_t i = 0; i < count; ++i) {
    Stripe& stripe = StripeAt(i);
    MutexLock lock(stripe.mutex);
    count = stripe_count_.load(std::memory_order_acquire);
    for (uint64_t owner : owners) stripe.SelectUnsettled(owner, &selected);
  }
  return selected;
}

uint64_t OwnerTable::Expire(int64_t settled_open_ms_max) {
  uint64_t expired = 0;
  size_t count = 1;
  for (size_t i = 0; i < count; ++i) {
    Stripe& stripe = StripeAt(i);
    MutexLock lock(stripe.mutex);
    count = stripe_count_.load(std::memory_order_acquire);
    const auto before = static_cast<int64_t>(stripe.Bytes());
    const uint64_t gone = stripe.Expire(settled_open_ms_max);
    size_.fetch_sub(gone, std::memory_order_relaxed);
    AddBytes(static_cast<int64_t>(stripe.Bytes()) - before);
    expired += gone;
  }
  return expired;
}

size_t OwnerTable::CopyStripe(size_t index, std::vector<Ownership>* out) const {
  Stripe& stripe = StripeAt(index);
  MutexLock lock(stripe.mutex);
  stripe.Copy(out);
  return stripe_count_.load(std::memory_order_acquire);
}

void OwnerTable::Split(Stripe* first) {
  const uint64_t before = first->Bytes();
  std::vector<Ownership> all;
  all.reserve(first->size());
  first->Copy(&all);
  first->Clear();
  others_ = std::make_unique<std::unique_ptr<Stripe>[]>(kStripes - 1);
  for (size_t i = 0; i + 1 < kStripes; ++i) others_[i] = std::make_unique<Stripe>();
  uint64_t after = 0;
  for (const Ownership& ownership : all) {
    StripeAt(Mix(ownership.fingerprint) >> 58).Insert(ownership);
  }
  for (size_t i = 0; i < kStripes; ++i) after += StripeAt(i).Bytes();
  AddBytes(static_cast<int64_t>(after) - static_cast<int64_t>(before));
  stripe_count_.store(kStripes, std::memory_order_release);
}

}  // namespace firstseen
