#include "exact/arena.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <unordered_map>

#include "base/check.h"
#include "base/mutex.h"

namespace firstseen {
namespace {

constexpr size_t kExtentBytes = size_t{2} << 20;
constexpr uint32_t kChunksPerExtent = kExtentBytes / Arena::kChunkBytes;
constexpr size_t kSmallAlignment = 64;

struct FreeChunk {
  FreeChunk* next;
};

// Chunks are taken first from those given back, then from the untouched end.
struct Extent {
  char* base = nullptr;
  FreeChunk* free = nullptr;
  uint32_t touched = 0;        // chunks handed out at least once
  uint32_t used = 0;           // chunks handed out now
  Extent* previous = nullptr;  // neighbours in the list of extents that have a chunk to give
  Extent* next = nullptr;
};

// An aligned extent straight from the system; nullptr when it has none.
char* MapExtent(bool huge_pages) {
  void* mapped = mmap(nullptr, 2 * kExtentBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(mapped);
  const size_t misaligned = reinterpret_cast<uintptr_t>(start) % kExtentBytes;
  const size_t head = misaligned == 0 ? 0 : kExtentBytes - misaligned;
  if (head != 0) munmap(start, head);
  munmap(start + head + kExtentBytes, kExtentBytes - head);
  // Advice only: without huge pages the extent works as well, with more TLB misses.
  if (huge_pages) madvise(start + head, kExtentBytes, MADV_HUGEPAGE);
  return start + head;
}

}  // namespace

struct Arena::Impl {
  explicit Impl(Options arena_options) : options(arena_options) {}

  // Counts `bytes` against the limit; false when they do not fit.
  bool Charge(uint64_t bytes) {
    uint64_t now = used.load(std::memory_order_relaxed);
    do {
      if (bytes > options.bytes_max || now > options.bytes_max - bytes) return false;
    } while (!used.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
    return true;
  }

  void Link(Extent* extent) REQUIRES(mutex) {
    extent->previous = nullptr;
    extent->next = available;
    if (available != nullptr) available->previous = extent;
    available = extent;
  }
  void Unlink(Extent* extent) REQUIRES(mutex) {
    (extent->previous != nullptr ? extent->previous->next : available) = extent->next;
    if (extent->next != nullptr) extent->next->previous = extent->previous;
  }

  const Options options;
  std::atomic<uint64_t> used{0};   // chunks, small blocks and charges
  std::atomic<uint64_t> small{0};  // of these, small blocks and charges
  mutable Mutex mutex;
  std::unordered_map<uintptr_t, Extent> extents GUARDED_BY(mutex);  // by base address
  Extent* available GUARDED_BY(mutex) = nullptr;
};

Arena::Arena(Options options) : impl_(std::make_unique<Impl>(options)) {}

Arena::~Arena() {
  for (auto& [base, extent] : impl_->extents) munmap(extent.base, kExtentBytes);
}

void* Arena::Allocate() {
  if (!impl_->Charge(kChunkBytes)) return nullptr;
  MutexLock lock(impl_->mutex);
  Extent* extent = impl_->available;
  if (extent == nullptr) {
    char* const base = MapExtent(impl_->options.huge_pages);
    if (base == nullptr) {
      impl_->used.fetch_sub(kChunkBytes, std::memory_order_relaxed);
      return nullptr;
    }
    extent = &impl_->extents[reinterpret_cast<uintptr_t>(base)];
    extent->base = base;
    impl_->Link(extent);
  }
  void* chunk = extent->free;
  if (chunk != nullptr) {
    extent->free = extent->free->next;
  } else {
    chunk = extent->base + size_t{extent->touched} * kChunkBytes;
    ++extent->touched;
  }
  if (++extent->used == kChunksPerExtent) impl_->Unlink(extent);
  return chunk;
}

void Arena::Free(void* chunk) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(chunk) & ~uintptr_t{kExtentBytes - 1};
  MutexLock lock(impl_->mutex);
  const auto found = impl_->extents.find(base);
  FIRSTSEEN_CHECK(found != impl_->extents.end());
  Extent& extent = found->second;
  if (extent.used == kChunksPerExtent) impl_->Link(&extent);
  if (--extent.used == 0) {
    impl_->Unlink(&extent);
    munmap(extent.base, kExtentBytes);
    impl_->extents.erase(found);
  } else {
    extent.free = new (chunk) FreeChunk{extent.free};
  }
  impl_->used.fetch_sub(kChunkBytes, std::memory_order_relaxed);
}

void* Arena::AllocateSmall(size_t bytes) {
  if (!Charge(bytes)) return nullptr;
  void* const block = std::aligned_alloc(kSmallAlignment, bytes);
  if (block == nullptr) Discharge(bytes);
  return block;
}

void Arena::FreeSmall(void* block, size_t bytes) {
  std::free(block);
  Discharge(bytes);
}

bool Arena::Charge(size_t bytes) {
  if (!impl_->Charge(bytes)) return false;
  impl_->small.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void Arena::Discharge(size_t bytes) {
  impl_->used.fetch_sub(bytes, std::memory_order_relaxed);
  impl_->small.fetch_sub(bytes, std::memory_order_relaxed);
}

uint64_t Arena::bytes_used() const { return impl_->used.load(std::memory_order_relaxed); }

uint64_t Arena::bytes_reserved() const {
  MutexLock lock(impl_->mutex);
  return impl_->extents.size() * kExtentBytes + impl_->small.load(std::memory_order_relaxed);
}

uint64_t Arena::bytes_max() const { return impl_->options.bytes_max; }

}  // namespace firstseen
