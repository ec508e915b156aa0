// Operations of the log that fail, and a disk that is full: nothing acknowledged is lost, nothing
// is acknowledged that could be.
#include <string>

#include "engine/log_program.h"

namespace firstseen::log_program {
namespace {

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

TEST(LogFaultTest, AnyOperationMayFail) {
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

TEST(LogFaultTest, AfterAFailedFsyncNothingIsTakenAndNoFsyncIsTriedAgain) {
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

TEST(LogFaultTest, FullDiskIsReportedBeforeAnythingIsQueuedAndGoesAwayWithRoom) {
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

TEST(LogFaultTest, RecordsQueuedWhenTheDiskFillsAreKeptUntilThereIsRoom) {
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

TEST(LogFaultTest, ClosingOnAFullDiskSaysThatRecordsAreLost) {
  Disk disk;
  disk.SetCapacity(1024);
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(program.Append(std::string(100, 'x')));
  EXPECT_EQ(program.log()->Close().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OpenAgain(&disk, program.history()), "");
}

}  // namespace
}  // namespace firstseen::log_program
