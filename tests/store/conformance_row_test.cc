#include <gmock/gmock.h>

#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "keys/normalise.h"
#include "store/conformance.h"
#include "support/random.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// ---- Rows

TEST_P(StoreConformanceTest, ABadRowIsRefusedAloneAndWithoutItsContent) {
  Create("kyc", YearOfNamesAndIds());
  const std::string secret = "很长的名字";
  std::string long_field;
  while (long_field.size() <= 64 << 10) long_field += secret;
  const auto results = Claim({In(2023, "张三", kId, "t1"),
                              {{secret}, "", 2023, "t2"},
                              {{secret, kId, secret}, "", 2023, "t3"},
                              In(2023, secret, long_field, "t4"),
                              In(2023, "\u3000", " \uFEFF", "t5"),
                              In(2023, secret, kOtherId, long_field),
                              In(2023, "李四", kId, "t7")});
  EXPECT_EQ(results.front().verdict, kFirst);
  EXPECT_EQ(results.back().verdict, kFirst);
  const char* const reasons[] = {
      "", "has 1 fields", "has 3 fields", "field id_no is", "field name is empty", "the token is",
      ""};
  for (int i = 0; i < 7; ++i) {
    const std::string message(Message(results[i].status));
    EXPECT_EQ(absl::IsInvalidArgument(results[i].status), i >= 1 && i <= 5) << results[i].status;
    EXPECT_THAT(message, HasSubstr(reasons[i]));
    EXPECT_THAT(message, Not(HasSubstr(secret)));
    EXPECT_THAT(message, Not(HasSubstr(kOtherId)));
  }
}

TEST_P(StoreConformanceTest, DifferentSpellingsOfOnePersonMeet) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(ClaimOne(In(2023, "张三", "33010219200403064X", "t1")).verdict, kFirst);
  for (const char* id : {"33010219200403064x", "330102200403064", " 33010219200403064X\u3000",
                         "３３０１０２１９２００４０３０６４Ｘ", "33010219200403064ｘ",
                         "330102\u200B19200403064X", "３３０１０２２００４０３０６４"}) {
    EXPECT_EQ(ClaimOne(In(2023, "张三", id, "t2")).verdict, kDuplicate) << id;
  }
  EXPECT_EQ(ClaimOne(In(2023, "\uFEFF张三 ", kId, "t2")).verdict, kDuplicate);
  EXPECT_EQ(ClaimOne(In(2023, "阿卜杜拉\u00B7买买提", kId, "t3")).verdict, kFirst);
  for (const char* name : {"阿卜杜拉.买买提", "阿卜杜拉\u2022买买提", "阿卜杜拉\u30FB买买提",
                           "阿卜杜拉\uFF0E买买提"}) {
    EXPECT_EQ(ClaimOne(In(2023, name, kId, "t4")).verdict, kDuplicate) << name;
  }
}

TEST_P(StoreConformanceTest, OpaqueFieldsAreComparedByteForByte) {
  SetOptions options = YearOfNamesAndIds();
  for (FieldOptions& field : options.fields) field.normalise = kOpaque;
  Create("kyc", options);
  const std::string encrypted("\x00\xFF|\x80 \n", 6);
  EXPECT_THAT(Verdicts(Claim({In(2023, encrypted, "x"), In(2023, encrypted + " ", "x"),
                              In(2023, encrypted, "X"), In(2023, encrypted, "x")})),
              ElementsAre(kFirst, kFirst, kFirst, kDuplicate));
}

TEST_P(StoreConformanceTest, FieldsAreJoinedUnambiguouslyUnlessTheSetSaysConcat) {
  SetOptions options = YearOfNamesAndIds();
  Create("kyc", options);
  EXPECT_THAT(Verdicts(Claim({In(2023, "ab", "c"), In(2023, "a", "bc"), In(2023, "abc", "d")})),
              ElementsAre(kFirst, kFirst, kFirst));
  options.member_encoding = MemberEncoding::kConcat;
  Create("joined", options);
  EXPECT_THAT(Verdicts(Run(&Store::Claim, "joined",
                           {In(2023, "ab", "c"), In(2023, "a", "bc"), In(2023, "a", "b")})),
              ElementsAre(kFirst, kDuplicate, kFirst));
}

TEST_P(StoreConformanceTest, EveryWidthTellsMembersApart) {
  for (const int bits : {80, 88, 96, 112, 128}) {
    SetOptions options = YearOfNamesAndIds();
    options.bits = bits;
    const std::string set = "b" + std::to_string(bits);
    Create(set, options);
    std::vector<Row> rows;
    for (int i = 0; i < 500; ++i) rows.push_back(In(2023, "张三", std::to_string(i)));
    for (const Verdict verdict : Verdicts(Run(&Store::Claim, set, rows)))
      EXPECT_EQ(verdict, kFirst);
    for (const Verdict verdict : Verdicts(Run(&Store::Claim, set, rows))) {
      EXPECT_EQ(verdict, kDuplicate);
    }
  }
}

// ---- All of it together

// A person spelt in one of the ways that a set with every normalisation must see through.
Row Spelt(Random* random, int person, WindowId window, std::string token) {
  // Born on a day of 1960, so that the 15-digit form exists.
  const std::string area = "330102";
  const std::string rest =
      fmt::format("60{:02}{:02}{:03}", 1 + person % 12, 1 + person % 28, person);
  const std::string digits = area + "19" + rest;
  std::string id = digits + IdCheckDigit(digits);
  if (random->OneIn(4)) id = area + rest;
  if (random->OneIn(4) && id.back() == 'X') id.back() = 'x';
  if (random->OneIn(4)) {
    std::string wide;  // U+FF01 stands for '!' (0x21)
    for (const char c : id) {
      const int code = 0xFF01 + (c - 0x21);
      wide += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
               static_cast<char>(0x80 | (code & 63))};
    }
    id = wide;
  }
  static constexpr const char* kDots[] = {"\u00B7", ".", "\u2022", "\u30FB", "\uFF0E"};
  std::string name = "阿依" + std::string(kDots[random->Below(std::size(kDots))]) + "古丽";
  static constexpr const char* kEdges[] = {"", " ", "\u3000", "\u200B", "\t"};
  name = kEdges[random->Below(std::size(kEdges))] + name;
  id += kEdges[random->Below(std::size(kEdges))];
  return In(window, name, id, std::move(token));
}

TEST_P(StoreConformanceTest, ARandomHistoryAgreesWithASimpleModel) {
  Random random;
  Create("kyc", YearOfNamesAndIds());
  std::map<std::pair<WindowId, int>, std::string> model;  // owner's token, "" for none
  std::set<WindowId> closed;
  for (int step = 0; step < 400; ++step) {
    const int person = static_cast<int>(random.Below(40));
    const auto window = static_cast<WindowId>(2020 + random.Below(4));
    const std::string token = random.OneIn(4) ? "" : "t" + std::to_string(random.Below(5));
    const Row row = Spelt(&random, person, window, token);
    const auto owner = model.find({window, person});
    const bool there = owner != model.end();
    SCOPED_TRACE(
        fmt::format("step {}: person {}, window {}, token '{}'", step, person, window, token));
    switch (random.Below(8)) {
      case 0: {
        const bool removed = there && (token.empty() || owner->second == token);
        ASSERT_EQ(RemoveOne(row), closed.contains(window) ? kClosed
                                  : removed               ? kDuplicate
                                                          : kFirst);
        if (removed) model.erase(owner);
        break;
      }
      case 1:
        ASSERT_EQ(CheckOne(row), closed.contains(window) ? kClosed : there ? kDuplicate : kFirst);
        break;
      case 2: {
        const ImportTotals totals = Import("job", std::to_string(step), {row});
        ASSERT_EQ(totals.closed, closed.contains(window) ? 1u : 0u);
        ASSERT_EQ(totals.added, !closed.contains(window) && !there ? 1u : 0u);
        if (totals.added == 1) model[{window, person}] = token;
        break;
      }
      case 3:
        if (!random.OneIn(10)) break;
        if (closed.erase(window) == 1) {
          ASSERT_TRUE(store().Reopen("kyc", window).ok());
        } else {
          ASSERT_TRUE(store().Drop("kyc", window).ok());
          closed.insert(window);
          std::erase_if(model, [&](const auto& entry) { return entry.first.first == window; });
        }
        break;
      case 4:
        if (random.OneIn(10)) OpenAgain();
        if (random.OneIn(10)) {
          ASSERT_TRUE(store().Snapshot().ok());
        }
        break;
      default: {
        const Verdict verdict = ClaimOne(row).verdict;
        const bool own = there && !token.empty() && owner->second == token;
        ASSERT_EQ(verdict, closed.contains(window) ? kClosed
                           : own                   ? kRepeat
                           : there                 ? kDuplicate
                                                   : kFirst);
        if (verdict == kFirst) model[{window, person}] = token;
      }
    }
  }
}

// ---- Figures and life cycle

TEST_P(StoreConformanceTest, StatsCountMembersAndOwnersByWindow) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1"), In(2023, "李四", kId),
         In(2023, "李四", kId, "t9")});
  ASSERT_TRUE(store().Drop("kyc", 2021).ok());
  const auto stats = store().SetStats("kyc");
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->name, "kyc");
  EXPECT_EQ(stats->options, YearOfNamesAndIds());
  ASSERT_EQ(stats->windows.size(), 3u);
  EXPECT_EQ(stats->windows[0].window, 2021);
  EXPECT_TRUE(stats->windows[0].closed);
  EXPECT_EQ(stats->windows[1].window, 2022);
  EXPECT_EQ(stats->windows[1].members, 1u);
  EXPECT_EQ(stats->windows[1].owners, 1u);
  EXPECT_EQ(stats->windows[2].window, 2023);
  EXPECT_FALSE(stats->windows[2].closed);
  EXPECT_EQ(stats->windows[2].members, 2u);
  EXPECT_EQ(stats->windows[2].owners, 1u);
  EXPECT_GT(stats->windows[2].bytes, 0u);
  EXPECT_GT(stats->windows[2].owner_bytes, 0u);
  // n^2 / 2^97 for two members.
  EXPECT_DOUBLE_EQ(stats->windows[2].false_duplicate_probability, 4 / std::pow(2.0, 97));
}

TEST_P(StoreConformanceTest, SnapshotsLoseNothing) {
  Create("kyc", YearOfNamesAndIds());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ClaimOne(In(2023, "张三", std::to_string(i), "t" + std::to_string(i))).verdict,
              kFirst);
    EXPECT_TRUE(store().Snapshot().ok());
  }
  OpenAgain();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ClaimOne(In(2023, "张三", std::to_string(i), "t" + std::to_string(i))).verdict,
              kRepeat);
    EXPECT_EQ(CheckOne(In(2023, "张三", std::to_string(i))), kDuplicate);
  }
}

TEST_P(StoreConformanceTest, AClosedStoreAnswersWithErrors) {
  Create("kyc", YearOfNamesAndIds());
  ASSERT_TRUE(store().Close().ok());
  const std::string_view fields[] = {"张三", kId};
  const MemberRequest request{fields, clock_.Now(), std::nullopt, "t1"};
  MemberResult result;
  EXPECT_FALSE(store().Claim("kyc", {&request, 1}, {&result, 1}).ok());
}

}  // namespace
}  // namespace firstseen
