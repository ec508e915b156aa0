#include "engine/records.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine_fixture.h"
#include "support/random.h"

namespace firstseen {
namespace {

std::vector<Record> Samples() {
  SetOptions options = YearSet();
  options.time_zone = "UTC";
  options.expected = 1'000'000'000;
  options.bits = 88;
  ImportBatchRecord batch;
  batch.set = 3;
  batch.source = "job/file";
  batch.position = std::string("\0\x01", 2);
  batch.counts = {.added = 3, .duplicates = 2, .closed = 1};
  batch.windows = {{2023, {Print(1).Truncated(88), Print(2).Truncated(88)}, {7, 0}},
                   {2024, {Print(3).Truncated(88)}, {}},
                   {2025, {Print(4).Truncated(88)}, {9}, 123456789}};
  const Fingerprint print = Print(9).Truncated(88);
  return {SetCreatedRecord{3, "kyc", options},
          AddedRecord{3, 2023, 7, print},
          RemovedRecord{3, 2023, print},
          SettledRecord{3, 2023, 7, 123456789, print},
          WindowDroppedRecord{3, 2023},
          WindowReopenedRecord{3, 2023},
          batch,
          ImportsForgottenRecord{3, "job/"},
          OpenTimeRecord{42}};
}

TEST(RecordsTest, EachKindComesBackAsItWas) {
  for (const Record& record : Samples()) {
    const std::string bytes = EncodeRecord(record, 88);
    const auto decoded = DecodeRecord(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->index(), record.index());
    EXPECT_EQ(EncodeRecord(*decoded, 88), bytes);
  }
  const auto created = DecodeRecord(EncodeRecord(Samples()[0], 88)).value();
  EXPECT_EQ(std::get<SetCreatedRecord>(created).options,
            std::get<SetCreatedRecord>(Samples()[0]).options);
}

TEST(RecordsTest, TheBytesAreThoseOfTheFormatDocument) {
  const AddedRecord added{.set = 0x01020304,
                          .window = 2023,
                          .owner = 0x1122334455667788,
                          .fingerprint = {0xa0a1a2a3a4a5a6a7, 0xb0b1b2b300000000}};
  std::string bytes;
  EncodeAdded(added, 96, &bytes);
  EXPECT_EQ(bytes, std::string("\x02"
                               "\x04\x03\x02\x01"
                               "\xe7\x07\x00\x00"
                               "\x88\x77\x66\x55\x44\x33\x22\x11"
                               "\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xb0\xb1\xb2\xb3",
                               29));
}

TEST(RecordsTest, ABatchOfFingerprintsWithoutBytesIsRefused) {
  // Type, set, empty source and position, counts; then no bytes a fingerprint, one window, and a
  // count of four thousand million of them.
  std::string record(1, '\x07');
  record.append(4 + 4 + 4 + 3 * 8, '\0');
  record += std::string("\0\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\0", 14);
  EXPECT_FALSE(DecodeRecord(record).ok());
}

TEST(RecordsTest, ShorterAndLongerOnesAreRefused) {
  for (const Record& record : Samples()) {
    const bool open_ended = std::holds_alternative<AddedRecord>(record) ||
                            std::holds_alternative<RemovedRecord>(record) ||
                            std::holds_alternative<SettledRecord>(record);
    const std::string bytes = EncodeRecord(record, 88);
    if (!open_ended) {
      EXPECT_FALSE(DecodeRecord(bytes + "x").ok());
    }
    EXPECT_FALSE(DecodeRecord(bytes + "123456").ok());  // a fingerprint of more than 128 bits
    const size_t least = open_ended ? bytes.size() - 11 : bytes.size();
    for (size_t size = 0; size < least; ++size) {
      EXPECT_FALSE(DecodeRecord(bytes.substr(0, size)).ok()) << record.index() << " " << size;
    }
  }
  EXPECT_FALSE(DecodeRecord("").ok());
  EXPECT_FALSE(DecodeRecord("\x7f").ok());
}

TEST(RecordsTest, RandomBytesDoNoHarm) {
  Random random;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random.Bytes(random.Below(80));
    if (!bytes.empty()) bytes[0] = static_cast<char>(random.Below(12));
    const auto decoded = DecodeRecord(bytes);
    if (decoded.ok()) {
      EXPECT_TRUE(SetOf(*decoded).has_value() || bytes[0] == 9);
    }
  }
}

}  // namespace
}  // namespace firstseen
