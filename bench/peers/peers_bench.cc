// Measures one contender and prints one line of JSON. bench/peers.sh runs all of them.
//
//   FIRSTSEEN_PEERS_KEYS=N peers_bench NUMBER DIRECTORY     the NUMBER-th of them, from 0
//   peers_bench list                                        their names, one a line
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "peers/peer.h"

namespace firstseen {

absl::Status Peer::MakeAddsDurable() {
  return absl::UnimplementedError("keeps nothing when its process ends");
}

absl::StatusOr<uint64_t> Peer::ResidentBytes() const {
  malloc_trim(0);
  uint64_t total = 0;
  uint64_t resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return Internal("cannot open /proc/self/statm");
  const int read = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  if (read != 2) return Internal("cannot read /proc/self/statm");
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

namespace {

constexpr uint64_t kBatch = 4096;
constexpr uint64_t kDurableBatch = 1000;  // keys that one fsync is for
constexpr uint64_t kDurableBatches = 200;
constexpr uint64_t kLookups = 2'000'000;

// SplitMix64's output function (Steele, Lea, Flood, 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Fingerprint KeyAt(uint64_t index) {
  return {Mix(index * 2 * 0x9e3779b97f4a7c15u), Mix((index * 2 + 1) * 0x9e3779b97f4a7c15u)};
}

class Stopwatch {
 public:
  void Start() { start_ = std::chrono::steady_clock::now(); }
  void Stop() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  double seconds_ = 0;
};

// Calls `operation` with batches of the keys `key_at(0)` to `key_at(count - 1)`; keys are made
// outside the time. Fails unless the operation counts `expected` of them. Returns keys a second.
template <typename KeyOf, typename Operation>
absl::StatusOr<double> Pass(uint64_t count, uint64_t batch, uint64_t expected, KeyOf key_at,
                            Operation operation) {
  std::vector<Fingerprint> keys;
  Stopwatch watch;
  uint64_t counted = 0;
  for (uint64_t first = 0; first < count; first += batch) {
    keys.clear();
    for (uint64_t i = first; i < std::min(count, first + batch); ++i) keys.push_back(key_at(i));
    watch.Start();
    ASSIGN_OR_RETURN(const uint64_t part, operation(keys));
    watch.Stop();
    counted += part;
  }
  if (counted != expected) return Internal("counted {} keys, not {}", counted, expected);
  return static_cast<double>(count) / watch.seconds();
}

uint64_t DiskBytes(const std::string& directory) {
  uint64_t bytes = 0;
  if (!std::filesystem::exists(directory)) return 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

absl::Status MeasureOnDisk(const PeerKind& kind, const std::string& directory, uint64_t keys,
                           std::unique_ptr<Peer> peer, nlohmann::json* figures) {
  RETURN_IF_ERROR(peer->Settle());
  (*figures)["disk_bytes_per_key"] =
      static_cast<double>(DiskBytes(directory)) / static_cast<double>(keys);
  const auto add = [&](std::span<const Fingerprint> some) { return peer->Add(some); };
  RETURN_IF_ERROR(peer->MakeAddsDurable());
  const uint64_t more = kDurableBatch * kDurableBatches;
  ASSIGN_OR_RETURN(
      (*figures)["durable_adds_per_second"],
      Pass(
          more, kDurableBatch, more, [&](uint64_t i) { return KeyAt(keys + i); }, add));
  RETURN_IF_ERROR(peer->Close());
  Stopwatch restart;
  peer = kind.make();
  restart.Start();
  RETURN_IF_ERROR(peer->Open(directory));
  const Fingerprint first = KeyAt(0);
  ASSIGN_OR_RETURN(const uint64_t present, peer->CountPresent({&first, 1}));
  restart.Stop();
  if (present != 1) return Internal("a key is gone after the restart");
  (*figures)["restart_seconds"] = restart.seconds();
  return peer->Close();
}

absl::StatusOr<nlohmann::json> Measure(const PeerKind& kind, const std::string& directory,
                                       uint64_t keys) {
  nlohmann::json figures = {{"name", kind.name}, {"stores", kind.stores}, {"keys", keys}};
  std::unique_ptr<Peer> peer = kind.make();
  RETURN_IF_ERROR(peer->Open(directory));
  ASSIGN_OR_RETURN(const uint64_t before, peer->ResidentBytes());
  const auto add = [&](std::span<const Fingerprint> some) { return peer->Add(some); };
  const auto look = [&](std::span<const Fingerprint> some) { return peer->CountPresent(some); };
  ASSIGN_OR_RETURN(figures["adds_per_second"], Pass(keys, kBatch, keys, KeyAt, add));
  const uint64_t lookups = std::min(keys, kLookups);
  ASSIGN_OR_RETURN(figures["hits_per_second"],
                   Pass(
                       lookups, kBatch, lookups,
                       [&](uint64_t i) { return KeyAt(Mix(i + 0x5eed) % keys); }, look));
  ASSIGN_OR_RETURN(
      figures["misses_per_second"],
      Pass(
          lookups, kBatch, 0, [](uint64_t i) { return KeyAt(i + (uint64_t{1} << 60)); }, look));
  ASSIGN_OR_RETURN(const uint64_t after, peer->ResidentBytes());
  figures["memory_bytes_per_key"] = static_cast<double>(after - before) / static_cast<double>(keys);
  if (peer->lasting()) {
    RETURN_IF_ERROR(MeasureOnDisk(kind, directory, keys, std::move(peer), &figures));
  }
  return figures;
}

std::vector<PeerKind> AllPeers() {
  std::vector<PeerKind> all;
  for (const auto& some : {EnginePeers(), MemoryPeers(), RedisPeers(), DiskPeers()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

int Main(int argc, char** argv) {
  const std::vector<PeerKind> peers = AllPeers();
  if (argc == 2 && std::string_view(argv[1]) == "list") {
    for (const PeerKind& peer : peers) std::printf("%s\n", std::string(peer.name).c_str());
    return 0;
  }
  const char* const text = std::getenv("FIRSTSEEN_PEERS_KEYS");
  const uint64_t keys = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  const size_t number = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : peers.size();
  if (keys == 0 || number >= peers.size()) {
    std::fprintf(stderr, "usage: FIRSTSEEN_PEERS_KEYS=N peers_bench NUMBER DIRECTORY | list\n");
    return 2;
  }
  const absl::StatusOr<nlohmann::json> figures = Measure(peers[number], argv[2], keys);
  if (!figures.ok()) {
    std::fprintf(stderr, "peers_bench: %s\n", figures.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", figures->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace firstseen

int main(int argc, char** argv) { return firstseen::Main(argc, argv); }
