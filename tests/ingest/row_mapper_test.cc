#include "ingest/row_mapper.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "keys/member.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SetOptions People() {
  SetOptions set;
  set.window = WindowKind::kYear;
  set.fields = {{"name", kTrim}, {"id_no", kTrim}};
  return set;
}

MappingOptions Columns(std::vector<std::string> columns) {
  MappingOptions options;
  options.format.delimiter = '|';
  options.columns = std::move(columns);
  return options;
}

struct Mapped {
  RowKind kind = RowKind::kBlank;
  std::vector<std::string> fields;
  WindowId window = 0;
  std::string token;
  RejectReason reason;
};

class RowMapperTest : public testing::Test {
 protected:
  Mapped Map(std::string_view text) {
    auto mapper = RowMapper::Create(set_, options_, file_);
    EXPECT_TRUE(mapper.ok()) << mapper.status();
    const Line line = {.text = text, .raw = text};
    std::vector<std::string_view> fields(mapper->field_count());
    std::string_view token;
    Mapped result;
    result.kind = mapper->Map(line, fields.data(), &result.window, &token, &result.reason);
    if (result.kind == RowKind::kRow) result.fields.assign(fields.begin(), fields.end());
    result.token = token;
    return result;
  }
  // The field and the reason of a rejected row.
  std::string Rejected(std::string_view text) {
    const Mapped mapped = Map(text);
    EXPECT_EQ(mapped.kind, RowKind::kRejected);
    EXPECT_FALSE(mapped.reason.remedy.empty());
    return mapped.reason.field + ": " + mapped.reason.reason;
  }
  absl::Status CreateStatus() { return RowMapper::Create(set_, options_, file_).status(); }

  SetOptions set_ = People();
  MappingOptions options_ = Columns({"name", "id_no"});
  InputFile file_ = {.path = "000000_0"};
};

TEST_F(RowMapperTest, FieldsAreFoundByNameAndOtherColumnsIgnored) {
  options_ = Columns({"extra", "id_no", "name", "ds", "biz_seq_no"});
  options_.time_column = "ds";
  options_.token_column = "biz_seq_no";
  const Mapped row = Map("\\N|123|Zhang|2023-12-31|T1");
  ASSERT_EQ(row.kind, RowKind::kRow);
  EXPECT_THAT(row.fields, ElementsAre("Zhang", "123"));
  EXPECT_EQ(row.window, 2023);
  EXPECT_EQ(row.token, "T1");
}

TEST_F(RowMapperTest, TheTimeDecidesInTheSetsZone) {
  options_ = Columns({"name", "id_no", "time"});
  options_.time_column = "time";
  EXPECT_EQ(Map("a|1|2023-12-31T23:59:59.999+08:00").window, 2023);
  EXPECT_EQ(Map("a|1|2024-01-01T00:00:00+08:00").window, 2024);
  EXPECT_EQ(Map("a|1|20240101").window, 2024);
  EXPECT_EQ(Map("a|1|1704038399999").window, 2023);
  EXPECT_EQ(Map("a|1|1704038400000").window, 2024);
}

TEST_F(RowMapperTest, EqualTimesInARowKeepTheirWindow) {
  options_ = Columns({"name", "id_no", "time"});
  options_.time_column = "time";
  auto mapper = RowMapper::Create(set_, options_, file_);
  std::string_view fields[2];
  std::string_view token;
  RejectReason reason;
  std::vector<WindowId> windows;
  for (const std::string_view text :
       {"a|1|20230101", "b|1|20230101", "c|1|", "d|1|\\N", "e|1|20240101", "f|1|20230101"}) {
    WindowId window = -1;
    mapper->Map({.text = text, .raw = text}, fields, &window, &token, &reason);
    windows.push_back(window);
  }
  EXPECT_THAT(windows, ElementsAre(2023, 2023, -1, -1, 2024, 2023));
}

TEST_F(RowMapperTest, AFolderSuppliesItsColumn) {
  options_.time_column = "ds";
  file_.partition = {{"ds", "2022-05-01"}, {"ds", "2023-05-01"}};
  EXPECT_EQ(Map("a|1").window, 2023);
  file_.partition = {{.column = "ds", .value = "x", .null = true}};
  EXPECT_EQ(Rejected("a|1"), "ds: the value is null");
  file_.partition = {{"ds", "yesterday"}};
  EXPECT_THAT(Rejected("a|1"), HasSubstr("ds: not a time"));
}

TEST_F(RowMapperTest, OddRowsAreRejectedWithTheirReason) {
  options_.window_of = 2023;
  EXPECT_EQ(Map("").kind, RowKind::kBlank);
  EXPECT_EQ(Map("  ").kind, RowKind::kBlank);
  EXPECT_EQ(Rejected("only one"), ": the row has 1 field instead of 2");
  EXPECT_EQ(Rejected("a|b|c"), ": the row has 3 fields instead of 2");
  EXPECT_EQ(Rejected("a|\\N"), "id_no: the value is null");
  EXPECT_EQ(Rejected("|1"), "name: the value is empty");
  EXPECT_EQ(Rejected(" |\xe3\x80\x80"), "name: the value is empty");
  EXPECT_EQ(Rejected("a|\xe3\x80\x80"), "id_no: the value is empty");
  EXPECT_EQ(Rejected("\xd5\xc5|1"), "name: the value is not valid UTF-8");
  EXPECT_EQ(Rejected("a|" + std::string(MemberEncoder::kFieldBytesMax + 1, '1')),
            "id_no: the value has more than 65536 bytes");
  EXPECT_EQ(Rejected("a|"), "id_no: the value is empty");
  EXPECT_EQ(Map("\xe5\xbc\xa0|1").kind, RowKind::kRow);
}

TEST_F(RowMapperTest, OpaqueFieldsMayHoldAnyBytes) {
  set_.fields[0].normalise = kOpaque;
  options_.window_of = 2023;
  const Mapped row = Map("\xd5\xc5\xff|1");
  ASSERT_EQ(row.kind, RowKind::kRow);
  EXPECT_EQ(row.fields[0], "\xd5\xc5\xff");
}

TEST_F(RowMapperTest, WhatNoSetTakesIsRejectedHereForTheSameReason) {
  const MemberEncoder encoder(set_.fields, MemberEncoding::kFields);
  std::string member;
  const std::string longest(MemberEncoder::kFieldBytesMax, 'x');
  options_.window_of = 2023;
  for (const std::string& name :
       {std::string(), std::string("a"), std::string(" \t"), std::string("\xe4\xb8\x80"),
        std::string("\xe3\x80\x80"), std::string("\x7f"), longest, longest + "x"}) {
    const std::string_view fields[] = {name, ""};
    const bool taken = Map(name + "|").kind == RowKind::kRow;
    EXPECT_EQ(encoder.Encode(fields, &member).ok(), taken) << name.size();
  }
}

TEST_F(RowMapperTest, ALineThatIsTooLongIsRejected) {
  options_.window_of = 2023;
  auto mapper = RowMapper::Create(set_, options_, file_);
  std::string_view fields[2];
  std::string_view token;
  WindowId window;
  RejectReason reason;
  const Line line = {.text = "a|1", .raw = "a|1", .too_long = true};
  EXPECT_EQ(mapper->Map(line, fields, &window, &token, &reason), RowKind::kRejected);
}

TEST_F(RowMapperTest, AHeaderIsRejectedWhereItCanBeOne) {
  options_.window_of = 2023;
  auto mapper = RowMapper::Create(set_, options_, file_);
  std::string_view fields[2];
  std::string_view token;
  WindowId window;
  RejectReason reason;
  const auto map = [&](std::string_view text, uint64_t number) {
    return mapper->Map({.text = text, .raw = text, .number = number}, fields, &window, &token,
                       &reason);
  };
  EXPECT_EQ(map("name|id_no", 1), RowKind::kRejected);
  EXPECT_EQ(reason.reason, "the line repeats the names of the columns");
  EXPECT_EQ(map("name|id_no", 2), RowKind::kRow);
  EXPECT_EQ(map("name|1", 1), RowKind::kRow);
}

TEST_F(RowMapperTest, AnEmptyOrNullTokenIsRejected) {
  options_ = Columns({"name", "id_no", "serial"});
  options_.window_of = 2023;
  options_.token_column = "serial";
  EXPECT_EQ(Rejected("a|1|"), "serial: the token is empty");
  EXPECT_EQ(Rejected("a|1|\\N"), "serial: the value is null");
}

TEST_F(RowMapperTest, OtherWindowsThanTheAcceptedAreRejected) {
  options_ = Columns({"name", "id_no", "ds"});
  options_.time_column = "ds";
  options_.accept_windows = {2024, 2023};
  EXPECT_EQ(Map("a|1|20230101").kind, RowKind::kRow);
  EXPECT_EQ(Map("a|1|20240101").kind, RowKind::kRow);
  EXPECT_EQ(Rejected("a|1|20220101"), "ds: window 2022 is not among the accepted ones");
}

TEST_F(RowMapperTest, AMappingThatCannotWorkIsRefused) {
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("the set has windows"));
  options_.window_of = 2023;
  EXPECT_TRUE(CreateStatus().ok());
  options_.token_column = "serial";
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("column serial is needed"));
  options_ = Columns({"name"});
  options_.window_of = 2023;
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("column id_no is needed"));
  options_ = Columns({"name", "id_no", "name"});
  options_.window_of = 2023;
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("twice"));
  options_ = Columns({"name", "id_no", "ds"});
  options_.time_column = "ds";
  file_.partition = {{"ds", "2023-01-01"}};
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("as well"));
  options_.window_of = 2023;
  EXPECT_THAT(std::string(Message(CreateStatus())), HasSubstr("not both"));
  options_ = Columns({});
  EXPECT_FALSE(CreateStatus().ok());
  set_.window = WindowKind::kNone;
  options_ = Columns({"name", "id_no"});
  EXPECT_TRUE(CreateStatus().ok());
}

}  // namespace
}  // namespace firstseen
