#include "keys/normalise.h"

#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "support/random.h"

namespace firstseen {
namespace {

constexpr uint32_t kAll = kTrim | kWidth | kXCheckDigit | kId15To18 | kNameDot | kZeroWidth;

std::string Normalised(uint32_t mask, std::string_view field) {
  std::string out = "before ";  // what stands in the buffer already must not matter
  AppendNormalised(mask, field, &out);
  EXPECT_EQ(out.substr(0, 7), "before ");
  return out.substr(7);
}

TEST(NormaliseTest, OpaqueFieldsKeepTheirBytes) {
  const std::string field =
      " \xE3\x80\x80\xEF\xBC\xA1x\xFF\x00 "
      "330102200403064\xE2\x80\x8B";
  EXPECT_EQ(Normalised(kOpaque, field), field);
}

TEST(NormaliseTest, TrimTakesAsciiSpacesAndIdeographicSpacesFromBothEnds) {
  EXPECT_EQ(Normalised(kTrim, " \t\r\n\v\f张三\f\v\n\r\t "), "张三");
  EXPECT_EQ(Normalised(kTrim, "\u3000 \u3000张三 \u3000"), "张三");
  EXPECT_EQ(Normalised(kTrim, "张 三"), "张 三");
  EXPECT_EQ(Normalised(kTrim, "张\u3000三"), "张\u3000三");
  EXPECT_EQ(Normalised(kTrim, " \u3000 "), "");
  EXPECT_EQ(Normalised(kTrim, ""), "");
  EXPECT_EQ(Normalised(kTrim, " a"), "a");
  EXPECT_EQ(Normalised(kTrim, "a "), "a");
  EXPECT_EQ(Normalised(kTrim, "\u00A0a"), "\u00A0a") << "a no-break space is not listed";
}

TEST(NormaliseTest, TrimAloneDoesNotTouchACharacterThatEndsLikeAnIdeographicSpace) {
  EXPECT_EQ(Normalised(kTrim, "\u4E00\u3001"), "\u4E00\u3001");  // ends in bytes E3 80 81
  EXPECT_EQ(Normalised(kTrim, "\u0300\u0300"), "\u0300\u0300");  // bytes CC 80 CC 80
}

TEST(NormaliseTest, WidthTurnsFullWidthAsciiIntoAscii) {
  EXPECT_EQ(Normalised(kWidth, "３３０１０２１９２００４０３０６４Ｘ"), "33010219200403064X");
  EXPECT_EQ(Normalised(kWidth, "ｘ"), "x");
  EXPECT_EQ(Normalised(kWidth, "\uFF01\uFF5E"), "!~");
  EXPECT_EQ(Normalised(kWidth, "\uFF00\uFF5F"), "\uFF00\uFF5F") << "just outside the range";
  EXPECT_EQ(Normalised(kWidth, "张\u3000三"), "张 三");
  EXPECT_EQ(Normalised(kTrim | kWidth, "\u3000张三\u3000"), "张三");
}

TEST(NormaliseTest, XCheckDigitRaisesOnlyAFinalXBehindSeventeenDigits) {
  EXPECT_EQ(Normalised(kXCheckDigit, "33010219200403064x"), "33010219200403064X");
  EXPECT_EQ(Normalised(kXCheckDigit, "33010219200403064X"), "33010219200403064X");
  EXPECT_EQ(Normalised(kXCheckDigit, "3301021920040306x4"), "3301021920040306x4");
  EXPECT_EQ(Normalised(kXCheckDigit, "a3010219200403064x"), "a3010219200403064x");
  EXPECT_EQ(Normalised(kXCheckDigit, "3010219200403064x"), "3010219200403064x");
  EXPECT_EQ(Normalised(kXCheckDigit, "x"), "x");
  EXPECT_EQ(Normalised(kTrim | kXCheckDigit, " 33010219200403064x "), "33010219200403064X");
  EXPECT_EQ(Normalised(kWidth | kXCheckDigit, "33010219200403064ｘ"), "33010219200403064X");
  EXPECT_EQ(Normalised(kXCheckDigit, "81000019980902013x"), "81000019980902013X");
}

TEST(NormaliseTest, FifteenDigitIdsBecomeEighteenDigitIds) {
  EXPECT_EQ(Normalised(kId15To18, "330102200403064"), "33010219200403064X");
  EXPECT_EQ(Normalised(kId15To18 | kTrim | kWidth, "\u3000３３０１０２２００４０３０６４"),
            "33010219200403064X");
  // The leap day of 1920; 1900 was no leap year.
  EXPECT_EQ(Normalised(kId15To18, "330102200229064").size(), 18u);
  EXPECT_EQ(Normalised(kId15To18, "330102000229064"), "330102000229064");
}

TEST(NormaliseTest, WhatIsNoOldIdIsNotUpgraded) {
  for (const std::string id : {
           "ABC123456789012",     // foreign residence card of 2017: 3 letters and 12 digits
           "CHN199001011234",     // the same
           "330102201303064",     // month 13
           "330102200003064",     // month 0
           "330102200431064",     // April 31st
           "330102200400064",     // day 0
           "33010220040306",      // 14 digits
           "3301022004030641",    // 16 digits
           "33010220040306x",     // not all digits
           "932682198501010017",  // foreign residence card of 2023
           "830000194609150010",  // residence permit
       }) {
    EXPECT_EQ(Normalised(kId15To18, id), id);
  }
}

TEST(NormaliseTest, CheckDigitsFollowGb11643) {
  for (const std::string id : {"33010219200403064X", "81000019980902013X", "830000194609150010",
                               "932682198501010017", "11010519491231002X", "440524188001010014"}) {
    EXPECT_EQ(IdCheckDigit(id.substr(0, 17)), id[17]);
  }
}

TEST(NormaliseTest, EveryNameSeparatorBetweenLettersBecomesTheMiddleDot) {
  for (const std::string dot : {".", "\u2022", "\u30FB", "\u2027", "\u2219", "\u22C5", "\u25CF",
                                "\uFF65", "\uFF0E", "\u2024", "\u00B7"}) {
    EXPECT_EQ(Normalised(kNameDot, "阿卜杜拉" + dot + "买买提"), "阿卜杜拉\u00B7买买提");
    EXPECT_EQ(Normalised(kNameDot, "Maria" + dot + "Luís" + dot + "Évora"),
              "Maria\u00B7Luís\u00B7Évora");
    EXPECT_EQ(Normalised(kAll, "迪丽热巴" + dot + "Dilmurat"), "迪丽热巴\u00B7Dilmurat");
  }
  EXPECT_EQ(Normalised(kNameDot, "ئابدۇللا.مەمەت"), "ئابدۇللا\u00B7مەمەت");
  EXPECT_EQ(Normalised(kNameDot, "\uE863.\uE864"), "\uE863\u00B7\uE864");
  EXPECT_EQ(Normalised(kNameDot, "\U00020BB7.\U00020BB8"), "\U00020BB7\u00B7\U00020BB8");
}

TEST(NormaliseTest, SeparatorsThatAreNotBetweenLettersStay) {
  for (const std::string name : {"Jr.", ".Net", "3.14", "张三.", "\u2022张三", "张三\u3002李四",
                                 "A..B", "A.\u2022B", "A. B", "A .B", ".", "\u30FB", "张3.李"}) {
    EXPECT_EQ(Normalised(kNameDot, name), name);
  }
  EXPECT_EQ(Normalised(kNameDot, "J.R. Smith Jr."), "J\u00B7R. Smith Jr.");
}

TEST(NormaliseTest, SeparatorsAreJudgedAfterWidthAndZeroWidth) {
  EXPECT_EQ(Normalised(kNameDot | kZeroWidth, "阿卜\u200B.\uFEFF买"), "阿卜\u00B7买");
  EXPECT_EQ(Normalised(kNameDot, "阿卜\u200B.买"), "阿卜\u200B.买");
  EXPECT_EQ(Normalised(kNameDot | kWidth, "Ａ．Ｂ"), "A\u00B7B");
  EXPECT_EQ(Normalised(kNameDot, "Ａ．Ｂ"), "Ａ\u00B7Ｂ");
  EXPECT_EQ(Normalised(kNameDot | kWidth, "１．Ｂ"), "1.B");
}

TEST(NormaliseTest, ZeroWidthCharactersGoWhereverTheyStand) {
  EXPECT_EQ(Normalised(kZeroWidth, "\uFEFF张\u200B\u200C\u200D三\u2060"), "张三");
  EXPECT_EQ(Normalised(kZeroWidth, "张\u200A\u200E三"), "张\u200A\u200E三");
  EXPECT_EQ(Normalised(kZeroWidth | kTrim, "\u200B \u200B张三\u200B \u200B"), "张三");
  EXPECT_EQ(Normalised(kZeroWidth | kId15To18, "330102\u200B200403064"), "33010219200403064X");
}

TEST(NormaliseTest, FieldsThatAreNotUtf8StayAsTheyAre) {
  for (const std::string field : {
           " \xFF ",              // no lead byte
           " \xD5\xC5\xC8\xFD ",  // 张三 in GBK
           "\xC0\xAF. ",          // overlong
           "\xE0\x80\x80 ",       // overlong
           "\xED\xA0\x80 ",       // a surrogate
           "\xF4\x90\x80\x80 ",   // above U+10FFFF
           "\xF0\x80\x80\x80 ",   // overlong
           " \xE5\xBC",           // cut short
           "\xE2\x80\xE2\x80\x8B\x8B",
           " ３３\x80",
       }) {
    EXPECT_EQ(Normalised(kAll, field), field);
  }
}

// Characters that the switches act on, and pieces of them.
std::string RandomField(Random* random) {
  static const std::string kPieces[] = {"张",
                                        "三",
                                        "买",
                                        "A",
                                        "x",
                                        "X",
                                        "1",
                                        "9",
                                        "0",
                                        "330102",
                                        "200403",
                                        "064",
                                        " ",
                                        "\t",
                                        "\u3000",
                                        "\u200B",
                                        "\u200C",
                                        "\u2060",
                                        "\uFEFF",
                                        ".",
                                        "\u00B7",
                                        "\u2022",
                                        "\uFF0E",
                                        "Ａ",
                                        "ｘ",
                                        "３",
                                        "\uFF65",
                                        "33010219200403064",
                                        "330102200403064",
                                        "\xE2",
                                        "\x80",
                                        "\x8B",
                                        "\xFF",
                                        "\xEF\xBC",
                                        std::string(1, '\0'),
                                        "\u0301",
                                        "\U00020BB7"};
  std::string field;
  for (uint64_t n = random->Below(8); n > 0; --n) {
    field += random->OneIn(20) ? random->Bytes(random->Below(6))
                               : kPieces[random->Below(std::size(kPieces))];
  }
  return field;
}

TEST(NormalisePropertyTest, NormalisingTwiceChangesNothing) {
  Random random;
  for (int i = 0; i < 200'000; ++i) {
    const std::string field = RandomField(&random);
    const auto mask = static_cast<uint32_t>(random.Below(kAll + 1));
    const std::string once = Normalised(mask, field);
    ASSERT_EQ(Normalised(mask, once), once) << "mask " << mask;
  }
}

TEST(NormalisePropertyTest, RandomBytesAreSafe) {
  Random random;
  for (int i = 0; i < 100'000; ++i) {
    const std::string field = random.Bytes(random.Below(24));
    const auto mask = static_cast<uint32_t>(random.Below(kAll + 1));
    ASSERT_LE(Normalised(mask, field).size(), 2 * field.size() + 3);
  }
}

TEST(NormalisePropertyTest, ValidUpgradedIdsAreAlwaysValid) {
  Random random;
  for (int i = 0; i < 20'000; ++i) {
    std::string id;
    for (int d = 0; d < 15; ++d) id.push_back(static_cast<char>('0' + random.Below(10)));
    const std::string result = Normalised(kId15To18, id);
    if (result == id) continue;
    ASSERT_EQ(result.size(), 18u);
    ASSERT_EQ(result.substr(0, 8) + result.substr(8, 9), id.substr(0, 6) + "19" + id.substr(6));
    ASSERT_EQ(IdCheckDigit(result.substr(0, 17)), result[17]);
  }
}

}  // namespace
}  // namespace firstseen
