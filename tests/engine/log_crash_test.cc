// Breaks the log's promise in every way a disk can: at each operation the power goes, the program
// dies, or the operation fails. Every acknowledged record must be there, in order, without a hole,
// and no record that was never appended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/log.h"
#include "support/faulty_file_system.h"
#include "support/random.h"

namespace firstseen {
namespace {

using Disk = FaultyFileSystem;

constexpr char kDirectory[] = "/data";
constexpr int64_t kNever = 1'000'000'000;

Log::Options OptionsFor(FileSystem* disk) {
  Log::Options options;
  options.files = disk;
  options.directory = kDirectory;
  options.segment_bytes = 1024;
  options.interval_ms = kNever;
  return options;
}

// What was appended, and how much of it has been promised.
struct History {
  std::vector<std::string> records;  // record i has number i + 1
  uint64_t acknowledged = 0;
  uint64_t after = 0;  // a snapshot holds everything up to here
};

// A program that uses a log, and remembers what it was told.
class Program {
 public:
  explicit Program(Disk* disk, History history = {}) : disk_(disk), history_(std::move(history)) {}

  // Opens the log and compares. Returns what is wrong, or "".
  std::string Open() {
    std::vector<std::string> replayed;
    uint64_t next = history_.after + 1;
    std::string wrong;
    auto log = Log::Open(OptionsFor(disk_), history_.after,
                         [&](uint64_t sequence, std::string_view record) {
                           if (sequence != next++) wrong = "numbers out of order";
                           replayed.emplace_back(record);
                           return absl::OkStatus();
                         });
    if (!log.ok()) return log.status().ToString();
    if (!wrong.empty()) return wrong;
    const uint64_t last = history_.after + replayed.size();
    if (last > history_.records.size()) return "more records than were appended";
    if (last < history_.acknowledged) {
      return fmt::format("record {} was acknowledged, {} is the last", history_.acknowledged, last);
    }
    for (uint64_t i = history_.after; i < last; ++i) {
      if (replayed[i - history_.after] != history_.records[i]) {
        return fmt::format("record {} is another one", i + 1);
      }
    }
    if ((*log)->durable() != last) return "durable() is not the last record";
    history_.records.resize(last);
    history_.acknowledged = last;
    log_ = *std::move(log);
    return "";
  }

  // False when the log refused.
  bool Append(std::string record) {
    {
      MutexLock lock(mutex_);
      history_.records.push_back(record);
    }
    const uint64_t sequence = log_->Append(record);
    MutexLock lock(mutex_);
    if (sequence == 0) {
      history_.records.pop_back();
      return false;
    }
    EXPECT_EQ(sequence, history_.records.size());
    return true;
  }

  bool Wait() { return log_->WaitDurable(log_->last_appended()).ok(); }

  bool Snapshot() {
    const absl::StatusOr<uint64_t> first = log_->Rotate();
    if (!first.ok()) return false;
    {
      MutexLock lock(mutex_);
      history_.after = *first - 1;
    }
    return log_->RemoveUpTo(*first - 1).ok();
  }

  // May be called while another thread appends.
  History history() {
    MutexLock lock(mutex_);
    History copy = history_;
    copy.acknowledged = std::max(copy.acknowledged, log_ != nullptr ? log_->durable() : 0);
    return copy;
  }

  Log* log() { return log_.get(); }
  std::string Name(std::string_view kind) { return fmt::format("{} {}", kind, ++names_); }

 private:
  Disk* const disk_;
  Mutex mutex_;
  History history_;
  std::unique_ptr<Log> log_;
  int names_ = 0;
};

// Single records, groups, records larger than a segment, several segments, a snapshot, and at the
// end records that nobody waits for. Goes on whatever fails.
void Work(Program* program, std::string_view kind) {
  program->Append(program->Name(kind));
  program->Wait();
  program->Append(program->Name(kind) + std::string(1500, 'L'));
  program->Wait();
  for (int i = 0; i < 3; ++i) program->Append(program->Name(kind) + std::string(200, 'g'));
  program->Wait();
  for (int i = 0; i < 6; ++i) {
    program->Append(program->Name(kind) + std::string(150, 's'));
    program->Wait();
  }
  program->Snapshot();
  for (int i = 0; i < 3; ++i) {
    program->Append(program->Name(kind));
    program->Wait();
  }
  program->Append(program->Name(kind));
  program->Append(program->Name(kind));
}

struct Moment {
  std::unique_ptr<Disk> disk;
  History history;
};

// Calls `take` after each operation while `Work` runs on `disk`, and once after the end.
void WorkAndTake(Disk* disk, const History& before, std::string_view kind, bool close,
                 const std::function<void(History)>& take) {
  Program program(disk, before);
  std::atomic<bool> open = false;
  disk->set_after_operation([&](uint64_t) {
    // While the log is being opened nothing new is promised.
    take(open.load() ? program.history() : before);
  });
  ASSERT_EQ(program.Open(), "");
  open = true;
  Work(&program, kind);
  if (close) {
    ASSERT_TRUE(program.log()->Close().ok());
  }
  const History end = program.history();
  disk->set_after_operation(nullptr);
  take(end);
}

std::string OpenAgain(Disk* disk, const History& history) { return Program(disk, history).Open(); }

TEST(LogCrashTest, PowerLossAtAnyOperationKeepsEveryAcknowledgedRecord) {
  Disk disk;
  std::vector<Moment> moments;
  WorkAndTake(&disk, {}, "first", true, [&](const History& history) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      moments.push_back({disk.AfterPowerLoss(seed), history});
    }
  });
  ASSERT_GT(moments.size(), 1000u);
  for (const Moment& moment : moments) {
    ASSERT_EQ(OpenAgain(moment.disk.get(), moment.history), "");
  }
}

// What a first recovery cut off must not come back after a second one.
TEST(LogCrashTest, PowerLossAgainAfterRecoveryKeepsToTheFirstRecovery) {
  Disk disk;
  std::vector<Moment> first;
  WorkAndTake(&disk, {}, "first", false, [&](const History& history) {
    for (uint64_t seed : {0, 1, 2, 3}) first.push_back({disk.AfterPowerLoss(seed), history});
  });
  for (const Moment& moment : first) {
    std::vector<Moment> second;
    Program program(moment.disk.get(), moment.history);
    ASSERT_EQ(program.Open(), "");
    const auto take = [&](uint64_t) {
      for (uint64_t seed : {0, 1, 2}) {
        second.push_back({moment.disk->AfterPowerLoss(seed), program.history()});
      }
    };
    take(0);
    moment.disk->set_after_operation(take);
    // The same shapes as in the first life.
    for (int i = 0; i < 3; ++i) {
      program.Append(program.Name("later"));
      program.Wait();
    }
    for (const Moment& again : second) {
      ASSERT_EQ(OpenAgain(again.disk.get(), again.history), "");
    }
    ASSERT_TRUE(program.log()->Close().ok());
  }
}

// The program dies, is started again, answers from what it read, and then the power goes.
TEST(LogCrashTest, WhatARestartedProgramReadsIsOnDisk) {
  Disk disk;
  std::vector<Moment> moments;
  WorkAndTake(&disk, {}, "first", false, [&](const History& history) {
    moments.push_back({disk.AfterProcessCrash(), history});
  });
  for (const Moment& moment : moments) {
    Program restarted(moment.disk.get(), moment.history);
    ASSERT_EQ(restarted.Open(), "");
    for (uint64_t seed = 0; seed < 10; ++seed) {
      auto after = moment.disk->AfterPowerLoss(seed);
      ASSERT_EQ(OpenAgain(after.get(), restarted.history()), "");
    }
  }
}

TEST(LogCrashTest, DamageToTheLastFrameOfAClosedLogIsNoticedAfterPowerLoss) {
  Disk disk;
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  program.Append("record");
  ASSERT_TRUE(program.log()->Close().ok());
  auto after = disk.AfterPowerLoss(0);
  const std::string path = "/data/00000000000000000001.log";
  std::string content = after->Content(path);
  content[64 + 56 + 5] ^= 1;
  after->SetContent(path, content);
  EXPECT_THAT(OpenAgain(after.get(), program.history()), testing::HasSubstr("DATA_LOSS"));
}

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

TEST(LogCrashTest, EveryFsyncOfAWorkingLogIsNeeded) {
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

TEST(LogCrashTest, EveryFsyncOfARestartIsNeeded) {
  EXPECT_FALSE(LosesWithoutSyncOfRestart(0));
  EXPECT_TRUE(LosesWithoutSyncOfRestart(1));  // of the last segment
  EXPECT_TRUE(LosesWithoutSyncOfRestart(2));  // of its name
}

// ---- Operations that fail.

// Runs a program in which `fault` strikes, starts it again on the healed disk, and lets the power
// go, before and after that.
void Survive(const Disk::Fault& fault) {
  SCOPED_TRACE(fmt::format("operation {} fails, for good {}, torn {}, {}", fault.at, fault.for_good,
                           fault.tear, fault.error == Disk::Error::kIo ? "EIO" : "ENOSPC"));
  Disk disk;
  disk.FailAt(fault);
  Program program(&disk);
  if (program.Open().empty()) {
    Work(&program, "first");
    if (program.log()->Close().ok()) {
      EXPECT_EQ(program.log()->durable(), program.log()->last_appended());
    } else {
      EXPECT_EQ(program.log()->Append("x"), 0u);
    }
  }
  const History history = program.history();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(OpenAgain(disk.AfterPowerLoss(seed).get(), history), "");
  }
  auto healed = disk.AfterProcessCrash();
  Program restarted(healed.get(), history);
  ASSERT_EQ(restarted.Open(), "");
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(OpenAgain(healed->AfterPowerLoss(seed).get(), restarted.history()), "");
  }
  restarted.Append("once more");
  EXPECT_TRUE(restarted.Wait());
}

uint64_t OperationsOfWork() {
  Disk disk;
  WorkAndTake(&disk, {}, "first", true, [](const History&) {});
  return disk.operations();
}

TEST(LogCrashTest, AnyOperationMayFail) {
  const uint64_t operations = OperationsOfWork();
  ASSERT_GT(operations, 50u);
  for (uint64_t at = 1; at <= operations; ++at) {
    for (const bool for_good : {false, true}) {
      for (const bool tear : {false, true}) {
        for (const Disk::Error error : {Disk::Error::kIo, Disk::Error::kNoSpace}) {
          Survive({.at = at, .for_good = for_good, .error = error, .tear = tear});
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(LogCrashTest, AfterAFailedFsyncNothingIsTakenAndNoFsyncIsTriedAgain) {
  Disk disk;
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  ASSERT_TRUE(program.Append("one"));
  ASSERT_TRUE(program.Wait());
  const size_t syncs = disk.sync_calls().size();
  disk.FailAt({.at = disk.operations() + 2});  // the write works, the sync does not
  ASSERT_TRUE(program.Append("two"));
  EXPECT_FALSE(program.Wait());
  EXPECT_EQ(program.log()->durable(), 1u);
  const absl::Status status = program.log()->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("started again"));
  EXPECT_EQ(program.log()->WaitDurable(1), status);
  EXPECT_EQ(program.log()->WaitForSpace(), status);
  EXPECT_EQ(program.log()->Rotate().status(), status);
  EXPECT_EQ(program.log()->Append("three"), 0u);
  EXPECT_EQ(program.log()->Close(), status);
  EXPECT_EQ(disk.sync_calls().size(), syncs);
}

// ---- A full disk.

TEST(LogCrashTest, FullDiskIsReportedBeforeAnythingIsQueuedAndGoesAwayWithRoom) {
  Disk disk;
  disk.SetCapacity(1024);  // one segment
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  absl::Status space;
  int appended = 0;
  while ((space = program.log()->WaitForSpace()).ok()) {
    ASSERT_TRUE(program.Append(std::string(100, 'x')));
    ASSERT_TRUE(program.Wait());
    ASSERT_LT(++appended, 100);
  }
  EXPECT_EQ(space.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GE(appended, 3);
  EXPECT_TRUE(program.log()->status().ok());
  EXPECT_EQ(program.log()->WaitForSpace().code(), absl::StatusCode::kResourceExhausted);
  disk.SetCapacity(10'000);
  ASSERT_TRUE(program.log()->WaitForSpace().ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(program.Append(std::string(100, 'y')));
    ASSERT_TRUE(program.Wait());
  }
  EXPECT_EQ(OpenAgain(disk.AfterPowerLoss(0).get(), program.history()), "");
}

TEST(LogCrashTest, RecordsQueuedWhenTheDiskFillsAreKeptUntilThereIsRoom) {
  Disk disk;
  disk.SetCapacity(1024);
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  // More than the segment holds, without asking for space.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(program.Append(std::string(100, 'x')));
  EXPECT_EQ(program.log()->WaitDurable(20).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(program.log()->Rotate().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(program.log()->status().ok());
  ASSERT_TRUE(program.Append("late"));
  disk.SetCapacity(10'000);
  ASSERT_TRUE(program.Wait());
  EXPECT_EQ(program.log()->durable(), 21u);
  EXPECT_EQ(OpenAgain(disk.AfterPowerLoss(0).get(), program.history()), "");
}

TEST(LogCrashTest, ClosingOnAFullDiskSaysThatRecordsAreLost) {
  Disk disk;
  disk.SetCapacity(1024);
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(program.Append(std::string(100, 'x')));
  EXPECT_EQ(program.log()->Close().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OpenAgain(&disk, program.history()), "");
}

// ---- Random lives: any workload, any fault, any end, again and again on the same disk.

void LiveOnce(Random* random, Program* program) {
  for (uint64_t steps = random->Below(30); steps > 0; --steps) {
    switch (random->Below(8)) {
      case 0:
        program->Snapshot();
        break;
      case 1:
        program->log()->Nudge();
        break;
      case 2:
      case 3:
      case 4:
        program->Wait();
        break;
      default:
        program->Append(program->Name("random") + std::string(random->Below(700), 'r'));
    }
  }
  if (random->OneIn(3)) program->log()->Close().IgnoreError();
}

void LiveAndDie(Random* random, uint64_t lives) {
  auto disk = std::make_unique<Disk>();
  History history;
  for (uint64_t life = 0; life < lives && !testing::Test::HasFailure(); ++life) {
    const bool faulty = random->OneIn(2);
    if (faulty) {
      disk->FailAt({.at = 1 + random->Below(60),
                    .for_good = random->OneIn(2),
                    .error = random->OneIn(2) ? Disk::Error::kIo : Disk::Error::kNoSpace,
                    .tear = random->OneIn(2)});
    }
    Program program(disk.get(), history);
    const std::string wrong = program.Open();
    if (wrong.empty()) {
      LiveOnce(random, &program);
      history = program.history();
    } else {
      ASSERT_TRUE(faulty && wrong.find("(injected)") != std::string::npos) << wrong;
    }
    auto next = random->OneIn(2) ? disk->AfterProcessCrash() : disk->AfterPowerLoss(random->Next());
    // The old program's writer may still be at work on the old disk.
    if (program.log() != nullptr) program.log()->Close().IgnoreError();
    disk = std::move(next);
  }
}

TEST(LogCrashTest, RandomLivesKeepEveryAcknowledgedRecord) {
  Random random;
  for (int i = 0; i < 100 && !HasFailure(); ++i) LiveAndDie(&random, 8);
}

TEST(LogCrashLong, RandomLivesKeepEveryAcknowledgedRecord) {
  Random random;
  for (int i = 0; i < 10'000 && !HasFailure(); ++i) LiveAndDie(&random, 20);
}

// ---- Group commit.

TEST(LogCrashTest, RecordsThatArriveDuringAnFsyncShareTheNextOne) {
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
}  // namespace firstseen
