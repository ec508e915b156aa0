#include "engine/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace firstseen {
namespace {

absl::TimeZone Zone(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return time;
}

TEST(WindowTest, LastMillisecondOfTheYearAndFirstOfTheNextAreTwoWindows) {
  const absl::TimeZone zone = Zone("Asia/Shanghai");
  const absl::Time before = At("2023-12-31T23:59:59.999+08:00");
  const absl::Time after = At("2024-01-01T00:00:00+08:00");
  EXPECT_EQ(WindowOf(WindowKind::kYear, before, zone), 2023);
  EXPECT_EQ(WindowOf(WindowKind::kYear, after, zone), 2024);
  EXPECT_EQ(WindowOf(WindowKind::kMonth, before, zone), 202312);
  EXPECT_EQ(WindowOf(WindowKind::kMonth, after, zone), 202401);
  EXPECT_EQ(WindowOf(WindowKind::kDay, before, zone), 20231231);
  EXPECT_EQ(WindowOf(WindowKind::kDay, after, zone), 20240101);
  EXPECT_EQ(WindowOf(WindowKind::kNone, before, zone), WindowOf(WindowKind::kNone, after, zone));
}

TEST(WindowTest, TheZoneDecides) {
  const absl::Time time = At("2023-12-31T16:30:00Z");
  EXPECT_EQ(WindowOf(WindowKind::kYear, time, Zone("Asia/Shanghai")), 2024);
  EXPECT_EQ(WindowOf(WindowKind::kYear, time, Zone("UTC")), 2023);
  EXPECT_EQ(WindowOf(WindowKind::kDay, time, Zone("America/New_York")), 20231231);
}

TEST(WindowTest, StartAndEndEncloseExactlyTheWindow) {
  for (const char* name : {"Asia/Shanghai", "America/New_York", "UTC", "America/Sao_Paulo"}) {
    const absl::TimeZone zone = Zone(name);
    for (WindowKind kind : {WindowKind::kYear, WindowKind::kMonth, WindowKind::kDay}) {
      absl::Time time = At("2018-01-01T00:00:00Z");
      for (int i = 0; i < 400; ++i, time += absl::Hours(31)) {
        const WindowId window = WindowOf(kind, time, zone);
        const absl::Time start = WindowStart(kind, window, zone);
        const absl::Time end = WindowEnd(kind, window, zone);
        EXPECT_LE(start, time);
        EXPECT_LT(time, end);
        EXPECT_EQ(WindowOf(kind, start, zone), window);
        EXPECT_NE(WindowOf(kind, start - absl::Milliseconds(1), zone), window);
        EXPECT_EQ(WindowOf(kind, end - absl::Milliseconds(1), zone), window);
        EXPECT_NE(WindowOf(kind, end, zone), window);
      }
    }
  }
  EXPECT_EQ(WindowStart(WindowKind::kNone, 0, Zone("UTC")), absl::InfinitePast());
  EXPECT_EQ(WindowEnd(WindowKind::kNone, 0, Zone("UTC")), absl::InfiniteFuture());
}

TEST(WindowTest, NamesGoThereAndBack) {
  EXPECT_EQ(FormatWindow(WindowKind::kNone, 0), "all");
  EXPECT_EQ(FormatWindow(WindowKind::kYear, 2023), "2023");
  EXPECT_EQ(FormatWindow(WindowKind::kMonth, 202302), "2023-02");
  EXPECT_EQ(FormatWindow(WindowKind::kDay, 20230201), "2023-02-01");
  EXPECT_EQ(ParseWindow(WindowKind::kNone, "all").value(), 0);
  EXPECT_EQ(ParseWindow(WindowKind::kYear, "2023").value(), 2023);
  EXPECT_EQ(ParseWindow(WindowKind::kMonth, "2023-02").value(), 202302);
  EXPECT_EQ(ParseWindow(WindowKind::kMonth, "202302").value(), 202302);
  EXPECT_EQ(ParseWindow(WindowKind::kDay, "2024-02-29").value(), 20240229);
  EXPECT_EQ(ParseWindow(WindowKind::kDay, "20240229").value(), 20240229);
}

TEST(WindowTest, AnythingElseIsRefused) {
  const std::pair<WindowKind, const char*> cases[] = {
      {WindowKind::kNone, ""},           {WindowKind::kNone, "2023"},
      {WindowKind::kYear, ""},           {WindowKind::kYear, "all"},
      {WindowKind::kYear, "23"},         {WindowKind::kYear, "20231"},
      {WindowKind::kYear, "+202"},       {WindowKind::kYear, " 2023"},
      {WindowKind::kYear, "2203x"},      {WindowKind::kYear, "1969"},
      {WindowKind::kYear, "3000"},       {WindowKind::kMonth, "2023"},
      {WindowKind::kMonth, "2023-13"},   {WindowKind::kMonth, "2023-00"},
      {WindowKind::kMonth, "2023-1"},    {WindowKind::kMonth, "20-2312"},
      {WindowKind::kDay, "2023-02-29"},  {WindowKind::kDay, "2023-02-30"},
      {WindowKind::kDay, "2023-0228"},   {WindowKind::kDay, "202302-28"},
      {WindowKind::kDay, "2023-02-28-"}, {WindowKind::kDay, "2023-02-28T"},
      {WindowKind::kDay, "-2023-02-28"}, {WindowKind::kDay, "2023--02-28"},
  };
  for (const auto& [kind, text] : cases) {
    EXPECT_EQ(ParseWindow(kind, text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace firstseen
