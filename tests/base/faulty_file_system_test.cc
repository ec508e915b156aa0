// The disk the other tests stand on: it must really lose what it says it loses.
#include "support/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/status.h"
#include "support/faulty_inode.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Disk = FaultyFileSystem;
constexpr size_t kSector = kSectorBytes;
constexpr uint64_t kSeeds = 200;

std::unique_ptr<File> Create(FileSystem* disk, const std::string& path, std::string_view content) {
  auto file = disk->Open(path, OpenMode::kCreate).value();
  EXPECT_TRUE(file->Write(0, content).ok());
  return file;
}

TEST(FaultyFileSystemTest, BehavesAsAFileSystem) {
  Disk disk;
  EXPECT_EQ(disk.Open("/data/a", OpenMode::kRead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(disk.Open("/none/a", OpenMode::kCreate).status().code(), absl::StatusCode::kNotFound);
  Create(&disk, "/data/a", "hello world");
  EXPECT_EQ(disk.Open("/data/a", OpenMode::kCreateNew).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(&disk, "/data/a").value(), "hello world");
  auto file = disk.Open("/data/a", OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->Truncate(5).ok());
  ASSERT_TRUE(file->Allocate(2000).ok());
  EXPECT_EQ(file->Size().value(), 2000u);
  EXPECT_EQ(ReadFile(&disk, "/data/a").value(), "hello" + std::string(1995, '\0'));
  ASSERT_TRUE(disk.CreateDirectory("/data/sub").ok());
  ASSERT_TRUE(disk.Rename("/data/a", "/data/sub/b").ok());
  EXPECT_THAT(disk.List("/data").value(), ElementsAre("sub"));
  EXPECT_THAT(disk.List("/data/sub").value(), ElementsAre("b"));
  EXPECT_THAT(disk.List("/").value(), ElementsAre("data"));
  EXPECT_TRUE(disk.Exists("/data/sub/b").value());
  ASSERT_TRUE(disk.Remove("/data/sub/b").ok());
  EXPECT_EQ(disk.Remove("/data/sub/b").code(), absl::StatusCode::kNotFound);
  auto lock = disk.Lock("/data/lock", "me");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(disk.Lock("/data/lock", "other").status().code(),
            absl::StatusCode::kFailedPrecondition);
  lock->reset();
  EXPECT_TRUE(disk.Lock("/data/lock", "other").ok());
}

TEST(FaultyFileSystemTest, PowerLossKeepsWhatWasSyncedWithEverySeed) {
  Disk disk;
  auto file = Create(&disk, "/data/a", std::string(3000, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(disk.AfterPowerLoss(seed)->Content("/data/a"), std::string(3000, 'a'));
  }
}

TEST(FaultyFileSystemTest, PowerLossMayKeepAnySectorOfUnsyncedWrites) {
  Disk disk;
  auto file = Create(&disk, "/data/a", std::string(2 * kSector, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  ASSERT_TRUE(file->Write(0, std::string(2 * kSector, 'b')).ok());
  EXPECT_EQ(disk.AfterPowerLoss(0)->Content("/data/a"), std::string(2 * kSector, 'a'));
  EXPECT_EQ(disk.AfterPowerLoss(1)->Content("/data/a"), std::string(2 * kSector, 'b'));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string content = disk.AfterPowerLoss(seed)->Content("/data/a");
    ASSERT_EQ(content.size(), 2 * kSector);
    for (size_t i = 0; i < content.size(); ++i)
      ASSERT_EQ(content[i], content[i / kSector * kSector]);
    seen.insert({content.front(), content.back()});
  }
  EXPECT_THAT(seen, ElementsAre("aa", "ab", "ba", "bb"));
}

TEST(FaultyFileSystemTest, PowerLossMayKeepASizeWithoutBytesAndTheOtherWayRound) {
  Disk disk;
  auto file = Create(&disk, "/data/a", "");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  ASSERT_TRUE(file->Write(0, std::string(kSector, 'b')).ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    seen.insert(disk.AfterPowerLoss(seed)->Content("/data/a"));
  }
  EXPECT_TRUE(seen.contains(""));
  EXPECT_TRUE(seen.contains(std::string(kSector, '\0')));
  EXPECT_TRUE(seen.contains(std::string(kSector, 'b')));
}

TEST(FaultyFileSystemTest, NamesAreOnDiskOnlyAfterDirectorySync) {
  Disk disk;
  ASSERT_TRUE(Create(&disk, "/data/a", "a")->Sync().ok());
  EXPECT_THAT(disk.AfterPowerLoss(0)->List("/data").value(), IsEmpty());
  EXPECT_THAT(disk.AfterPowerLoss(1)->List("/data").value(), ElementsAre("a"));
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  ASSERT_TRUE(disk.Rename("/data/a", "/data/b").ok());
  EXPECT_THAT(disk.AfterPowerLoss(0)->List("/data").value(), ElementsAre("a"));
  EXPECT_THAT(disk.AfterPowerLoss(1)->List("/data").value(), ElementsAre("b"));
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  ASSERT_TRUE(disk.Remove("/data/b").ok());
  EXPECT_THAT(disk.AfterPowerLoss(0)->List("/data").value(), ElementsAre("b"));
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  EXPECT_THAT(disk.AfterPowerLoss(0)->List("/data").value(), IsEmpty());
}

TEST(FaultyFileSystemTest, WriteFileAtomicallyIsAtomicAtEveryOperationAndNeedsItsSyncs) {
  size_t syncs = 2;
  for (size_t ignored = 0; ignored <= syncs; ++ignored) {
    bool lost = false;
    Disk disk;
    disk.SetContent("/data/a", "old");
    bool done = false;
    disk.IgnoreSyncs([&](const Disk::SyncCall& call) { return call.number == ignored; });
    const auto check = [&](uint64_t) {
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const std::string content = disk.AfterPowerLoss(seed)->Content("/data/a");
        lost |= content != "new" && (content != "old" || done);
      }
    };
    disk.set_after_operation(check);
    ASSERT_TRUE(WriteFileAtomically(&disk, "/data/a", "new").ok());
    done = true;
    check(0);
    EXPECT_EQ(lost, ignored != 0) << ignored;
    EXPECT_THAT(disk.sync_calls(), SizeIs(syncs));
  }
}

TEST(FaultyFileSystemTest, FailsTheGivenOperationOnceOrForGood) {
  Disk disk;
  auto file = Create(&disk, "/data/a", "a");
  ASSERT_EQ(disk.operations(), 2u);
  disk.FailAt({.at = 4, .error = Disk::Error::kNoSpace});
  EXPECT_TRUE(file->Write(1, "b").ok());
  EXPECT_EQ(file->Write(2, "c").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Write(2, "d").ok());
  EXPECT_EQ(disk.Content("/data/a"), "abd");
  disk.FailAt({.at = 6, .for_good = true});
  EXPECT_EQ(disk.Remove("/data/a").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(file->Sync().code(), absl::StatusCode::kUnavailable);
  disk.FailAt({});
  EXPECT_TRUE(disk.Remove("/data/a").ok());
}

TEST(FaultyFileSystemTest, TornOperationsAreHalfDone) {
  Disk disk;
  auto file = Create(&disk, "/data/a", "");
  disk.FailAt({.at = 3, .tear = true});
  EXPECT_FALSE(file->Write(0, std::string(1000, 'x')).ok());
  EXPECT_LT(disk.Content("/data/a").size(), 1000u);
  disk.FailAt({.at = 4, .tear = true});
  EXPECT_FALSE(disk.Rename("/data/a", "/data/b").ok());
  EXPECT_TRUE(disk.Exists("/data/b").value());
}

TEST(FaultyFileSystemTest, AfterAFailedSyncTheBytesAreReadableAndNeverReachTheDisk) {
  Disk disk;
  auto file = Create(&disk, "/data/a", "a");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.SyncDirectory("/data").ok());
  ASSERT_TRUE(file->Write(0, "b").ok());
  disk.FailAt({.at = disk.operations() + 1});
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(disk.Content("/data/a"), "b");
  auto restarted = disk.AfterProcessCrash();
  ASSERT_TRUE(restarted->Open("/data/a", OpenMode::kReadWrite).value()->Sync().ok());
  EXPECT_EQ(restarted->Content("/data/a"), "b");
  EXPECT_EQ(restarted->AfterPowerLoss(1)->Content("/data/a"), "a");
  auto again = restarted->Open("/data/a", OpenMode::kReadWrite).value();
  ASSERT_TRUE(again->Write(0, "b").ok());
  ASSERT_TRUE(again->Sync().ok());
  EXPECT_EQ(restarted->AfterPowerLoss(0)->Content("/data/a"), "b");
}

TEST(FaultyFileSystemTest, ProcessCrashLosesNothingAndSyncsNothing) {
  Disk disk;
  auto file = Create(&disk, "/data/a", "a");
  auto restarted = disk.AfterProcessCrash();
  ASSERT_TRUE(file->Write(0, "b").ok());
  EXPECT_EQ(restarted->Content("/data/a"), "a");
  EXPECT_THAT(restarted->AfterPowerLoss(0)->List("/data").value(), IsEmpty());
}

TEST(FaultyFileSystemTest, CapacityIsRunOutOfAndGivenBack) {
  Disk disk;
  disk.SetCapacity(1000);
  auto file = disk.Open("/data/a", OpenMode::kCreate).value();
  EXPECT_EQ(file->Allocate(1001).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Allocate(1000).ok());
  EXPECT_TRUE(file->Write(0, std::string(1000, 'x')).ok());
  EXPECT_EQ(file->Write(1000, "x").code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(disk.Remove("/data/a").ok());
  EXPECT_TRUE(Create(&disk, "/data/b", "x") != nullptr);
}

}  // namespace
}  // namespace firstseen
