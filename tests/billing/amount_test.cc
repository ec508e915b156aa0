#include "billing/amount.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "support/random.h"

namespace firstseen {
namespace {

TEST(AmountTest, ReadsAndWritesExactDecimals) {
  const struct {
    const char* text;
    int decimals;
    const char* written;
  } cases[] = {
      {"0", 2, "0.00"},
      {"1", 2, "1.00"},
      {"1.5", 2, "1.50"},
      {"1.500", 2, "1.50"},
      {"-0.05", 2, "-0.05"},
      {"-0", 2, "0.00"},
      {"007.10", 2, "7.10"},
      {"12", 0, "12"},
      {"12.0", 0, "12"},
      {"9007199254740993.01", 2, "9007199254740993.01"},
      {"123456789012345678901234567.123", 3, "123456789012345678901234567.123"},
      {"0.000000000000000001", 18, "0.000000000000000001"},
  };
  for (const auto& c : cases) {
    const auto amount = ParseAmount(c.text, c.decimals);
    ASSERT_TRUE(amount.ok()) << c.text << ": " << amount.status();
    EXPECT_EQ(FormatAmount(*amount, c.decimals), c.written);
  }
}

TEST(AmountTest, RefusesAllElse) {
  for (const char* text : {"", "-", ".", "1.", ".5", "+1", "1e3", "1,000", " 1", "1 ", "0x10",
                           "1.005", "--1", "1.2.3", "NaN", "1234567890123456789012345678901"}) {
    EXPECT_FALSE(ParseAmount(text, 2).ok()) << text;
  }
}

TEST(AmountTest, ErrorsDoNotRepeatTheText) {
  EXPECT_EQ(Message(ParseAmount("31415x", 2).status()).find("31415"), std::string_view::npos);
}

TEST(AmountTest, SumsDoNotOverflowSilently) {
  AmountUnits total = ~(AmountUnits{1} << 127);
  EXPECT_TRUE(AddAmount(0, &total).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(AddAmount(1, &total)));
}

TEST(AmountTest, WhatIsWrittenIsReadBack) {
  Random random;
  for (int i = 0; i < 2'000; ++i) {
    const int decimals = static_cast<int>(random.Below(19));
    AmountUnits units = 0;
    for (uint64_t digit = random.Below(29); digit > 0; --digit) {
      units = units * 10 + static_cast<int>(random.Below(10));
    }
    if (random.OneIn(2)) units = -units;
    const auto read = ParseAmount(FormatAmount(units, decimals), decimals);
    ASSERT_TRUE(read.ok()) << FormatAmount(units, decimals);
    EXPECT_TRUE(*read == units);
  }
}

}  // namespace
}  // namespace firstseen
