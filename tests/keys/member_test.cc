#include "keys/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/status.h"
#include "support/random.h"

namespace firstseen {
namespace {

using testing::HasSubstr;
using Fields = std::vector<std::string_view>;

const std::vector<FieldOptions> kTwo = {{"name", kTrim}, {"id_no", kId15To18}};

std::string Encoded(const MemberEncoder& encoder, const Fields& fields) {
  std::string member = "something older and longer than what comes";
  const absl::Status status = encoder.Encode(fields, &member);
  EXPECT_TRUE(status.ok()) << status;
  return member;
}

TEST(MemberEncoderTest, FieldsArePrecededByTheirLengthAfterNormalisation) {
  const MemberEncoder encoder(kTwo, MemberEncoding::kFields);
  EXPECT_EQ(Encoded(encoder, {" 张三 ", "330102200403064"}), std::string("\6\0\0\0张三\22\0\0\0"
                                                                         "33010219200403064X",
                                                                         4 + 6 + 4 + 18));
  EXPECT_EQ(Encoded(encoder, {"y", "x"}), std::string("\1\0\0\0y\1\0\0\0x", 10));
}

TEST(MemberEncoderTest, FieldsMeetOnlyWhenEachIsEqual) {
  const MemberEncoder encoder(kTwo, MemberEncoding::kFields);
  EXPECT_NE(Encoded(encoder, {"ab", "c"}), Encoded(encoder, {"a", "bc"}));
  EXPECT_EQ(Encoded(encoder, {"ab ", "c"}), Encoded(encoder, {"ab", "c"}));
}

TEST(MemberEncoderTest, ConcatJoinsWithoutLengths) {
  const MemberEncoder encoder(kTwo, MemberEncoding::kConcat);
  EXPECT_EQ(Encoded(encoder, {" ab ", "c"}), "abc");
  EXPECT_EQ(Encoded(encoder, {"a", "bc"}), "abc");
}

TEST(MemberEncoderTest, DifferentFieldsNeverGiveOneMember) {
  Random random;
  const MemberEncoder encoder({{"a", kOpaque}, {"b", kOpaque}, {"c", kOpaque}},
                              MemberEncoding::kFields);
  std::map<std::string, std::vector<std::string>> seen;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::string> fields(3);
    for (std::string& field : fields) {
      for (uint64_t n = random.Below(6); n > 0; --n) {
        field.push_back(static_cast<char>(random.Below(3)));
      }
    }
    if (std::ranges::count(fields, "") > 0) continue;
    const auto [at, added] =
        seen.emplace(Encoded(encoder, {fields[0], fields[1], fields[2]}), fields);
    ASSERT_EQ(at->second, fields);
  }
}

TEST(MemberEncoderTest, BadRowsAreRefusedByFieldNameWithoutTheirContent) {
  const MemberEncoder encoder(kTwo, MemberEncoding::kFields);
  std::string member;
  const std::string secret = "secret";
  absl::Status status = encoder.Encode(Fields{secret}, &member);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status), "the row has 1 fields for the member, the set has 2 (name, id_no)");
  status = encoder.Encode(Fields{secret, secret, secret}, &member);
  EXPECT_TRUE(absl::IsInvalidArgument(status));

  const std::string most(MemberEncoder::kFieldBytesMax, 's');
  EXPECT_TRUE(encoder.Encode(Fields{"a", most}, &member).ok());
  const std::string more = most + "s";
  status = encoder.Encode(Fields{"a", more}, &member);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status), "field id_no is 65537 bytes long; the limit is 65536");
}

TEST(MemberEncoderTest, ARowWithAnEmptyFieldIsNoMember) {
  for (const auto encoding : {MemberEncoding::kFields, MemberEncoding::kConcat}) {
    const MemberEncoder encoder(kTwo, encoding);
    std::string member;
    EXPECT_TRUE(absl::IsInvalidArgument(encoder.Encode(Fields{"", ""}, &member)));
    EXPECT_TRUE(absl::IsInvalidArgument(encoder.Encode(Fields{" \u3000", ""}, &member)));
    const absl::Status status = encoder.Encode(Fields{"\u3000", "1"}, &member);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(Message(status),
              "field name is empty once normalised; a member needs all its fields");
    EXPECT_TRUE(absl::IsInvalidArgument(encoder.Encode(Fields{"a", ""}, &member)));
    EXPECT_TRUE(encoder.Encode(Fields{"a", "1"}, &member).ok());
  }
}

}  // namespace
}  // namespace firstseen
