#include "ingest/source.h"

#include <sys/stat.h>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/input_files.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<InputListing> List(std::vector<std::string> paths) {
  return ListInputs(FileSystem::Posix(), paths);
}

std::vector<std::string> Names(const InputListing& listing, const InputDirectory& directory) {
  std::vector<std::string> names;
  for (const InputFile& file : listing.files) {
    names.push_back(file.path.substr(directory.path().size() + 1));
  }
  return names;
}

TEST(SourceTest, DirectoriesAreWalkedInNameOrderAndHiddenNamesSkipped) {
  InputDirectory in;
  in.Write("000001_0", "b");
  in.Write("000000_0", "a");
  in.Write("000000_0_copy_1", "a");
  in.Write("part-00000-7f3c-c000.csv.gz", Gzip("c"));
  in.Write("_SUCCESS", "");
  in.Write(".000000_0.crc", "crc");
  in.Write(".hive-staging_hive_1/-ext-10000/000000_0", "staged");
  in.Write("_temporary/0/task_1", "half");
  in.Write("HIVE_UNION_SUBDIR_1/000000_0", "u");
  in.Write("HIVE_UNION_SUBDIR_2/000000_0", "v");
  const auto listing = List({in.path()});
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_THAT(Names(*listing, in),
              ElementsAre("000000_0", "000000_0_copy_1", "000001_0", "HIVE_UNION_SUBDIR_1/000000_0",
                          "HIVE_UNION_SUBDIR_2/000000_0", "part-00000-7f3c-c000.csv.gz"));
  EXPECT_EQ(listing->skipped_files, 4u);
  EXPECT_EQ(listing->files[0].size_bytes, 1u);
  EXPECT_GT(listing->files[0].mtime_ns, 0);
}

TEST(SourceTest, PartitionFoldersGiveTheirColumnToWhatIsBelow) {
  InputDirectory in;
  in.Write("ds=2023-01-01/region=a%2Fb%25%3d/000000_0", "x");
  in.Write("ds=__HIVE_DEFAULT_PARTITION__/000000_0", "y");
  in.Write("plain=name.txt", "a file's own name is no partition");
  const auto listing = List({in.path()});
  ASSERT_TRUE(listing.ok()) << listing.status();
  ASSERT_EQ(listing->files.size(), 3u);
  const auto& first = listing->files[0].partition;
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].column, "ds");
  EXPECT_EQ(first[0].value, "2023-01-01");
  EXPECT_EQ(first[1].column, "region");
  EXPECT_EQ(first[1].value, "a/b%=");
  ASSERT_EQ(listing->files[1].partition.size(), 1u);
  EXPECT_TRUE(listing->files[1].partition[0].null);
  EXPECT_TRUE(listing->files[2].partition.empty());
}

TEST(SourceTest, PartitionFoldersCountWhenTheyAreNamedThemselves) {
  InputDirectory in;
  const std::string file = in.Write("ds=2023-01-01/000000_0", "x");
  for (const std::string& path : {in / "ds=2023-01-01", in / "ds=2023-01-01/", file}) {
    const auto listing = List({path});
    ASSERT_TRUE(listing.ok()) << listing.status();
    ASSERT_EQ(listing->files.size(), 1u);
    ASSERT_EQ(listing->files[0].partition.size(), 1u) << path;
    EXPECT_EQ(listing->files[0].partition[0].value, "2023-01-01");
  }
}

TEST(SourceTest, UnescapeLeavesWhatIsNoEscape) {
  EXPECT_EQ(UnescapePartition("10%3A30"), "10:30");
  EXPECT_EQ(UnescapePartition("100%"), "100%");
  EXPECT_EQ(UnescapePartition("%4"), "%4");
  EXPECT_EQ(UnescapePartition("%zz%41"), "%zzA");
}

TEST(SourceTest, AHiddenNameThatIsNamedItselfIsRead) {
  InputDirectory in;
  const auto listing = List({in.Write("_rejects", "x")});
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->files.size(), 1u);
  EXPECT_EQ(listing->skipped_files, 0u);
}

TEST(SourceTest, WhatCannotBeReadIsAnErrorThatNamesIt) {
  InputDirectory in;
  EXPECT_THAT(std::string(Message(List({in / "missing"}).status())), HasSubstr("missing"));

  in.Write("d/000000_0", "x");
  std::filesystem::create_symlink("nowhere", in / "d/000001_0");
  const absl::Status dangling = List({in / "d"}).status();
  EXPECT_EQ(dangling.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(dangling)), HasSubstr("000001_0"));

  in.Write("pipes/000000_0", "x");
  ASSERT_EQ(mkfifo((in / "pipes/fifo").c_str(), 0600), 0);
  EXPECT_EQ(List({in / "pipes"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SourceTest, LinksAreFollowedAndLoopsRefused) {
  InputDirectory in;
  in.Write("data/000000_0", "x");
  in.Write("links/a", "y");
  std::filesystem::create_directory_symlink(in / "data", in / "links/b");
  std::filesystem::create_symlink(in / "data/000000_0", in / "links/c");
  const auto listing = List({in / "links"});
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_THAT(Names(*listing, in), ElementsAre("links/a", "links/b/000000_0", "links/c"));

  std::filesystem::create_directory_symlink(in / "links", in / "links/d");
  EXPECT_EQ(List({in / "links"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SourceTest, NoDataFileAtAllIsAnError) {
  InputDirectory in;
  in.Write("_SUCCESS", "");
  const absl::Status status = List({in.path()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("1 names"));
  EXPECT_EQ(List({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SourceTest, StandardInputCanBeNamedOnce) {
  const auto listing = List({"-"});
  ASSERT_TRUE(listing.ok());
  EXPECT_TRUE(listing->files[0].stream);
  EXPECT_FALSE(List({"-", "-"}).ok());
}

}  // namespace
}  // namespace firstseen
