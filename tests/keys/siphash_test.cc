#include "keys/siphash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

#include "support/random.h"

namespace firstseen {
namespace {

SipKey CountingKey() {
  SipKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
  return key;
}

std::string CountingBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}

std::string Hex(const Fingerprint& fingerprint) {
  unsigned char bytes[16];
  std::memcpy(bytes, &fingerprint.hi, 8);
  std::memcpy(bytes + 8, &fingerprint.lo, 8);
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// SipHash-2-4-128 written from the paper, byte by byte, to check the library against.
class PlainSipHash {
 public:
  explicit PlainSipHash(const SipKey& key) {
    uint64_t k[2];
    std::memcpy(k, key.data(), 16);
    v_[0] = k[0] ^ 0x736f6d6570736575;
    v_[1] = k[1] ^ 0x646f72616e646f6d ^ 0xee;
    v_[2] = k[0] ^ 0x6c7967656e657261;
    v_[3] = k[1] ^ 0x7465646279746573;
  }

  Fingerprint Of(std::string_view bytes) {
    uint64_t word = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * (i % 8));
      if (i % 8 == 7) {
        Compress(word);
        word = 0;
      }
    }
    Compress(word | uint64_t{bytes.size()} << 56);
    Fingerprint result;
    v_[2] ^= 0xee;
    for (int i = 0; i < 4; ++i) Round();
    result.hi = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    v_[1] ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    result.lo = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
    return result;
  }

 private:
  void Compress(uint64_t word) {
    v_[3] ^= word;
    Round();
    Round();
    v_[0] ^= word;
  }
  void Round() {
    HalfRound(0, 1, 2, 3, 13, 16);
    HalfRound(2, 1, 0, 3, 17, 21);
  }
  void HalfRound(int a, int b, int c, int d, int s, int t) {
    v_[a] += v_[b];
    v_[c] += v_[d];
    v_[b] = std::rotl(v_[b], s) ^ v_[a];
    v_[d] = std::rotl(v_[d], t) ^ v_[c];
    v_[a] = std::rotl(v_[a], 32);
  }

  uint64_t v_[4];
};

// From the vectors that the authors publish: key 00 01 ... 0f, input the bytes 00 01 ... (n-1).
TEST(SipHashTest, GivesThePublishedVectors) {
  const struct {
    size_t size;
    const char* hex;
  } kVectors[] = {
      {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
      {2, "8177228da4a45dc7fca38bdef60affe4"},  {3, "9c70b60c5267a94e5f33b6b02985ed51"},
      {4, "f88164c12d9c8faf7d0f6e7c7bcd5579"},  {5, "1368875980776f8854527a07690e9627"},
      {6, "14eeca338b208613485ea0308fd7a15e"},  {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
      {8, "3b62a9ba6258f5610f83e264f31497b4"},  {9, "264499060ad9baabc47f8b02bb6d71ed"},
      {10, "00110dc378146956c95447d3f3d0fbba"}, {11, "0151c568386b6677a2b4dc6f81e5dc18"},
      {12, "d626b266905ef35882634df68532c125"}, {13, "9869e247e9c08b10d029934fc4b952f7"},
      {14, "31fcefac66d7de9c7ec7485fe4494902"}, {15, "5493e99933b0a8117e08ec0f97cfc3d9"},
      {16, "6ee2a4ca67b054bbfd3315bf85230577"}, {17, "473d06e8738db89854c066c47ae47740"},
      {23, "c9d184ddd5a9f5e0cf8ce29a9abf691c"}, {24, "2db479ae78bd50d8882a8a178a6132ad"},
      {31, "2939b0183223fafc1723de4f52c43d35"}, {32, "7c3956ca5eeafc3e363e9d556546eb68"},
      {40, "df6a301e95c95dad97ae0cc8c6913bd8"}, {48, "f7e5aef549f782cf379055a608269b16"},
      {56, "1938f2cf72d54ee97e94166fa91d2a36"}, {63, "5150d1772f50834a503e069a973fbd7c"},
  };
  for (const auto& [size, hex] : kVectors) {
    EXPECT_EQ(Hex(SipHash128(CountingKey(), CountingBytes(size))), hex) << size << " bytes";
  }
}

TEST(SipHashTest, AgreesWithAnIndependentImplementationOnEveryLength) {
  Random random;
  SipKey key;
  for (size_t size = 0; size < 600; ++size) {
    for (unsigned char& byte : key) byte = static_cast<unsigned char>(random.Below(256));
    const std::string bytes = random.Bytes(size);
    EXPECT_EQ(SipHash128(key, bytes), PlainSipHash(key).Of(bytes)) << size << " bytes";
  }
}

}  // namespace
}  // namespace firstseen
