#include "exact/arena.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace firstseen {
namespace {

TEST(ArenaTest, ChunksAreAlignedDistinctAndWritable) {
  Arena arena(Arena::Options{});
  std::set<void*> chunks;
  for (int i = 0; i < 1000; ++i) {
    void* const chunk = arena.Allocate();
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(chunk) % Arena::kChunkBytes, 0u);
    std::memset(chunk, i & 0xff, Arena::kChunkBytes);
    EXPECT_TRUE(chunks.insert(chunk).second);
  }
  EXPECT_EQ(arena.bytes_used(), 1000 * Arena::kChunkBytes);
  for (void* chunk : chunks) arena.Free(chunk);
  EXPECT_EQ(arena.bytes_used(), 0u);
}

TEST(ArenaTest, WhollyFreeExtentsGoBack) {
  Arena arena(Arena::Options{.huge_pages = false});
  std::vector<void*> chunks;
  for (int i = 0; i < 5000; ++i) chunks.push_back(arena.Allocate());
  const uint64_t full = arena.bytes_reserved();
  EXPECT_GE(full, arena.bytes_used());
  for (size_t i = 0; i < chunks.size() - 1; ++i) arena.Free(chunks[i]);
  EXPECT_EQ(arena.bytes_reserved(), uint64_t{2} << 20);
  void* const again = arena.Allocate();
  arena.Free(again);
  arena.Free(chunks.back());
  EXPECT_EQ(arena.bytes_reserved(), 0u);
}

TEST(ArenaTest, FreedChunksAreUsedAgainBeforeNewExtents) {
  Arena arena(Arena::Options{});
  std::vector<void*> chunks;
  for (int i = 0; i < 1024; ++i) chunks.push_back(arena.Allocate());
  const uint64_t full = arena.bytes_reserved();
  for (size_t i = 0; i < chunks.size(); i += 2) arena.Free(chunks[i]);
  for (size_t i = 0; i < chunks.size(); i += 2) chunks[i] = arena.Allocate();
  EXPECT_EQ(arena.bytes_reserved(), full);
  for (void* chunk : chunks) arena.Free(chunk);
}

TEST(ArenaTest, LimitCoversChunksSmallBlocksAndCharges) {
  Arena arena(Arena::Options{.bytes_max = 3 * Arena::kChunkBytes});
  EXPECT_EQ(arena.bytes_max(), 3 * Arena::kChunkBytes);
  void* const first = arena.Allocate();
  void* const second = arena.Allocate();
  ASSERT_NE(second, nullptr);
  void* const small = arena.AllocateSmall(256);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 64, 0u);
  EXPECT_EQ(arena.Allocate(), nullptr);
  EXPECT_TRUE(arena.Charge(Arena::kChunkBytes - 256));
  EXPECT_EQ(arena.bytes_used(), arena.bytes_max());
  EXPECT_EQ(arena.AllocateSmall(128), nullptr);
  EXPECT_FALSE(arena.Charge(1));
  arena.Discharge(Arena::kChunkBytes - 256);
  arena.FreeSmall(small, 256);
  void* const third = arena.Allocate();
  EXPECT_NE(third, nullptr);
  for (void* chunk : {first, second, third}) arena.Free(chunk);
  EXPECT_EQ(arena.bytes_used(), 0u);
}

}  // namespace
}  // namespace firstseen
