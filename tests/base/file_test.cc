#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/status.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/firstseen_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  FileSystem* files_ = FileSystem::Posix();
  std::string directory_;
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  auto file = files_->Open(Path("a"), OpenMode::kCreate).value();
  ASSERT_TRUE(file->Write(0, "hello world").ok());
  ASSERT_TRUE(file->Write(6, "there").ok());
  ASSERT_TRUE(file->Sync().ok());
  char out[64];
  EXPECT_EQ(file->Read(0, out, sizeof(out)).value(), 11u);
  EXPECT_EQ(std::string(out, 11), "hello there");
  EXPECT_EQ(file->Read(6, out, 3).value(), 3u);
  EXPECT_EQ(file->Read(11, out, 1).value(), 0u);
  EXPECT_EQ(file->Size().value(), 11u);
}

TEST_F(FileTest, AllocateExtendsWithZerosAndKeepsContent) {
  auto file = files_->Open(Path("a"), OpenMode::kCreate).value();
  ASSERT_TRUE(file->Write(0, "abc").ok());
  ASSERT_TRUE(file->Allocate(100'000).ok());
  EXPECT_EQ(file->Size().value(), 100'000u);
  EXPECT_EQ(ReadFile(files_, Path("a")).value(), "abc" + std::string(99'997, '\0'));
  struct stat info;
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 100'000);
  ASSERT_TRUE(file->Truncate(2).ok());
  EXPECT_EQ(ReadFile(files_, Path("a")).value(), "ab");
}

TEST_F(FileTest, CreatedFilesAreReadableByTheOwnerOnly) {
  ASSERT_TRUE(files_->Open(Path("a"), OpenMode::kCreate).ok());
  ASSERT_TRUE(files_->CreateDirectory(Path("d")).ok());
  EXPECT_EQ(files_->Permissions(Path("a")).value(), 0600u);
  EXPECT_EQ(files_->Permissions(Path("d")).value(), 0700u);
  EXPECT_EQ(files_->Permissions(Path("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FileTest, OpenModesDifferInWhatMustExist) {
  EXPECT_EQ(files_->Open(Path("a"), OpenMode::kRead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files_->Open(Path("a"), OpenMode::kReadWrite).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(files_->Open(Path("a"), OpenMode::kCreateNew).value()->Write(0, "x").ok());
  EXPECT_EQ(files_->Open(Path("a"), OpenMode::kCreateNew).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(files_->Open(Path("a"), OpenMode::kRead).value()->Write(0, "y").ok());
  ASSERT_TRUE(files_->Open(Path("a"), OpenMode::kReadWrite).ok());
  EXPECT_EQ(ReadFile(files_, Path("a")).value(), "x");
  ASSERT_TRUE(files_->Open(Path("a"), OpenMode::kCreate).ok());
  EXPECT_EQ(ReadFile(files_, Path("a")).value(), "");
}

TEST_F(FileTest, ErrorsNamePathAndOperation) {
  const absl::Status status = files_->Open(Path("none"), OpenMode::kRead).status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("cannot open " + Path("none")));
  const absl::Status list = files_->List(Path("none")).status();
  EXPECT_EQ(list.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(list)), HasSubstr("cannot list directory " + Path("none")));
  EXPECT_EQ(files_->Remove(Path("none")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files_->Rename(Path("none"), Path("b")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files_->SyncDirectory(Path("none")).code(), absl::StatusCode::kNotFound);
}

TEST_F(FileTest, FullDiskIsResourceExhausted) {
  auto full = files_->Open("/dev/full", OpenMode::kReadWrite);
  if (!full.ok()) GTEST_SKIP() << "no /dev/full here";
  const absl::Status status = (*full)->Write(0, "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("free space"));
}

TEST_F(FileTest, ListIsSortedAndDirectoriesCanBeMadeTwice) {
  ASSERT_TRUE(files_->CreateDirectory(Path("c")).ok());
  ASSERT_TRUE(files_->CreateDirectory(Path("c")).ok());
  ASSERT_TRUE(files_->Open(Path("b"), OpenMode::kCreate).ok());
  ASSERT_TRUE(files_->Open(Path("a"), OpenMode::kCreate).ok());
  EXPECT_THAT(files_->List(directory_).value(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(files_->CreateDirectory(Path("a")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(files_->Exists(Path("a")).value());
  ASSERT_TRUE(files_->Remove(Path("a")).ok());
  EXPECT_FALSE(files_->Exists(Path("a")).value());
  EXPECT_FALSE(files_->Exists(Path("b") + "/x").value());
  ASSERT_TRUE(files_->SyncDirectory(directory_).ok());
}

TEST_F(FileTest, SecondLockNamesTheHolderUntilTheFirstGoes) {
  auto lock = files_->Lock(Path("lock"), "firstseen bill run");
  ASSERT_TRUE(lock.ok());
  const absl::Status refused = files_->Lock(Path("lock"), "other").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              HasSubstr("firstseen bill run, pid " + std::to_string(getpid()) + ";"));
  lock->reset();
  EXPECT_TRUE(files_->Lock(Path("lock"), "other").ok());
  EXPECT_THAT(ReadFile(files_, Path("lock")).value(), HasSubstr("other, pid"));
}

TEST_F(FileTest, WriteFileAtomicallyReplacesAndLeavesNoTemporary) {
  ASSERT_TRUE(WriteFileAtomically(files_, Path("a"), "one").ok());
  ASSERT_TRUE(WriteFileAtomically(files_, Path("a"), "two").ok());
  EXPECT_EQ(ReadFile(files_, Path("a")).value(), "two");
  EXPECT_THAT(files_->List(directory_).value(), ElementsAre("a"));
}

TEST(ParentDirectoryTest, FollowsTheLastSlash) {
  EXPECT_EQ(ParentDirectory("a/b/c"), "a/b");
  EXPECT_EQ(ParentDirectory("c"), ".");
  EXPECT_EQ(ParentDirectory("/c"), "/");
}

}  // namespace
}  // namespace firstseen
