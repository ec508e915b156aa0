// What each fsync of the log is good for: without any one of them something is lost, and records
// that arrive together share one.
#include <string>
#include <thread>
#include <vector>

#include "engine/log_program.h"

namespace firstseen::log_program {
namespace {

// ---- Removing fsyncs.

// Whether anything is lost when sync call number `ignored` of a program does nothing.
bool LosesWithoutSync(uint64_t ignored) {
  Disk disk;
  disk.IgnoreSyncs([=](const Disk::SyncCall& call) { return call.number == ignored; });
  bool lost = false;
  std::string last_record;
  WorkAndTake(&disk, {}, "first", true, [&](const History& history) {
    if (!history.records.empty()) last_record = history.records.back();
    for (uint64_t seed = 0; seed < 24 && !lost; ++seed) {
      lost = !OpenAgain(disk.AfterPowerLoss(seed).get(), history).empty();
    }
  });
  // The closing record is there so that damage to the last frame is noticed.
  auto after = disk.AfterPowerLoss(0);
  const std::string path = kDirectory + ("/" + after->List(kDirectory).value().back());
  std::string content = after->Content(path);
  const size_t at = content.find(last_record);
  if (at == std::string::npos) return true;
  content[at] ^= 1;
  after->SetContent(path, content);
  return lost || OpenAgain(after.get(), {}).find("DATA_LOSS") == std::string::npos;
}

TEST(LogSyncTest, EveryFsyncOfAWorkingLogIsNeeded) {
  ASSERT_FALSE(LosesWithoutSync(0));
  Disk disk;
  WorkAndTake(&disk, {}, "first", true, [](const History&) {});
  const std::vector<Disk::SyncCall> calls = disk.sync_calls();
  ASSERT_GT(calls.size(), 20u);
  for (const Disk::SyncCall& call : calls) {
    EXPECT_TRUE(LosesWithoutSync(call.number))
        << "sync " << call.number << " of " << calls.size() << ", " << call.path;
  }
}

// Whether anything is lost when sync call number `ignored` of a program that is started again
// after a kill does nothing.
bool LosesWithoutSyncOfRestart(uint64_t ignored) {
  Disk disk;
  std::vector<Moment> moments;
  WorkAndTake(&disk, {}, "first", false, [&](const History& history) {
    moments.push_back({disk.AfterProcessCrash(), history});
  });
  for (const Moment& moment : moments) {
    moment.disk->IgnoreSyncs([=](const Disk::SyncCall& call) { return call.number == ignored; });
    Program restarted(moment.disk.get(), moment.history);
    EXPECT_EQ(restarted.Open(), "");
    EXPECT_LE(moment.disk->sync_calls().size(), 3u);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      if (!OpenAgain(moment.disk->AfterPowerLoss(seed).get(), restarted.history()).empty()) {
        return true;
      }
    }
  }
  return false;
}

TEST(LogSyncTest, EveryFsyncOfARestartIsNeeded) {
  EXPECT_FALSE(LosesWithoutSyncOfRestart(0));
  EXPECT_TRUE(LosesWithoutSyncOfRestart(1));  // of the last segment
  EXPECT_TRUE(LosesWithoutSyncOfRestart(2));  // of its name
}

// ---- Group commit.

TEST(LogSyncTest, RecordsThatArriveDuringAnFsyncShareTheNextOne) {
  constexpr uint64_t kThreads = 64;
  Disk disk;
  Log::Options options = OptionsFor(&disk);
  options.segment_bytes = 1 << 20;
  auto log = Log::Open(options, 0, [](uint64_t, std::string_view) { return absl::OkStatus(); });
  ASSERT_TRUE(log.ok());
  const size_t syncs_before = disk.sync_calls().size();
  // The first write of the writer waits until everybody has appended.
  disk.set_after_operation([&](uint64_t) {
    while ((*log)->last_appended() < kThreads) std::this_thread::yield();
  });
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const uint64_t sequence = (*log)->Append("record");
      EXPECT_TRUE((*log)->WaitDurable(sequence).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*log)->durable(), kThreads);
  // The one that was under way, one for all others, and the name of the segment.
  EXPECT_LE(disk.sync_calls().size() - syncs_before, 3u);
}

}  // namespace
}  // namespace firstseen::log_program
