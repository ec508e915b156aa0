#include "engine/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "support/faulty_file_system.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

std::string Record(uint64_t sequence, size_t bytes = 0) {
  std::string text = fmt::format("record {} ", sequence);
  if (text.size() < bytes) text.resize(bytes, 'x');
  return text;
}

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/firstseen_log_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    options_.directory = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(options_.directory); }

  // Opens the log and keeps what it replays; checks that it comes in order, without holes.
  absl::StatusOr<std::unique_ptr<Log>> Open(uint64_t after = 0) {
    replayed_.clear();
    return Log::Open(options_, after, [&](uint64_t sequence, std::string_view record) {
      EXPECT_EQ(sequence, after + replayed_.size() + 1);
      replayed_.emplace_back(record);
      return absl::OkStatus();
    });
  }

  Log::Options options_;
  std::vector<std::string> replayed_;
};

TEST_F(LogTest, RecordsComeBackInOrderAfterClose) {
  {
    auto log = Open().value();
    for (uint64_t i = 1; i <= 100; ++i) ASSERT_EQ(log->Append(Record(i)), i);
    ASSERT_TRUE(log->WaitDurable(100).ok());
    EXPECT_EQ(log->durable(), 100u);
    ASSERT_TRUE(log->Close().ok());
  }
  auto log = Open().value();
  ASSERT_EQ(replayed_.size(), 100u);
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(replayed_[i - 1], Record(i));
  EXPECT_EQ(log->durable(), 100u);
  EXPECT_EQ(log->Append("next"), 101u);
}

TEST_F(LogTest, EmptyAndLargeRecordsComeBack) {
  options_.segment_bytes = 4096;
  {
    auto log = Open().value();
    log->Append("");
    log->Append(std::string(100'000, 'a'));
    log->Append("");
    log->Append(std::string(4096, 'b'));
    ASSERT_TRUE(log->WaitDurable(4).ok());
  }
  auto log = Open().value();
  ASSERT_EQ(replayed_.size(), 4u);
  EXPECT_EQ(replayed_[1], std::string(100'000, 'a'));
  EXPECT_EQ(replayed_[2], "");
  EXPECT_EQ(replayed_[3], std::string(4096, 'b'));
}

TEST_F(LogTest, SegmentWithoutRecordsGivesWayToALargerOne) {
  options_.segment_bytes = 4096;
  {
    auto log = Open().value();
    log->Append(std::string(100'000, 'a'));
    log->Append("b");
    ASSERT_TRUE(log->WaitDurable(2).ok());
    EXPECT_EQ(FileSystem::Posix()->List(options_.directory).value().front(),
              "00000000000000000001.log");
    ASSERT_EQ(log->Rotate().value(), 3u);
    ASSERT_TRUE(log->RemoveUpTo(2).ok());
    log->Append(std::string(100'000, 'c'));
    ASSERT_TRUE(log->WaitDurable(3).ok());
    ASSERT_TRUE(log->Rotate().ok());
    EXPECT_GT(log->bytes(), 100'000u);
    EXPECT_LT(log->bytes(), 101'000u);
  }
  ASSERT_TRUE(Open(2).ok());
  EXPECT_EQ(replayed_.size(), 1u);
}

TEST_F(LogTest, ReplayBeginsBehindTheGivenNumber) {
  options_.segment_bytes = 256;
  {
    auto log = Open().value();
    for (uint64_t i = 1; i <= 20; ++i) {
      log->Append(Record(i));
      ASSERT_TRUE(log->WaitDurable(i).ok());
    }
  }
  for (uint64_t after = 0; after <= 20; ++after) {
    auto log = Open(after).value();
    ASSERT_EQ(replayed_.size(), 20 - after);
    if (after < 20) {
      EXPECT_EQ(replayed_.front(), Record(after + 1));
    }
  }
}

TEST_F(LogTest, RotateAndRemoveUpToKeepWhatIsNeeded) {
  {
    auto log = Open().value();
    EXPECT_EQ(log->Rotate().value(), 1u);
    log->Append(Record(1));
    log->Append(Record(2));
    EXPECT_EQ(log->Rotate().value(), 3u);
    EXPECT_EQ(log->durable(), 2u);
    EXPECT_EQ(log->Rotate().value(), 3u);
    log->Append(Record(3));
    ASSERT_TRUE(log->RemoveUpTo(1).ok());
    EXPECT_EQ(FileSystem::Posix()->List(options_.directory).value().size(), 2u);
    ASSERT_TRUE(log->RemoveUpTo(2).ok());
    EXPECT_EQ(FileSystem::Posix()->List(options_.directory).value().size(), 1u);
    ASSERT_TRUE(log->RemoveUpTo(3).ok());
    EXPECT_EQ(FileSystem::Posix()->List(options_.directory).value().size(), 1u);
    ASSERT_TRUE(log->WaitDurable(3).ok());
  }
  EXPECT_TRUE(Open(2).ok());
  EXPECT_EQ(replayed_.size(), 1u);
  const absl::Status hole = Open(1).status();
  EXPECT_EQ(hole.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(hole)), HasSubstr("repair"));
}

TEST_F(LogTest, ManyThreadsGetNumbersWithoutHoles) {
  constexpr int kThreads = 16;
  constexpr int kRecords = 200;
  options_.segment_bytes = 16384;
  {
    auto log = Open().value();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kRecords; ++i) {
          ASSERT_TRUE(log->WaitForSpace().ok());
          const uint64_t sequence = log->Append("some record");
          ASSERT_NE(sequence, 0u);
          ASSERT_TRUE(log->WaitDurable(sequence).ok());
          ASSERT_GE(log->durable(), sequence);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(log->last_appended(), uint64_t{kThreads} * kRecords);
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(replayed_.size(), size_t{kThreads} * kRecords);
}

TEST_F(LogTest, RecordsNobodyWaitsForReachTheDiskWithinTheInterval) {
  options_.interval_ms = 10;
  auto log = Open().value();
  const uint64_t sequence = log->Append("record");
  log->Nudge();
  while (log->durable() < sequence) std::this_thread::yield();
}

// What an idle log says of itself on disk: damage to its last record is noticed without a close.
TEST_F(LogTest, IdleLogMarksItsLastRecordAsDurable) {
  FaultyFileSystem disk({options_.directory});
  options_.files = &disk;
  options_.interval_ms = 10;
  auto log = Open().value();
  log->Append("the record");
  ASSERT_TRUE(log->WaitDurable(1).ok());
  const std::string path = options_.directory + "/00000000000000000001.log";
  const auto marked = [&] {
    auto killed = disk.AfterProcessCrash();
    std::string content = killed->Content(path);
    content[content.find("the record")] ^= 1;
    killed->SetContent(path, content);
    const auto ignore = [](uint64_t, std::string_view) { return absl::OkStatus(); };
    const auto reopened =
        Log::Open({.files = killed.get(), .directory = options_.directory}, 0, ignore);
    return reopened.status().code() == absl::StatusCode::kDataLoss;
  };
  while (!marked()) std::this_thread::yield();
}

TEST_F(LogTest, QueueLimitHoldsWritersBackAndLetsThemGoOn) {
  options_.queue_bytes_max = 10'000;
  auto log = Open().value();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(log->WaitForSpace().ok());
    ASSERT_NE(log->Append(std::string(1000, 'x')), 0u);
  }
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(log->durable(), 1000u);
}

TEST_F(LogTest, ClosedLogTakesNothing) {
  auto log = Open().value();
  ASSERT_TRUE(log->Close().ok());
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(log->Append("x"), 0u);
  EXPECT_EQ(log->WaitForSpace().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log->WaitDurable(0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(log->Rotate().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace firstseen
