// A file of FaultyFileSystem: what the page cache holds, what the disk holds, and what of the
// difference a power loss may keep. See faulty_file_system.h for the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace firstseen {

constexpr size_t kSectorBytes = 512;

// A sector's bytes, always kSectorBytes of them; null = zeros. Never changed once made.
using Sector = std::shared_ptr<const std::string>;

// A file's bytes: sectors that are missing are zeros.
struct Image {
  uint64_t size = 0;
  std::map<uint64_t, Sector> sectors;

  Sector Get(uint64_t number) const {
    const auto found = sectors.find(number);
    return found == sectors.end() ? nullptr : found->second;
  }
  void Put(uint64_t number, Sector sector) {
    if (sector == nullptr) {
      sectors.erase(number);
    } else {
      sectors[number] = std::move(sector);
    }
  }
  // Drops what lies beyond `size`.
  void Cut() {
    sectors.erase(sectors.lower_bound((size + kSectorBytes - 1) / kSectorBytes), sectors.end());
    const size_t rest = size % kSectorBytes;
    const auto last = sectors.find(size / kSectorBytes);
    if (rest == 0 || last == sectors.end()) return;
    std::string bytes = *last->second;
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(rest), bytes.end(), '\0');
    last->second = std::make_shared<std::string>(std::move(bytes));
  }
  std::string Read(uint64_t offset, size_t bytes) const {
    if (offset >= size) return "";
    bytes = std::min<uint64_t>(bytes, size - offset);
    std::string out(bytes, '\0');
    const uint64_t end = offset + bytes;
    for (auto it = sectors.lower_bound(offset / kSectorBytes);
         it != sectors.end() && it->first * kSectorBytes < end; ++it) {
      const uint64_t begin = it->first * kSectorBytes;
      const uint64_t from = std::max(begin, offset);
      const uint64_t to = std::min(begin + kSectorBytes, end);
      std::memcpy(out.data() + (from - offset), it->second->data() + (from - begin), to - from);
    }
    return out;
  }
};

struct Inode {
  Image cache;
  Image disk;
  // Contents since the last Sync, oldest first, of each sector that changed.
  std::map<uint64_t, std::vector<Sector>> dirty;
  bool size_dirty = false;

  void Change(uint64_t number, Sector sector) {
    dirty[number].push_back(sector);
    cache.Put(number, std::move(sector));
  }

  void Write(uint64_t offset, std::string_view bytes) {
    if (offset + bytes.size() > cache.size) Resize(offset + bytes.size());
    while (!bytes.empty()) {
      const uint64_t number = offset / kSectorBytes;
      const size_t begin = offset % kSectorBytes;
      const size_t count = std::min(bytes.size(), kSectorBytes - begin);
      const Sector old = cache.Get(number);
      std::string content = old != nullptr ? *old : std::string(kSectorBytes, '\0');
      content.replace(begin, count, bytes.substr(0, count));
      Change(number, std::make_shared<std::string>(std::move(content)));
      bytes.remove_prefix(count);
      offset += count;
    }
  }

  void Resize(uint64_t size) {
    if (size < cache.size) {
      const std::map<uint64_t, Sector> before = cache.sectors;
      cache.size = size;
      cache.Cut();
      for (const auto& [number, sector] : before) {
        const Sector now = cache.Get(number);
        if (now != sector) dirty[number].push_back(now);
      }
    }
    cache.size = size;
    size_dirty = true;
  }

  void Sync() {
    for (const auto& [number, versions] : dirty) disk.Put(number, cache.Get(number));
    disk.size = cache.size;
    disk.Cut();
    dirty.clear();
    size_dirty = false;
  }

  // The changed sectors are lost, but nobody knows: they stay readable and count as clean. When it
  // is torn, every other one reaches the disk. The size is not lost.
  void FailSync(bool torn) {
    bool reaches = false;
    for (const auto& [number, versions] : dirty) {
      if (torn && reaches) disk.Put(number, versions.back());
      reaches = !reaches;
    }
    dirty.clear();
  }

  // The disk after a power loss. `keep` of 256 changes survive.
  Image Survivor(std::mt19937_64& random, uint64_t keep) const {
    Image image = disk;
    const auto survives = [&] { return random() % 256 < keep; };
    for (const auto& [number, versions] : dirty) {
      if (!survives()) continue;
      const bool newest = keep == 256 || random() % 2 == 0;
      image.Put(number, newest ? versions.back() : versions[random() % versions.size()]);
    }
    if (size_dirty && survives()) {
      image.size = cache.size;
      if (keep < 256 && random() % 4 == 0 && cache.size > disk.size) {
        image.size = disk.size + random() % (cache.size - disk.size);
      }
    }
    image.Cut();
    return image;
  }
};

}  // namespace firstseen
