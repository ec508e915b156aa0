#include "exact/arena.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace firstseen {
namespace {

constexpr int kUnits = 10;
constexpr size_t kChunkBytes = kUnits * Arena::kUnitBytes;

TEST(ArenaTest, ChunksAreAlignedDistinctAndWritable) {
  Arena arena(Arena::Options{});
  std::set<void*> chunks;
  for (int i = 0; i < 1000; ++i) {
    void* const chunk = arena.Allocate(kUnits);
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(chunk) % Arena::kNumberBytes, 0u);
    std::memset(chunk, i & 0xff, kChunkBytes);
    EXPECT_TRUE(chunks.insert(chunk).second);
  }
  EXPECT_EQ(arena.bytes_used(), 1000 * kChunkBytes);
  for (void* chunk : chunks) arena.Free(chunk, kUnits);
  EXPECT_EQ(arena.bytes_used(), 0u);
}

TEST(ArenaTest, WhollyFreeExtentsGoBack) {
  Arena arena(Arena::Options{.huge_pages = false});
  std::vector<void*> chunks;
  for (int i = 0; i < 5000; ++i) chunks.push_back(arena.Allocate(kUnits));
  const uint64_t full = arena.bytes_reserved();
  EXPECT_GE(full, arena.bytes_used());
  for (size_t i = 0; i < chunks.size() - 1; ++i) arena.Free(chunks[i], kUnits);
  EXPECT_EQ(arena.bytes_reserved(), uint64_t{2} << 20);
  void* const again = arena.Allocate(kUnits);
  arena.Free(again, kUnits);
  arena.Free(chunks.back(), kUnits);
  EXPECT_EQ(arena.bytes_reserved(), 0u);
}

TEST(ArenaTest, FreedChunksAreUsedAgainBeforeNewExtents) {
  Arena arena(Arena::Options{});
  std::vector<void*> chunks;
  for (int i = 0; i < 1024; ++i) chunks.push_back(arena.Allocate(kUnits));
  const uint64_t full = arena.bytes_reserved();
  for (size_t i = 0; i < chunks.size(); i += 2) arena.Free(chunks[i], kUnits);
  for (size_t i = 0; i < chunks.size(); i += 2) chunks[i] = arena.Allocate(kUnits);
  EXPECT_EQ(arena.bytes_reserved(), full);
  for (void* chunk : chunks) arena.Free(chunk, kUnits);
}

TEST(ArenaTest, ChunksOfDifferentSizesDoNotOverlap) {
  Arena arena(Arena::Options{});
  std::map<char*, int> chunks;  // by address
  for (int i = 0; i < 3000; ++i) {
    const int units = 1 + i % Arena::kUnitsMax;
    char* const chunk = static_cast<char*>(arena.Allocate(units));
    ASSERT_NE(chunk, nullptr);
    EXPECT_GT(chunk, arena.anchor());
    chunks.emplace(chunk, units);
  }
  EXPECT_EQ(chunks.size(), 3000u);
  const char* end = nullptr;
  for (const auto& [chunk, units] : chunks) {
    EXPECT_GE(chunk, end);
    end = chunk + static_cast<size_t>(units) * Arena::kUnitBytes;
  }
  for (const auto& [chunk, units] : chunks) arena.Free(chunk, units);
  EXPECT_EQ(arena.bytes_reserved(), 0u);
}

TEST(ArenaTest, AnEmptiedExtentServesChunksOfAnotherSize) {
  Arena arena(Arena::Options{});
  void* const first = arena.Allocate(7);
  arena.Free(first, 7);
  void* const second = arena.Allocate(11);
  EXPECT_EQ(second, first);
  EXPECT_EQ(arena.bytes_reserved(), uint64_t{2} << 20);
  arena.Free(second, 11);
}

TEST(ArenaTest, LimitCoversChunksSmallBlocksAndCharges) {
  Arena arena(Arena::Options{.bytes_max = 3 * kChunkBytes});
  EXPECT_EQ(arena.bytes_max(), 3 * kChunkBytes);
  void* const first = arena.Allocate(kUnits);
  void* const second = arena.Allocate(kUnits);
  ASSERT_NE(second, nullptr);
  void* const small = arena.AllocateSmall(256);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 64, 0u);
  EXPECT_EQ(arena.Allocate(kUnits), nullptr);
  EXPECT_TRUE(arena.Charge(kChunkBytes - 256));
  EXPECT_EQ(arena.bytes_used(), arena.bytes_max());
  EXPECT_EQ(arena.AllocateSmall(128), nullptr);
  EXPECT_FALSE(arena.Charge(1));
  arena.ChargeAnyway(100);
  EXPECT_EQ(arena.bytes_used(), arena.bytes_max() + 100);
  arena.Discharge(100);
  arena.Discharge(kChunkBytes - 256);
  arena.FreeSmall(small, 256);
  void* const third = arena.Allocate(kUnits);
  EXPECT_NE(third, nullptr);
  for (void* chunk : {first, second, third}) arena.Free(chunk, kUnits);
  EXPECT_EQ(arena.bytes_used(), 0u);
}

}  // namespace
}  // namespace firstseen
