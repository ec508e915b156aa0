#include "billing/external_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "support/directory.h"
#include "support/random.h"

namespace firstseen {
namespace {

std::vector<std::string> Sorted(const std::vector<std::string>& records, uint64_t memory_bytes,
                                bool drop_equal) {
  const TestDirectory directory;
  ExternalSorter sorter(FileSystem::Posix(), directory.path(), memory_bytes, drop_equal);
  for (const std::string& record : records) EXPECT_TRUE(sorter.Add(record).ok());
  EXPECT_TRUE(sorter.Sort().ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "sort files must have no name";
  std::vector<std::string> sorted;
  std::string_view record;
  while (true) {
    const absl::StatusOr<bool> more = sorter.Next(&record);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return sorted;
    sorted.emplace_back(record);
  }
}

TEST(ExternalSortTest, ComesOutInOrderWhateverTheMemory) {
  Random random;
  std::vector<std::string> records;
  for (int i = 0; i < 20'000; ++i) {
    std::string record(1 + random.Below(40), 'x');
    for (char& c : record) c = static_cast<char>(random.Below(3) == 0 ? 'a' : random.Below(256));
    records.push_back(record);
  }
  std::vector<std::string> expected = records;
  std::ranges::sort(expected);
  EXPECT_EQ(Sorted(records, 100 << 20, false), expected);
  EXPECT_EQ(Sorted(records, 100 << 10, false), expected);
  EXPECT_EQ(Sorted(records, 2 << 10, false), expected) << "more runs than are merged at once";
  const std::set<std::string> unique(records.begin(), records.end());
  const std::vector<std::string> expected_unique(unique.begin(), unique.end());
  EXPECT_EQ(Sorted(records, 100 << 20, true), expected_unique);
  EXPECT_EQ(Sorted(records, 2 << 10, true), expected_unique);
}

TEST(ExternalSortTest, NothingInNothingOut) { EXPECT_TRUE(Sorted({}, 1 << 20, false).empty()); }

TEST(ExternalSortTest, ARecordLargerThanTheMemoryIsSortedToo) {
  const std::string large(1 << 20, 'm');
  EXPECT_EQ(Sorted({"z", large, "a"}, 1 << 10, false), (std::vector<std::string>{"a", large, "z"}));
}

}  // namespace
}  // namespace firstseen
