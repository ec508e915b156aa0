// Hash tables in memory, which forget everything when their process ends.
#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <unordered_set>

#include "absl/container/flat_hash_set.h"
#include "exact/exact_set.h"
#include "peers/peer.h"

namespace firstseen {
namespace {

// Keys are random bits already: the best hash there is.
struct FirstWord {
  using is_avalanching = void;
  size_t operator()(const Fingerprint& key) const { return key.hi ^ key.lo; }
};

template <typename Table>
class TablePeer : public Peer {
 public:
  absl::Status Open(const std::string& /*directory*/) override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    uint64_t added = 0;
    for (const Fingerprint& key : keys) added += table_.insert(key).second ? 1 : 0;
    return added;
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    uint64_t present = 0;
    for (const Fingerprint& key : keys) present += table_.contains(key) ? 1 : 0;
    return present;
  }

 private:
  Table table_;
};

class ExactSetPeer : public Peer {
 public:
  absl::Status Open(const std::string& /*directory*/) override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    keys_.assign(keys.begin(), keys.end());
    for (Fingerprint& key : keys_) key = key.Truncated(set_.bits());
    outcomes_.resize(keys.size());
    set_.AddBatch(keys_, outcomes_);
    uint64_t added = 0;
    for (const AddOutcome outcome : outcomes_) added += outcome == AddOutcome::kAdded ? 1 : 0;
    return added;
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    keys_.assign(keys.begin(), keys.end());
    for (Fingerprint& key : keys_) key = key.Truncated(set_.bits());
    if (present_size_ < keys.size()) {
      present_ = std::make_unique<bool[]>(keys.size());
      present_size_ = keys.size();
    }
    const std::span<bool> present(present_.get(), keys.size());
    set_.ContainsBatch(keys_, present);
    uint64_t count = 0;
    for (const bool one : present) count += one ? 1 : 0;
    return count;
  }

 private:
  Arena arena_{Arena::Options{}};
  ExactSet set_{&arena_, {}};
  std::vector<Fingerprint> keys_;
  std::vector<AddOutcome> outcomes_;
  std::unique_ptr<bool[]> present_;
  size_t present_size_ = 0;
};

}  // namespace

std::vector<PeerKind> MemoryPeers() {
  return {
      {"firstseen exact set", "96 bits, memory only", MakePeer<ExactSetPeer>},
      {"boost::unordered_flat_set", "128 bits, memory only",
       MakePeer<TablePeer<boost::unordered_flat_set<Fingerprint, FirstWord>>>},
      {"absl::flat_hash_set", "128 bits, memory only",
       MakePeer<TablePeer<absl::flat_hash_set<Fingerprint, FirstWord>>>},
      {"std::unordered_set", "128 bits, memory only",
       MakePeer<TablePeer<std::unordered_set<Fingerprint, FirstWord>>>},
  };
}

}  // namespace firstseen
