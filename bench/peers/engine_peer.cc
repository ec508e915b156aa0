// Our engine with its log and snapshots.
#include "base/status.h"
#include "engine/engine.h"
#include "peers/peer.h"

namespace firstseen {
namespace {

class EnginePeer : public Peer {
 public:
  absl::Status Open(const std::string& directory) override {
    EngineOptions options;
    options.directory = directory;
    options.key_check_value = "peers";
    const absl::Status created = Engine::Create(options);
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
    ASSIGN_OR_RETURN(engine_, Engine::Open(options));
    if (!created.ok()) {
      ASSIGN_OR_RETURN(set_, engine_->FindSet("keys"));
      return absl::OkStatus();
    }
    SetOptions keys;
    keys.window = WindowKind::kNone;
    keys.fields = {{"key", kOpaque}};
    keys.durability = Durability::kNone;
    ASSIGN_OR_RETURN(set_, engine_->CreateSet("keys", keys));
    keys.durability = Durability::kFsync;
    return engine_->CreateSet("durable", keys).status();
  }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    return Count(keys, Verdict::kFirst, [&] { return engine_->Claim(set_, requests_, results_); });
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    return Count(keys, Verdict::kDuplicate,
                 [&] { return engine_->Check(set_, requests_, results_); });
  }
  bool lasting() const override { return true; }
  absl::Status MakeAddsDurable() override {
    ASSIGN_OR_RETURN(set_, engine_->FindSet("durable"));
    return absl::OkStatus();
  }
  absl::Status Settle() override { return engine_->Snapshot(); }
  absl::Status Close() override {
    RETURN_IF_ERROR(engine_->Close());
    engine_.reset();
    return absl::OkStatus();
  }

 private:
  template <typename Operation>
  absl::StatusOr<uint64_t> Count(std::span<const Fingerprint> keys, Verdict verdict,
                                 Operation operation) {
    requests_.clear();
    for (const Fingerprint& key : keys) requests_.push_back({0, key.Truncated(96), 0});
    results_.resize(keys.size());
    RETURN_IF_ERROR(operation());
    uint64_t count = 0;
    for (const ClaimResult& result : results_) {
      RETURN_IF_ERROR(result.status);
      count += result.verdict == verdict ? 1 : 0;
    }
    return count;
  }

  std::unique_ptr<Engine> engine_;
  SetId set_ = 0;
  std::vector<ClaimRequest> requests_;
  std::vector<ClaimResult> results_;
};

}  // namespace

std::vector<PeerKind> EnginePeers() {
  return {{"firstseen engine", "96 bits, log and snapshot", MakePeer<EnginePeer>}};
}

}  // namespace firstseen
