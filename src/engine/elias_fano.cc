#include "engine/elias_fano.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/status.h"

namespace firstseen {
namespace {

using Wide = unsigned __int128;

Wide Join(const Fingerprint& print) { return (static_cast<Wide>(print.hi) << 64) | print.lo; }
Fingerprint Parts(Wide value) {
  return {static_cast<uint64_t>(value >> 64), static_cast<uint64_t>(value)};
}
// The lowest `bits` bits set; 0 to 128.
Wide Mask(int bits) { return bits >= 128 ? ~Wide{0} : (Wide{1} << bits) - 1; }
Wide ShiftRight(Wide value, int bits) { return bits >= 128 ? 0 : value >> bits; }

int LowBits(size_t n, int width) {
  const int log2_ceil = n <= 1 ? 0 : static_cast<int>(std::bit_width(n - 1));
  return std::max(0, width - log2_ceil);
}

// Packs values of up to 128 bits, least significant bit first.
class BitPacker {
 public:
  explicit BitPacker(std::string* out) : out_(out) {}
  void Append(Wide value, int bits) {
    if (bits > 64) {
      Append64(static_cast<uint64_t>(value), 64);
      Append64(static_cast<uint64_t>(value >> 64), bits - 64);
    } else {
      Append64(static_cast<uint64_t>(value), bits);
    }
  }
  void Finish() {
    out_->append(reinterpret_cast<const char*>(&pending_), static_cast<size_t>(used_ + 7) / 8);
    pending_ = 0;
    used_ = 0;
  }

 private:
  void Append64(uint64_t value, int bits) {
    pending_ |= static_cast<Wide>(value) << used_;
    used_ += bits;
    if (used_ < 64) return;
    const auto word = static_cast<uint64_t>(pending_);
    out_->append(reinterpret_cast<const char*>(&word), sizeof(word));
    pending_ >>= 64;
    used_ -= 64;
  }

  std::string* out_;
  Wide pending_ = 0;
  int used_ = 0;  // bits in pending_, below 64 between calls
};

// Up to 64 bits at a bit offset; `bytes` must reach 16 bytes beyond.
uint64_t BitsAt(const char* bytes, size_t bit, int count) {
  Wide window;
  std::memcpy(&window, bytes + bit / 8, sizeof(window));
  return static_cast<uint64_t>((window >> (bit % 8)) & Mask(count));
}

}  // namespace

void EncodeEliasFano(std::span<const Fingerprint> ascending, int bits, int depth,
                     std::string* out) {
  const size_t n = ascending.size();
  const int width = bits - depth;
  const int low_bits = LowBits(n, width);
  BitPacker low(out);
  std::vector<uint64_t> high;
  for (size_t i = 0; i < n; ++i) {
    const Wide value = (Join(ascending[i]) >> (128 - bits)) & Mask(width);
    low.Append(value & Mask(low_bits), low_bits);
    const size_t bit = static_cast<size_t>(ShiftRight(value, low_bits)) + i;
    if (bit / 64 >= high.size()) high.resize(bit / 64 + 1);
    high[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  low.Finish();
  if (n == 0) return;
  const size_t last_bytes = (static_cast<size_t>(std::bit_width(high.back())) + 7) / 8;
  out->append(reinterpret_cast<const char*>(high.data()), (high.size() - 1) * 8 + last_bytes);
}

absl::StatusOr<std::vector<Fingerprint>> DecodeEliasFano(std::string_view bytes, size_t n, int bits,
                                                         int depth, const Fingerprint& prefix) {
  const int width = bits - depth;
  const int low_bits = LowBits(n, width);
  const size_t low_bytes = (n * static_cast<size_t>(low_bits) + 7) / 8;
  if (n > bytes.size() * 8 || bytes.size() < low_bytes) {
    return DataLoss("shard of {} fingerprints is too short", n);
  }
  std::string padded;
  padded.reserve(bytes.size() + 32);
  padded.append(bytes);
  padded.append(32, '\0');
  const char* high = padded.data() + low_bytes;
  const size_t high_bits = (bytes.size() - low_bytes) * 8;

  std::vector<Fingerprint> prints(n);
  const Wide shared = depth == 0 ? 0 : Join(prefix) & ~Mask(128 - depth);
  size_t i = 0;
  for (size_t base = 0; base < high_bits; base += 64) {
    uint64_t word = BitsAt(high, base, static_cast<int>(std::min<size_t>(64, high_bits - base)));
    for (; word != 0; word &= word - 1, ++i) {
      if (i == n) return DataLoss("shard has more than its {} fingerprints", n);
      const size_t high_part = base + static_cast<size_t>(std::countr_zero(word)) - i;
      if (ShiftRight(high_part, width - low_bits) != 0) {
        return DataLoss("shard has a fingerprint beyond its range");
      }
      const size_t at = i * static_cast<size_t>(low_bits);
      Wide value = BitsAt(padded.data(), at, std::min(low_bits, 64));
      if (low_bits > 64) {
        value |= static_cast<Wide>(BitsAt(padded.data(), at + 64, low_bits - 64)) << 64;
      }
      if (low_bits < 128) value |= static_cast<Wide>(high_part) << low_bits;
      prints[i] = Parts(shared | (value << (128 - bits)));
      if (i > 0 && prints[i] <= prints[i - 1]) return DataLoss("shard is not in ascending order");
    }
  }
  if (i != n) return DataLoss("shard has {} fingerprints instead of {}", i, n);
  return prints;
}

}  // namespace firstseen
