#include "keys/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/status.h"

namespace firstseen {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kHex1 = "000102030405060708090a0b0c0d0e0f";
constexpr std::string_view kHex2 = "ffeeddccbbaa99887766554433221100";

std::string Lines(std::initializer_list<std::string_view> lines) {
  std::string text = "firstseen-key-file 1\n";
  for (const std::string_view line : lines) text += fmt::format("{}\n", line);
  return text;
}

std::string ParseError(std::string_view text) {
  const auto entries = ParseKeyFile(text);
  EXPECT_TRUE(absl::IsInvalidArgument(entries.status())) << entries.status();
  EXPECT_THAT(entries.status().ToString(), Not(HasSubstr(std::string(kHex1).substr(0, 12))));
  return std::string(Message(entries.status()));
}

TEST(KeyFileTest, ReadsKeysCommentsAndBlankLines) {
  const auto entries =
      ParseKeyFile(fmt::format("# our key\r\n\n  \nfirstseen-key-file 1\r\n# first\nkey 1 "
                               "{}\r\nkey  3\t{} from 2027-01-01 \n",
                               kHex1, kHex2));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].id, 1u);
  EXPECT_EQ((*entries)[0].from_day, 0);
  EXPECT_EQ((*entries)[0].key.bytes()[15], 0x0f);
  EXPECT_EQ((*entries)[1].id, 3u);
  EXPECT_EQ((*entries)[1].from_day, 20270101);
  EXPECT_EQ((*entries)[1].key.bytes()[0], 0xff);
}

TEST(KeyFileTest, WhatItFormatsItReadsBack) {
  const std::vector<KeyEntry> entries = {{1, 0, SecretKey::Random()},
                                         {2, 20280229, SecretKey::Random()}};
  const auto read = ParseKeyFile(FormatKeyFile(entries));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ((*read)[i].id, entries[i].id);
    EXPECT_EQ((*read)[i].from_day, entries[i].from_day);
    EXPECT_TRUE((*read)[i].key == entries[i].key);
  }
}

TEST(KeyFileTest, MistakesAreNamedByLineWithoutTheKey) {
  const std::string key1 = fmt::format("key 1 {}", kHex1);
  const auto key = [](std::string_view rest) { return fmt::format("key {}", rest); };
  EXPECT_THAT(ParseError(""), HasSubstr("empty"));
  EXPECT_THAT(ParseError("firstseen-key-file 1"), HasSubstr("not complete"));
  EXPECT_THAT(ParseError("firstseen-key-file 2\n"), HasSubstr("line 1"));
  EXPECT_THAT(ParseError(key1 + "\n"), HasSubstr("begins with 'firstseen-key-file 1'"));
  EXPECT_THAT(ParseError("firstseen-key-file 1\n"), HasSubstr("no key"));
  EXPECT_THAT(ParseError(Lines({key1.substr(0, key1.size() - 1)})), HasSubstr("line 2: a key"));
  EXPECT_THAT(ParseError(Lines({key1 + "0"})), HasSubstr("32 hexadecimal digits"));
  EXPECT_THAT(ParseError(Lines({key(fmt::format("1 g{}", kHex1.substr(1)))})), HasSubstr("line 2"));
  EXPECT_THAT(ParseError(Lines({"key"})), HasSubstr("id after 'key'"));
  EXPECT_THAT(ParseError(Lines({"key 1"})), HasSubstr("hexadecimal"));
  EXPECT_THAT(ParseError(Lines({key(fmt::format("0 {}", kHex1))})), HasSubstr("number from 1"));
  EXPECT_THAT(ParseError(Lines({key(fmt::format("-1 {}", kHex1))})), HasSubstr("number from 1"));
  EXPECT_THAT(ParseError(Lines({key1 + " from 2027-01-01"})), HasSubstr("first key"));
  EXPECT_THAT(ParseError(Lines({"lock 1"})), HasSubstr("line 2: only"));
  for (const std::string_view bad :
       {"", "from", "from 2027-1-1", "from 2027-02-30", "from 1969-01-01", "from 3000-01-01",
        "since 2027-01-01", "from 2027-01-01 on", "from 2027/01/01", "from 20270101"}) {
    EXPECT_THAT(ParseError(Lines({key1, key(fmt::format("2 {} {}", kHex2, bad))})),
                HasSubstr("line 3"))
        << bad;
  }
  EXPECT_THAT(ParseError(Lines({key1, key(fmt::format("1 {} from 2027-01-01", kHex2))})),
              HasSubstr("grow"));
  EXPECT_THAT(ParseError(Lines({key1, key(fmt::format("2 {} from 2027-01-01", kHex2)),
                                key(fmt::format("3 {}f from 2026-01-01", kHex1.substr(1)))})),
              HasSubstr("grow"));
  EXPECT_THAT(ParseError(Lines({key1, key(fmt::format("2 {} from 2027-01-01", kHex1))})),
              HasSubstr("same key"));
}

class KeyFileOnDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/key_file_test_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    path_ = directory_ + "/key";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  absl::Status Read() { return ReadKeyFile(files_, path_).status(); }

  FileSystem* const files_ = FileSystem::Posix();
  std::string directory_;
  std::string path_;
};

TEST_F(KeyFileOnDiskTest, ANewFileHoldsOneRandomKeyForItsOwnerOnly) {
  ASSERT_TRUE(CreateKeyFile(files_, path_).ok());
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const auto entries = ReadKeyFile(files_, path_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ((*entries)[0].id, 1u);

  const std::string other = directory_ + "/other";
  ASSERT_TRUE(CreateKeyFile(files_, other).ok());
  EXPECT_FALSE(ReadKeyFile(files_, other)->front().key == entries->front().key);
}

TEST_F(KeyFileOnDiskTest, AnExistingKeyIsNeverOverwritten) {
  ASSERT_TRUE(CreateKeyFile(files_, path_).ok());
  const auto before = ReadKeyFile(files_, path_);
  EXPECT_TRUE(absl::IsAlreadyExists(CreateKeyFile(files_, path_)));
  EXPECT_TRUE(ReadKeyFile(files_, path_)->front().key == before->front().key);
}

TEST_F(KeyFileOnDiskTest, AMissingFileAsksForTheBackup) {
  EXPECT_TRUE(absl::IsNotFound(Read()));
  EXPECT_THAT(Message(Read()), HasSubstr("restore your backup"));
  EXPECT_THAT(Message(Read()), HasSubstr(path_));
}

TEST_F(KeyFileOnDiskTest, AFileThatOthersMayReadOrWriteIsRefused) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644, 0666, 0610}) {
    Write(Lines({fmt::format("key 1 {}", kHex1)}), mode);
    EXPECT_TRUE(absl::IsFailedPrecondition(Read())) << mode;
    EXPECT_THAT(Message(Read()), HasSubstr("chmod 600 " + path_));
  }
  Write(Lines({fmt::format("key 1 {}", kHex1)}), 0400);
  EXPECT_TRUE(Read().ok());
}

TEST_F(KeyFileOnDiskTest, APipeIsRefusedWithoutWaitingForAWriter) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(path_));
}

TEST_F(KeyFileOnDiskTest, AMalformedFileIsRefusedByPathAndLine) {
  Write(Lines({fmt::format("key 1 {}", kHex1.substr(2))}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Read()));
  EXPECT_THAT(Message(Read()), HasSubstr("key file " + path_ + ": line 2"));
  EXPECT_THAT(Message(Read()), HasSubstr("backup"));
  Write(std::string(1 << 20, '\n'));
  EXPECT_THAT(Message(Read()), HasSubstr("1048576 bytes"));
}

// A crash while the file is written must not leave a shorter key that is taken for the key.
TEST_F(KeyFileOnDiskTest, EveryFileCutShortIsRefused) {
  const std::string whole = FormatKeyFile({{1, 0, SecretKey::Random()}});
  for (size_t size = 0; size < whole.size(); ++size) {
    Write(whole.substr(0, size));
    EXPECT_FALSE(Read().ok()) << size;
  }
}

}  // namespace
}  // namespace firstseen
