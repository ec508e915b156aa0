// Random fingerprints and whole-set reading for the tests of exact/.
#pragma once

#include <cstdint>
#include <vector>

#include "exact/exact_set.h"
#include "support/random.h"

namespace firstseen {

// How fingerprints are drawn.
enum class Draw {
  kUniform,        // as from a keyed function
  kFewPrefixes,    // equal in the first 40 bits (half the width, if narrow): one shard, one group
  kFewRemainders,  // equal in all but the first 24 bits: equal tags and remainders everywhere
  kFewTags,        // uniform, but for the last 8 bits, which are all the same
  kSmallUniverse,  // few enough that most are drawn again and again
};

class FingerprintSource {
 public:
  FingerprintSource(int bits, Draw draw) : bits_(bits), draw_(draw) {}
  FingerprintSource(uint64_t seed, int bits, Draw draw) : random_(seed), bits_(bits), draw_(draw) {}

  Fingerprint Next() {
    Fingerprint f{random_.Next(), random_.Next()};
    switch (draw_) {
      case Draw::kUniform:
        break;
      case Draw::kFewPrefixes: {
        const int shared = bits_ >= 80 ? 40 : bits_ / 2;
        f.hi =
            (f.hi & (~uint64_t{0} >> shared)) | ((0x123456789abcdef0u + f.lo % 3) << (64 - shared));
        break;
      }
      case Draw::kFewRemainders:
        f = {(f.hi & 0xffffff0000000000u) | (f.lo % 4 << 20), f.lo % 5 << 40};
        break;
      case Draw::kFewTags: {
        const int spare = 128 - bits_;
        if (spare < 64)
          f.lo &= ~(uint64_t{0xff} << spare);
        else
          f.hi &= ~(uint64_t{0xff} << (spare - 64));
        break;
      }
      case Draw::kSmallUniverse:
        f = {(f.hi % 3000) * 0x9e3779b97f4a7c15u, (f.hi % 3000) * 0xbf58476d1ce4e5b9u};
        break;
    }
    return f.Truncated(bits_);
  }
  Random& random() { return random_; }

 private:
  Random random_;
  int bits_;
  Draw draw_;
};

inline std::vector<Fingerprint> Draws(FingerprintSource* source, size_t count) {
  std::vector<Fingerprint> fingerprints(count);
  for (Fingerprint& fingerprint : fingerprints) fingerprint = source->Next();
  return fingerprints;
}

inline std::vector<ShardImage> CopyAll(const ExactSet& set) {
  std::vector<ShardImage> images;
  Fingerprint cursor;
  bool more = true;
  while (more) {
    images.emplace_back();
    more = set.CopyShard(&cursor, &images.back());
  }
  return images;
}

inline std::vector<Fingerprint> Members(const std::vector<ShardImage>& images) {
  std::vector<Fingerprint> members;
  for (const ShardImage& image : images) {
    members.insert(members.end(), image.fingerprints.begin(), image.fingerprints.end());
  }
  return members;
}

}  // namespace firstseen
