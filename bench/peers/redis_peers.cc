// Redis, a real server on a socket of its own, spoken to through hiredis in pipelines.
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "base/status.h"
#include "peers/peer.h"

namespace firstseen {
namespace {

// Where a key goes: the Redis key of its bucket, and what is stored there.
struct Place {
  std::string key;
  std::string member;
};

class RedisPeer : public Peer {
 public:
  ~RedisPeer() override { Close().IgnoreError(); }

  absl::Status Open(const std::string& directory) override {
    std::filesystem::create_directories(directory);
    socket_ = directory + "/redis.sock";
    RETURN_IF_ERROR(StartServer(directory));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    while (std::chrono::steady_clock::now() < deadline) {
      if (context_ == nullptr || context_->err != 0) {
        redisFree(context_);
        context_ = redisConnectUnix(socket_.c_str());
      }
      if (context_ != nullptr && context_->err == 0) {
        const absl::StatusOr<std::string> pong = Ask("PING");
        if (pong.ok() && *pong == "PONG") return absl::OkStatus();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return Internal("redis-server did not answer within ten minutes");
  }
  absl::StatusOr<uint64_t> Add(std::span<const Fingerprint> keys) override {
    return Count("SADD", keys);
  }
  absl::StatusOr<uint64_t> CountPresent(std::span<const Fingerprint> keys) override {
    return Count("SISMEMBER", keys);
  }
  bool lasting() const override { return true; }
  absl::Status MakeAddsDurable() override { return Ask("CONFIG SET appendfsync always").status(); }
  // Writes the compact file that a restart begins with, and waits for it.
  absl::Status Settle() override {
    RETURN_IF_ERROR(Ask("BGREWRITEAOF").status());
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      ASSIGN_OR_RETURN(const std::string info, Ask("INFO persistence"));
      if (info.find("aof_rewrite_in_progress:0") != std::string::npos &&
          info.find("aof_rewrite_scheduled:0") != std::string::npos) {
        return absl::OkStatus();
      }
    }
  }
  absl::Status Close() override {
    if (server_ <= 0) return absl::OkStatus();
    redisFree(context_);
    context_ = nullptr;
    kill(server_, SIGTERM);
    int status = 0;
    waitpid(server_, &status, 0);
    server_ = 0;
    return status == 0 ? absl::OkStatus() : Internal("redis-server ended with {}", status);
  }
  absl::StatusOr<uint64_t> ResidentBytes() const override {
    ASSIGN_OR_RETURN(const std::string info, Ask("INFO memory"));
    const std::string name = "\nused_memory_rss:";
    const size_t at = info.find(name);
    if (at == std::string::npos) return Internal("INFO memory has no used_memory_rss");
    return std::strtoull(info.c_str() + at + name.size(), nullptr, 10);
  }

 protected:
  virtual Place PlaceOf(const Fingerprint& key) const = 0;

 private:
  absl::Status StartServer(const std::string& directory) {
    server_ = fork();
    if (server_ < 0) return Internal("cannot fork: {}", std::strerror(errno));
    if (server_ == 0) {
      execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket_.c_str(),
             "--dir", directory.c_str(), "--save", "", "--appendonly", "yes", "--appendfsync", "no",
             "--auto-aof-rewrite-percentage", "0", "--loglevel", "warning", "--logfile",
             (directory + "/redis.log").c_str(), nullptr);
      _exit(127);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Ask(const char* command) const {
    auto* const reply = static_cast<redisReply*>(redisCommand(context_, command));
    if (reply == nullptr) return Internal("redis: {}", context_->errstr);
    std::string text(reply->str != nullptr ? reply->str : "", reply->len);
    const bool failed = reply->type == REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    if (failed) return Internal("redis: {}", text);
    return text;
  }

  // One command a key, in pipelines of 256; sums up the integers that come back.
  absl::StatusOr<uint64_t> Count(const char* command, std::span<const Fingerprint> keys) {
    constexpr size_t kPipeline = 256;
    uint64_t sum = 0;
    for (size_t begin = 0; begin < keys.size(); begin += kPipeline) {
      const auto block = keys.subspan(begin, std::min(kPipeline, keys.size() - begin));
      for (const Fingerprint& key : block) {
        const Place place = PlaceOf(key);
        const char* argv[] = {command, place.key.data(), place.member.data()};
        const size_t sizes[] = {std::strlen(command), place.key.size(), place.member.size()};
        redisAppendCommandArgv(context_, 3, argv, sizes);
      }
      for (size_t i = 0; i < block.size(); ++i) {
        redisReply* reply = nullptr;
        if (redisGetReply(context_, reinterpret_cast<void**>(&reply)) != REDIS_OK) {
          return Internal("redis: {}", context_->errstr);
        }
        const bool good = reply->type == REDIS_REPLY_INTEGER;
        sum += good ? static_cast<uint64_t>(reply->integer) : 0;
        const std::string text = good ? "" : reply->str;
        freeReplyObject(reply);
        if (!good) return Internal("redis: {}", text);
      }
    }
    return sum;
  }

  std::string socket_;
  pid_t server_ = 0;
  redisContext* context_ = nullptr;
};

// Sets of about 200 000 members, as the systems that are replaced have them.
constexpr uint64_t kSets = 256;

class ShortMembers : public RedisPeer {
  Place PlaceOf(const Fingerprint& key) const override {
    std::string member(16, '\0');
    std::memcpy(member.data(), &key, 16);
    return {fmt::format("kyc:{}", key.hi % kSets), std::move(member)};
  }
};

class LongMembers : public RedisPeer {
  Place PlaceOf(const Fingerprint& key) const override {
    return {fmt::format("kyc:{}", key.hi % kSets),
            fmt::format("{:016x}{:016x}{:016x}{:08x}", key.hi, key.lo, key.hi ^ key.lo,
                        key.lo & 0xffffffffu)};
  }
};

// Sets of a few hundred 64-bit integers, which Redis packs; exact to about 64 + log2(buckets) bits.
class IntsetBuckets : public RedisPeer {
  static constexpr uint64_t kMean = 400;  // members a bucket at the expected number
  Place PlaceOf(const Fingerprint& key) const override {
    static const uint64_t buckets =
        std::strtoull(std::getenv("FIRSTSEEN_PEERS_KEYS"), nullptr, 10) / kMean + 1;
    return {fmt::format("b{}", key.hi % buckets), fmt::format("{}", static_cast<int64_t>(key.lo))};
  }
};

}  // namespace

std::vector<PeerKind> RedisPeers() {
  return {
      {"Redis Set, 56-byte members", "the member", MakePeer<LongMembers>},
      {"Redis Set, 16-byte members", "128 bits", MakePeer<ShortMembers>},
      {"Redis intset buckets", "64 bits and the bucket's number", MakePeer<IntsetBuckets>},
  };
}

}  // namespace firstseen
