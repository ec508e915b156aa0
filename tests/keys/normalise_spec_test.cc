#include "keys/normalise_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kNameAndId = {"name", "id_no"};

std::string Parsed(std::string_view spec, const std::vector<std::string>& names = kNameAndId) {
  const auto fields = ParseNormaliseSpec(spec, names);
  return fields.ok() ? FormatNormaliseSpec(*fields) : std::string(Message(fields.status()));
}

TEST(NormaliseSpecTest, PlainSwitchesGoToTheFieldsTheyMakeSenseFor) {
  EXPECT_EQ(Parsed("trim,width,x-check-digit,id-15-to-18,name-dot,zero-width"),
            "name:trim,width,name-dot,zero-width;"
            "id_no:trim,width,x-check-digit,id-15-to-18,zero-width");
  EXPECT_EQ(Parsed(" trim , name-dot "), "name:trim,name-dot;id_no:trim");
  EXPECT_EQ(Parsed("opaque"), "name:opaque;id_no:opaque");
}

TEST(NormaliseSpecTest, FieldNamesTellIdsAndNames) {
  for (const std::string id :
       {"id_no", "ID", "idno", "Id-No", "payer_id_no", "idCard", "id_card_no", "cert_no", "certNo",
        "身份证号", "holder.identity_no"}) {
    EXPECT_EQ(Parsed("id-15-to-18", {"x", id}), "x:opaque;" + id + ":id-15-to-18");
  }
  for (const std::string name : {"name", "customer_name", "Full Name", "realName", "姓名", "xm"}) {
    EXPECT_EQ(Parsed("name-dot", {"x", name}), "x:opaque;" + name + ":name-dot");
  }
}

TEST(NormaliseSpecTest, ASwitchThatFindsNoFieldIsAnErrorThatShowsTheOtherForm) {
  for (const std::string field : {"user_id", "bid_no", "order_no", "phone", "idiom", "surnamed"}) {
    EXPECT_THAT(Parsed("id-15-to-18", {field}), HasSubstr("'" + field + ":trim'"));
    EXPECT_THAT(Parsed("name-dot", {field}), HasSubstr("persons' names"));
  }
}

TEST(NormaliseSpecTest, FieldsCanBeNamed) {
  EXPECT_EQ(Parsed("id_no:width,trim;name:opaque"), "name:opaque;id_no:trim,width");
  EXPECT_EQ(Parsed("name:id-15-to-18; id_no: trim ;"), "name:id-15-to-18;id_no:trim");
}

TEST(NormaliseSpecTest, WhatItFormatsItReadsBack) {
  for (uint32_t a = 0; a < 64; ++a) {
    const std::vector<FieldOptions> fields = {{"name", a}, {"id_no", 63 - a}};
    const auto parsed = ParseNormaliseSpec(FormatNormaliseSpec(fields), kNameAndId);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, fields);
  }
}

TEST(NormaliseSpecTest, MistakesAreNamed) {
  EXPECT_THAT(Parsed("trimm"), HasSubstr("unknown normalisation 'trimm'; there are trim, width, "
                                         "x-check-digit, id-15-to-18, name-dot, zero-width"));
  EXPECT_THAT(Parsed(""), HasSubstr("unknown normalisation ''"));
  EXPECT_THAT(Parsed("trim,"), HasSubstr("unknown normalisation ''"));
  EXPECT_THAT(Parsed("trim,opaque"), HasSubstr("must stand alone"));
  EXPECT_THAT(Parsed("name:trim,opaque;id_no:trim"), HasSubstr("must stand alone"));
  EXPECT_THAT(Parsed("name:trim"), HasSubstr("add ';id_no:opaque'"));
  EXPECT_THAT(Parsed("name:trim;id_no:trim;name:width"), HasSubstr("given twice"));
  EXPECT_THAT(Parsed("name:trim;phone:trim"), HasSubstr("the fields are name, id_no"));
  EXPECT_THAT(Parsed("name:trim;width"), HasSubstr("has no field name"));
  EXPECT_THAT(Parsed("name:;id_no:trim"), HasSubstr("unknown normalisation ''"));
}

}  // namespace
}  // namespace firstseen
