// Every flipped byte and every truncation of a small log: it is refused, or only what was never
// known durable is cut; never a wrong record. And repair mends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/log.h"
#include "engine/log_format.h"
#include "engine/log_repair.h"
#include "support/faulty_file_system.h"

namespace firstseen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Disk = FaultyFileSystem;

constexpr char kDirectory[] = "/data";
constexpr uint64_t kRecords = 9;
constexpr size_t kSegments = 3;
constexpr int64_t kNever = 1'000'000'000;

std::string Record(uint64_t sequence) {
  return fmt::format("record {}{}", sequence, std::string(sequence % 4 * 10, 'x'));
}

struct Opened {
  absl::Status status;
  std::unique_ptr<Log> log;
  std::vector<uint64_t> sequences;
  std::vector<std::string> records;
};

Opened OpenLog(FileSystem* disk, uint64_t after = 0) {
  Log::Options options;
  options.files = disk;
  options.directory = kDirectory;
  options.segment_bytes = 392;
  options.interval_ms = kNever;
  Opened opened;
  auto log = Log::Open(options, after, [&](uint64_t sequence, std::string_view record) {
    opened.sequences.push_back(sequence);
    opened.records.emplace_back(record);
    return absl::OkStatus();
  });
  opened.status = log.status();
  if (log.ok()) opened.log = *std::move(log);
  return opened;
}

// A log of several segments; closed, or left by a kill after the last acknowledgement.
std::unique_ptr<Disk> MakeLog(bool closed) {
  Disk disk;
  Opened opened = OpenLog(&disk);
  for (uint64_t i = 1; i <= kRecords; ++i) {
    EXPECT_EQ(opened.log->Append(Record(i)), i);
    EXPECT_TRUE(opened.log->WaitDurable(i).ok());
  }
  if (closed) {
    EXPECT_TRUE(opened.log->Close().ok());
  }
  return disk.AfterPowerLoss(1);
}

std::vector<std::string> Segments(Disk* disk) {
  const std::vector<std::string> names = disk->List(kDirectory).value();
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (ParseSegmentName(name).has_value()) paths.push_back(kDirectory + ("/" + name));
  }
  return paths;
}

void ExpectPrefix(const Opened& opened) {
  ASSERT_LE(opened.records.size(), kRecords);
  for (size_t i = 0; i < opened.records.size(); ++i) {
    ASSERT_EQ(opened.sequences[i], i + 1);
    ASSERT_EQ(opened.records[i], Record(i + 1));
  }
}

// The log goes on: one more record, and everything is there after that.
void ExpectGoesOn(Disk* disk, Opened opened) {
  const size_t before = opened.records.size();
  const uint64_t sequence = opened.log->Append("one more");
  ASSERT_TRUE(opened.log->WaitDurable(sequence).ok());
  ASSERT_TRUE(opened.log->Close().ok());
  const Opened again = OpenLog(disk);
  ASSERT_TRUE(again.status.ok()) << again.status;
  ASSERT_THAT(again.records, SizeIs(before + 1));
  ASSERT_EQ(again.sequences.back(), sequence);
  ASSERT_EQ(again.records.back(), "one more");
}

void ExpectRepairs(Disk* disk) {
  const std::vector<std::string> files = disk->List(kDirectory).value();
  const auto listed = RepairLog(disk, kDirectory, 0, 0, false);
  ASSERT_TRUE(listed.ok());
  ASSERT_THAT(*listed, Not(IsEmpty()));
  ASSERT_EQ(disk->List(kDirectory).value(), files);
  ASSERT_FALSE(OpenLog(disk).status.ok());
  ASSERT_TRUE(RepairLog(disk, kDirectory, 0, 0, true).ok());
  ASSERT_THAT(RepairLog(disk, kDirectory, 0, 0, false).value(), IsEmpty());
  Opened opened = OpenLog(disk);
  ASSERT_TRUE(opened.status.ok()) << opened.status;
  ExpectPrefix(opened);
  const LogDamage& last = listed->back();
  if (last.loses_records) {
    ASSERT_EQ(opened.records.size(), last.first_sequence - 1);
    ASSERT_GT(opened.log->last_appended(), last.last_sequence - 1);
  } else {
    ASSERT_GE(opened.records.size(), kRecords - 1);
  }
  ExpectGoesOn(disk, std::move(opened));
}

// What promise 2 says of a damaged copy. `known` records are known durable from the log itself.
void ExpectRefusedOrOnlyTailCut(Disk* disk, const std::string& path, uint64_t known) {
  Opened opened = OpenLog(disk);
  if (opened.status.ok()) {
    ExpectPrefix(opened);
    ASSERT_GE(opened.records.size(), known);
    ExpectGoesOn(disk, std::move(opened));
    return;
  }
  ASSERT_EQ(opened.status.code(), absl::StatusCode::kDataLoss) << opened.status;
  ASSERT_THAT(std::string(Message(opened.status)), HasSubstr(path + ", offset "));
  ASSERT_THAT(std::string(Message(opened.status)), HasSubstr("firstseen repair"));
  ExpectRepairs(disk);
}

void ForEachDamage(bool closed, size_t segments,
                   const std::function<void(std::string* content, size_t at)>& damage) {
  // The last frame of a log that was not closed is not known durable from the log alone.
  const uint64_t known = closed ? kRecords : kRecords - 1;
  const std::unique_ptr<Disk> whole = MakeLog(closed);
  std::vector<std::string> paths = Segments(whole.get());
  ASSERT_THAT(paths, SizeIs(kSegments));
  paths.resize(segments);
  for (const std::string& path : paths) {
    const std::string good = whole->Content(path);
    for (size_t at = 0; at < good.size(); ++at) {
      SCOPED_TRACE(fmt::format("{} at {}", path, at));
      std::string content = good;
      damage(&content, at);
      auto disk = whole->AfterPowerLoss(1);
      disk->SetContent(path, content);
      ExpectRefusedOrOnlyTailCut(disk.get(), path, known);
      if (testing::Test::HasFailure()) return;
    }
  }
}

class LogDamageTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ClosedAndKilled, LogDamageTest, testing::Bool());

TEST_P(LogDamageTest, EveryFlippedBitIsRefusedOrCutsOnlyTheUnsyncedTail) {
  for (int bit = 0; bit < 8; bit += 7) {
    ForEachDamage(GetParam(), kSegments, [=](std::string* content, size_t at) {
      (*content)[at] ^= static_cast<char>(1 << bit);
    });
  }
}

// In the last segment zeros could wipe out what shows that there was more.
TEST_P(LogDamageTest, EveryZeroedRangeOfAnEarlierSegmentIsRefusedOrLosesNothing) {
  ForEachDamage(GetParam(), kSegments - 1, [](std::string* content, size_t at) {
    content->replace(at, 100, std::string(std::min<size_t>(100, content->size() - at), '\0'));
  });
}

TEST_P(LogDamageTest, EveryTruncationIsRefused) {
  const std::unique_ptr<Disk> whole = MakeLog(GetParam());
  for (const std::string& path : Segments(whole.get())) {
    const std::string good = whole->Content(path);
    for (size_t size = 0; size < good.size(); ++size) {
      SCOPED_TRACE(fmt::format("{} cut to {}", path, size));
      auto disk = whole->AfterPowerLoss(1);
      disk->SetContent(path, good.substr(0, size));
      ASSERT_EQ(OpenLog(disk.get()).status.code(), absl::StatusCode::kDataLoss);
      ExpectRefusedOrOnlyTailCut(disk.get(), path, kRecords);
      if (HasFailure()) return;
    }
  }
}

TEST_P(LogDamageTest, AMissingSegmentIsRefused) {
  const std::unique_ptr<Disk> whole = MakeLog(GetParam());
  const std::vector<std::string> paths = Segments(whole.get());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    auto disk = whole->AfterPowerLoss(1);
    ASSERT_TRUE(disk->Remove(path).ok());
    const absl::Status status = OpenLog(disk.get()).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    ExpectRepairs(disk.get());
  }
  auto empty = std::make_unique<Disk>();
  EXPECT_EQ(OpenLog(empty.get(), 5).status.code(), absl::StatusCode::kDataLoss);
}

TEST_P(LogDamageTest, ASegmentOfAnotherPlaceIsRefused) {
  const std::unique_ptr<Disk> whole = MakeLog(GetParam());
  const std::vector<std::string> paths = Segments(whole.get());
  for (const std::string& from : paths) {
    for (const std::string& to : paths) {
      if (from == to) continue;
      SCOPED_TRACE(from + " in place of " + to);
      auto disk = whole->AfterPowerLoss(1);
      disk->SetContent(to, whole->Content(from));
      const absl::Status status = OpenLog(disk.get()).status;
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    }
  }
}

TEST(LogRepairTest, ALogWithoutDamageIsLeftAlone) {
  const std::unique_ptr<Disk> disk = MakeLog(true);
  const uint64_t operations = disk->operations();
  EXPECT_THAT(RepairLog(disk.get(), kDirectory, 0, 0, true).value(), IsEmpty());
  EXPECT_EQ(disk->operations(), operations);
}

TEST(LogRepairTest, GoesOnAboveEveryNumberSeenInTheLogAndElsewhere) {
  const std::unique_ptr<Disk> whole = MakeLog(true);
  const std::vector<std::string> paths = Segments(whole.get());
  for (const uint64_t highest : {0, 3, 1000}) {
    auto disk = whole->AfterPowerLoss(1);
    std::string content = disk->Content(paths.front());
    content[kSegmentHeaderBytes] ^= 1;
    disk->SetContent(paths.front(), content);
    const auto damages = RepairLog(disk.get(), kDirectory, 0, highest, true).value();
    ASSERT_THAT(damages, SizeIs(1));
    EXPECT_EQ(damages[0].first_sequence, 1u);
    EXPECT_EQ(damages[0].last_sequence, std::max(highest, kRecords));
    Opened opened = OpenLog(disk.get());
    ASSERT_TRUE(opened.status.ok()) << opened.status;
    EXPECT_EQ(opened.log->Append("next"), std::max(highest, kRecords) + 1);
  }
}

TEST(LogRepairTest, ALogThatEndsBelowWhatASnapshotHoldsGoesOnAboveIt) {
  auto disk = MakeLog(true);
  EXPECT_THAT(RepairLog(disk.get(), kDirectory, 0, kRecords, false).value(), IsEmpty());
  const auto damages = RepairLog(disk.get(), kDirectory, 0, kRecords + 5, true).value();
  ASSERT_THAT(damages, SizeIs(1));
  EXPECT_EQ(damages[0].first_sequence, kRecords + 1);
  EXPECT_EQ(damages[0].last_sequence, kRecords + 5);
  Opened opened = OpenLog(disk.get());
  ASSERT_TRUE(opened.status.ok()) << opened.status;
  EXPECT_THAT(opened.records, SizeIs(kRecords));
  EXPECT_EQ(opened.log->Append("next"), kRecords + 6);
}

TEST(LogRepairTest, MayBeInterruptedAnywhereAndRunAgain) {
  const std::unique_ptr<Disk> whole = MakeLog(true);
  const std::string second = Segments(whole.get())[1];
  std::string content = whole->Content(second);
  content[kSegmentHeaderBytes] ^= 1;
  whole->SetContent(second, content);
  const Opened before = OpenLog(whole.get());
  ASSERT_EQ(before.status.code(), absl::StatusCode::kDataLoss);
  auto counting = whole->AfterPowerLoss(1);
  ASSERT_TRUE(RepairLog(counting.get(), kDirectory, 0, 0, true).ok());
  ASSERT_GT(counting->operations(), 5u);
  for (uint64_t at = 1; at <= counting->operations(); ++at) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      auto disk = whole->AfterPowerLoss(1);
      disk->FailAt({.at = at, .for_good = true});
      EXPECT_FALSE(RepairLog(disk.get(), kDirectory, 0, 0, true).ok());
      auto after = disk->AfterPowerLoss(seed);
      ASSERT_TRUE(RepairLog(after.get(), kDirectory, 0, 0, true).ok());
      Opened opened = OpenLog(after.get());
      ASSERT_TRUE(opened.status.ok()) << opened.status;
      ExpectPrefix(opened);
      EXPECT_THAT(opened.records, SizeIs(before.records.size()));
      EXPECT_GE(opened.log->last_appended(), kRecords);
      ExpectGoesOn(after.get(), std::move(opened));
    }
  }
}

}  // namespace
}  // namespace firstseen
