// What bench/peers.sh compares: ways to keep a set of keys and to be told which of them are new.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "keys/fingerprint.h"

namespace firstseen {

// One contender. Keys are 128 random bits; a peer may store fewer if it says so in its name.
class Peer {
 public:
  virtual ~Peer() = default;

  // Opens what is in `directory`, or begins anew when it is empty. Answers lookups on return.
  virtual absl::Status Open(const std::string& directory) = 0;
  // Adds keys and counts those that were new. Need not be on disk on return.
  virtual absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) = 0;
  virtual absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) = 0;
  // Whether its keys outlive its process.
  virtual bool lasting() const { return false; }
  // From now on Add returns only when its keys are on disk.
  virtual absl::Status MakeAddsDurable();
  // Brings itself into the state in which it would be left running: merges, snapshots.
  virtual absl::Status Settle() { return absl::OkStatus(); }
  virtual absl::Status Close() { return absl::OkStatus(); }
  // Resident bytes of the process that holds the keys.
  virtual absl::StatusOr<uint64_t> ResidentBytes() const;
};

template <typename P>
std::unique_ptr<Peer> MakePeer() {
  return std::make_unique<P>();
}

struct PeerKind {
  std::string_view name;
  std::string_view stores;  // what of a key
  std::unique_ptr<Peer> (*make)();
};

// In the order of the table.
std::vector<PeerKind> EnginePeers();
std::vector<PeerKind> MemoryPeers();
std::vector<PeerKind> RedisPeers();
std::vector<PeerKind> DiskPeers();

}  // namespace firstseen
