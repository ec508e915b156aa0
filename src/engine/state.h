// What the engine holds in memory: sets, their windows, members, owners and import positions.
//
// Built for tens of thousands of sets: options are shared between sets that have the same, a
// window is 40 bytes, its table and its owners are made when the first member, the first owner
// comes. Of its own a set costs about 250 bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/owners.h"
#include "engine/records.h"
#include "exact/arena.h"
#include "exact/exact_set.h"
#include "firstseen/types.h"

namespace firstseen {

struct Window {
  WindowId id = 0;
  bool closed = false;  // dropped, and not reopened since: the tombstone
  // Sequence number of the last drop or reopening; what was recorded before it is gone.
  uint64_t state_sequence = 0;
  std::unique_ptr<ExactSet> members;   // null = none yet
  std::unique_ptr<OwnerTable> owners;  // null = none yet
};

// Where imports of a set stand.
struct Imports {
  uint64_t sequence = 0;  // of the last record that changed it
  std::map<std::string, Engine::ImportProgress, std::less<>> sources;

  // Takes in a record, unless it has been already.
  void Apply(uint64_t record_sequence, const ImportBatchRecord& record);
  void Apply(uint64_t record_sequence, const ImportsForgottenRecord& record);
};

class Set {
 public:
  Set(SetId id, std::string_view name, std::shared_ptr<const SetOptions> options)
      : id_(id), name_(name), options_(std::move(options)) {}

  SetId id() const { return id_; }
  const std::string& name() const { return name_; }
  const SetOptions& options() const { return *options_; }

  // nullptr when there is none. O(log windows).
  Window* Find(WindowId window) REQUIRES_SHARED(mutex_);
  const std::vector<std::unique_ptr<Window>>& windows() const { return windows_; }
  Window& FindOrAdd(WindowId window) REQUIRES(mutex_);
  uint64_t OpenWindows() const REQUIRES_SHARED(mutex_);

 private:
  friend class SetReader;
  friend class SetWriter;

  const SetId id_;
  const std::string name_;
  const std::shared_ptr<const SetOptions> options_;
  // Shared: windows stay as they are (members and owners have locks of their own). Exclusive:
  // windows come, close and open.
  SharedMutex mutex_;
  std::atomic<int> writers_ = 0;                  // waiting for or holding mutex_ exclusively
  std::vector<std::unique_ptr<Window>> windows_;  // ascending; never removed
};

// Holds a set for a change of its windows. std::shared_mutex lets readers overtake a waiting writer
// for as long as their holds overlap; dropping a window must not wait for claims to pause, so
// readers that come while a writer waits queue up behind the gate it holds.
class SetWriter {
 public:
  SetWriter(Mutex& gate, Set& set) : gate_(gate), set_(set) { set_.mutex_.Lock(); }
  ~SetWriter() {
    set_.mutex_.Unlock();
    set_.writers_.fetch_sub(1);
  }
  SetWriter(const SetWriter&) = delete;
  SetWriter& operator=(const SetWriter&) = delete;

 private:
  struct Announce {
    explicit Announce(Set& set) { set.writers_.fetch_add(1); }
  };
  MutexLock gate_;
  Set& set_;
  Announce announce_{set_};
};

// Holds a set so that its windows stay as they are.
class SetReader {
 public:
  SetReader(Mutex& gate, Set& set) : set_(set) {
    if (set_.writers_.load() != 0) MutexLock wait(gate);
    set_.mutex_.LockShared();
  }
  ~SetReader() { set_.mutex_.UnlockShared(); }
  SetReader(const SetReader&) = delete;
  SetReader& operator=(const SetReader&) = delete;

 private:
  Set& set_;
};

class State {
 public:
  explicit State(uint64_t memory_bytes_max)
      : arena_(Arena::Options{.bytes_max = memory_bytes_max}) {}

  // nullptr when there is none. Sets are never removed: the pointer stays good.
  Set* Find(SetId id) const;
  Set* Find(std::string_view name) const;
  SetId size() const;
  std::vector<Set*> All() const;  // in the order of creation
  // The caller has seen to it that the name is free and no other thread adds sets.
  Set* Add(std::string_view name, const SetOptions& options);

  std::unique_ptr<ExactSet> NewMembers(const SetOptions& options, uint64_t expected);
  std::unique_ptr<OwnerTable> NewOwners() { return std::make_unique<OwnerTable>(&owner_bytes_); }

  uint64_t owner_bytes() const { return owner_bytes_.load(std::memory_order_relaxed); }
  const Arena& arena() const { return arena_; }

  // Excludes all changes of windows; see SetWriter.
  Mutex& gate() const { return gate_; }

  // Import positions by set; guarded by imports_mutex(), which comes after every shard's lock.
  Mutex& imports_mutex() const { return imports_mutex_; }
  absl::flat_hash_map<SetId, Imports>& imports() { return imports_; }
  const absl::flat_hash_map<SetId, Imports>& imports() const { return imports_; }

 private:
  Arena arena_;
  std::atomic<uint64_t> owner_bytes_ = 0;
  mutable Mutex gate_;
  mutable Mutex imports_mutex_;
  absl::flat_hash_map<SetId, Imports> imports_;

  mutable SharedMutex sets_mutex_;
  std::vector<std::unique_ptr<Set>> sets_ GUARDED_BY(sets_mutex_);
  absl::flat_hash_map<std::string_view, Set*> by_name_ GUARDED_BY(sets_mutex_);
  // Options by their encoded form.
  absl::flat_hash_map<std::string, std::shared_ptr<const SetOptions>> options_
      GUARDED_BY(sets_mutex_);
};

}  // namespace firstseen
