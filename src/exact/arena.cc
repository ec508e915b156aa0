#include "exact/arena.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <unordered_map>

#include "base/check.h"
#include "base/mutex.h"

namespace firstseen {
namespace {

constexpr size_t kExtentBytes = size_t{2} << 20;
constexpr uint32_t kChunksPerExtent = kExtentBytes / Arena::kChunkBytes;
constexpr size_t kSmallAlignment = 64;
// Numbers reach 16 TiB below the first extent and 16 TiB above; systems map closely together.
constexpr uint64_t kAnchorDistance = uint64_t{1} << 44;
constexpr uint64_t kNumberMax = ~uint32_t{0} - kChunksPerExtent;

// Which chunks are free is kept beside the extent, not in it: see Arena::Free.
struct Extent {
  char* base = nullptr;
  std::array<uint64_t, kChunksPerExtent / 64> free;  // one bit a chunk
  uint32_t used = 0;                                 // chunks handed out
  Extent* previous = nullptr;  // neighbours in the list of extents that have a chunk to give
  Extent* next = nullptr;

  char* Take() {
    size_t word = 0;
    while (free[word] == 0) ++word;
    const size_t bit = static_cast<size_t>(std::countr_zero(free[word]));
    free[word] &= free[word] - 1;
    ++used;
    return base + (word * 64 + bit) * Arena::kChunkBytes;
  }
  void Give(const void* chunk) {
    const size_t index =
        static_cast<size_t>(static_cast<const char*>(chunk) - base) / Arena::kChunkBytes;
    free[index / 64] |= uint64_t{1} << (index % 64);
    --used;
  }
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
  // The first extent is mapped at once, though without memory, to learn where the others will lie.
  explicit Impl(Options arena_options) : options(arena_options) {
    MutexLock lock(mutex);
    empty = Map();
    if (empty == nullptr) return;
    empty_count = 1;
    const uint64_t here = reinterpret_cast<uintptr_t>(empty->base);
    anchor = reinterpret_cast<char*>(here < kAnchorDistance ? 0 : here - kAnchorDistance);
  }

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

  // A new extent; nullptr when the system has no more, or none within the reach of numbers.
  Extent* Map() REQUIRES(mutex) {
    char* const base = MapExtent(options.huge_pages);
    if (base == nullptr) return nullptr;
    const uint64_t distance = static_cast<uint64_t>(base - anchor);
    if (anchor != nullptr && (base <= anchor || distance / kChunkBytes > kNumberMax)) {
      munmap(base, kExtentBytes);
      return nullptr;
    }
    Extent* const extent = &extents[reinterpret_cast<uintptr_t>(base)];
    extent->base = base;
    extent->free.fill(~uint64_t{0});
    return extent;
  }

  const Options options;
  char* anchor = nullptr;
  std::atomic<uint64_t> used{0};   // chunks, small blocks and charges
  std::atomic<uint64_t> small{0};  // of these, small blocks and charges
  mutable Mutex mutex;
  std::unordered_map<uintptr_t, Extent> extents GUARDED_BY(mutex);  // by base address
  Extent* available GUARDED_BY(mutex) = nullptr;                    // partly used ones
  Extent* empty GUARDED_BY(mutex) = nullptr;  // address space without memory, linked by next
  uint64_t empty_count GUARDED_BY(mutex) = 0;

  // An extent with a free chunk; nullptr when the system has no more.
  Extent* Available() REQUIRES(mutex) {
    if (available != nullptr) return available;
    Extent* extent = empty;
    if (extent != nullptr) {
      empty = extent->next;
      --empty_count;
    } else {
      extent = Map();
      if (extent == nullptr) return nullptr;
    }
    Link(extent);
    return extent;
  }
};

Arena::Arena(Options options) : impl_(std::make_unique<Impl>(options)) {}

Arena::~Arena() {
  for (auto& [base, extent] : impl_->extents) munmap(extent.base, kExtentBytes);
}

void* Arena::Allocate() {
  if (!impl_->Charge(kChunkBytes)) return nullptr;
  MutexLock lock(impl_->mutex);
  Extent* const extent = impl_->Available();
  if (extent == nullptr) {
    impl_->used.fetch_sub(kChunkBytes, std::memory_order_relaxed);
    return nullptr;
  }
  char* const chunk = extent->Take();
  if (extent->used == kChunksPerExtent) impl_->Unlink(extent);
  return chunk;
}

void Arena::Free(void* chunk) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(chunk) & ~uintptr_t{kExtentBytes - 1};
  MutexLock lock(impl_->mutex);
  const auto found = impl_->extents.find(base);
  FIRSTSEEN_CHECK(found != impl_->extents.end());
  Extent& extent = found->second;
  if (extent.used == kChunksPerExtent) impl_->Link(&extent);
  extent.Give(chunk);
  if (extent.used == 0) {
    impl_->Unlink(&extent);
    FIRSTSEEN_CHECK(madvise(extent.base, kExtentBytes, MADV_DONTNEED) == 0);
    extent.next = impl_->empty;
    impl_->empty = &extent;
    ++impl_->empty_count;
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

char* Arena::anchor() const { return impl_->anchor; }

uint64_t Arena::bytes_used() const { return impl_->used.load(std::memory_order_relaxed); }

uint64_t Arena::bytes_reserved() const {
  MutexLock lock(impl_->mutex);
  return (impl_->extents.size() - impl_->empty_count) * kExtentBytes +
         impl_->small.load(std::memory_order_relaxed);
}

uint64_t Arena::bytes_max() const { return impl_->options.bytes_max; }

}  // namespace firstseen
