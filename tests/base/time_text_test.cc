#include "base/time_text.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/civil_time.h"
#include "base/status.h"

namespace firstseen {
namespace {

absl::TimeZone Zone(std::string_view name) { return LoadTimeZone(name).value(); }

// The text's time as epoch milliseconds; -1 when it is refused.
int64_t Millis(std::string_view text, std::string_view zone = "Asia/Shanghai") {
  const absl::StatusOr<absl::Time> time = ParseEventTime(text, Zone(zone));
  return time.ok() ? absl::ToUnixMillis(*time) : -1;
}

TEST(ParseEventTimeTest, Rfc3339CarriesItsOwnZone) {
  EXPECT_EQ(Millis("2023-12-31T23:59:59.999+08:00"), 1704038399999);
  EXPECT_EQ(Millis("2024-01-01T00:00:00+08:00"), 1704038400000);
  EXPECT_EQ(Millis("2023-12-31T16:00:00Z"), 1704038400000);
  EXPECT_EQ(Millis("2023-12-31t16:00:00z"), 1704038400000);
  EXPECT_EQ(Millis("2023-12-31T10:30:00-05:30", "UTC"), 1704038400000);
  EXPECT_EQ(Millis("2023-12-31T16:00:00-00:00"), 1704038400000);
}

TEST(ParseEventTimeTest, Rfc3339OutsideTheGrammarIsRefused) {
  for (const char* text :
       {"2023-12-31T23:59:59", "2023-12-31T23:59:59+0800", "2023-12-31T23:59:59+08",
        "2023-12-31T23:59:59 +08:00", "2023-12-31T23:59:59.+08:00", "2023-12-31T23:59+08:00",
        "2023-12-31T23:59:59+24:00", "2023-12-31T23:59:59+08:60", "2023-12-31T23:59:59+08:00x",
        " 2023-12-31T23:59:59+08:00", "2023-12-31T23:59:59,5+08:00", "2023-1-31T23:59:59+08:00",
        "2023-12-31X23:59:59+08:00", "2023-12-31T2a:59:59+08:00", "2023-12-31T23:59:59+8:000",
        "2023-12-31 23:59:59+08:00", "2023-12-31T24:00:00Z", "2023-12-31T23:60:00Z"}) {
    EXPECT_EQ(Millis(text), -1) << text;
  }
}

TEST(ParseEventTimeTest, FractionsAreTruncatedNeverRounded) {
  EXPECT_EQ(Millis("2023-12-31T23:59:59.9999999999999+08:00"), 1704038399999);
  EXPECT_EQ(Millis("2023-12-31 23:59:59.9999999999999"), 1704038399999);
  EXPECT_EQ(Millis("2023-12-31 23:59:59.1"), 1704038399100);
  EXPECT_EQ(Millis("2023-12-31 23:59:59."), -1);
  const absl::StatusOr<absl::Time> nanos =
      ParseEventTime("2023-12-31T15:59:59.123456789Z", Zone("UTC"));
  ASSERT_TRUE(nanos.ok());
  EXPECT_EQ(absl::ToUnixNanos(*nanos), 1704038399123456789);
}

TEST(ParseEventTimeTest, LeapSecondsStayInTheirOwnDay) {
  EXPECT_EQ(Millis("2016-12-31T23:59:60Z"), Millis("2016-12-31T23:59:59Z"));
  EXPECT_EQ(Millis("2017-01-01T07:59:60.5+08:00"), Millis("2016-12-31T23:59:59.5Z"));
  EXPECT_EQ(Millis("2016-12-31T22:59:60Z"), -1);
  EXPECT_EQ(Millis("2016-11-30T23:59:60Z"), -1);
  EXPECT_EQ(Millis("2016-12-31 23:59:60"), -1);
}

TEST(ParseEventTimeTest, LocalFormatsAreInTheSetsZone) {
  EXPECT_EQ(Millis("2024-01-01 00:00:00"), 1704038400000);
  EXPECT_EQ(Millis("2024-01-01 00:00:00", "UTC"), 1704067200000);
  EXPECT_EQ(Millis("2024-01-01"), 1704038400000);
  EXPECT_EQ(Millis("20240101"), 1704038400000);
  EXPECT_EQ(Millis("2024-01-01 00:00:00.250"), 1704038400250);
}

TEST(ParseEventTimeTest, LeapDaysExistOnlyInLeapYears) {
  EXPECT_NE(Millis("2024-02-29"), -1);
  EXPECT_NE(Millis("20000229"), -1);
  EXPECT_NE(Millis("2024-02-29T12:00:00Z"), -1);
  for (const char* text : {"2023-02-29", "20230229", "2100-02-29", "2023-02-29 00:00:00",
                           "2023-02-29T00:00:00Z", "2024-02-30", "2024-04-31"}) {
    EXPECT_EQ(Millis(text), -1) << text;
  }
}

TEST(ParseEventTimeTest, ImpossibleDatesAndClocksAreRefused) {
  for (const char* text : {"2023-13-01",
                           "2023-00-01",
                           "2023-01-00",
                           "2023-01-32",
                           "20231301",
                           "20230100",
                           "2023-12-31 24:00:00",
                           "2023-12-31 23:60:00",
                           "2023-12-31 23:59:61",
                           "1969-12-31",
                           "3000-01-01",
                           "19691231",
                           "30000101",
                           "2023/12/31",
                           "2023-12-3a",
                           "",
                           "2023",
                           "202312",
                           "2023-12-31 23:59",
                           "2023-12-31 23:59:59 ",
                           "2023-12-31  3:59:59",
                           "-023-12-31"}) {
    EXPECT_EQ(Millis(text), -1) << text;
  }
}

TEST(ParseEventTimeTest, EpochMillisecondsHaveExactlyThirteenDigits) {
  EXPECT_EQ(Millis("1704038399999"), 1704038399999);
  EXPECT_EQ(Millis("0000000000000"), 0);
  EXPECT_EQ(Millis("9999999999999"), 9999999999999);
  EXPECT_EQ(Millis("170403839999"), -1);
  EXPECT_EQ(Millis("17040383999990"), -1);
  EXPECT_EQ(Millis("1704038399"), -1);
  EXPECT_EQ(Millis("170403839999x"), -1);
  EXPECT_EQ(Millis("-170403839999"), -1);
}

TEST(ParseEventTimeTest, AgreesWithTheZoneLibraryOnEveryDay) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  for (absl::CivilDay day(1970, 1, 1); day.year() < 3000; ++day) {
    const absl::Time expected = absl::FromCivil(day, utc);
    const std::string text = absl::FormatCivilTime(day);
    const absl::StatusOr<absl::Time> local = ParseEventTime(text, utc);
    const absl::StatusOr<absl::Time> zoned = ParseEventTime(text + "T00:00:00Z", utc);
    ASSERT_TRUE(local.ok() && zoned.ok()) << text;
    ASSERT_EQ(*local, expected) << text;
    ASSERT_EQ(*zoned, expected) << text;
  }
}

TEST(ParseEventTimeTest, LocalTimeInAClockChangeGapIsTheMomentOfTheChange) {
  // New York went from 02:00 to 03:00 on 2024-03-10.
  const int64_t change = Millis("2024-03-10T07:00:00Z");
  EXPECT_EQ(Millis("2024-03-10 02:30:00", "America/New_York"), change);
  EXPECT_EQ(Millis("2024-03-10 03:00:00", "America/New_York"), change);
}

TEST(ParseEventTimeTest, LocalTimeThatHappensTwiceIsTheFirstOne) {
  // New York went from 02:00 back to 01:00 on 2024-11-03.
  EXPECT_EQ(Millis("2024-11-03 01:30:00", "America/New_York"), Millis("2024-11-03T05:30:00Z"));
}

TEST(ParseEventTimeTest, ErrorDoesNotRepeatTheText) {
  const absl::Status status = ParseEventTime("secret-text", Zone("UTC")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status).find("secret"), std::string_view::npos);
}

TEST(FormatEventTimeTest, RoundTripsWithMillisecondsAndOffset) {
  const absl::TimeZone zone = Zone("Asia/Shanghai");
  const absl::Time time = absl::FromUnixMillis(1704038399999);
  EXPECT_EQ(FormatEventTime(time, zone), "2023-12-31T23:59:59.999+08:00");
  EXPECT_EQ(FormatEventTime(time, Zone("UTC")), "2023-12-31T15:59:59.999+00:00");
  EXPECT_EQ(FormatEventTime(absl::FromUnixMillis(0), Zone("UTC")), "1970-01-01T00:00:00.000+00:00");
  EXPECT_EQ(ParseEventTime(FormatEventTime(time, zone), zone).value(), time);
}

TEST(LoadTimeZoneTest, KnowsIanaNames) {
  for (const char* name : {"Asia/Shanghai", "UTC", "Etc/GMT-8", "America/Argentina/Buenos_Aires"}) {
    EXPECT_TRUE(LoadTimeZone(name).ok()) << name;
  }
}

TEST(LoadTimeZoneTest, RefusesUnknownNamesAndNamesThatDifferBetweenMachines) {
  for (const char* name : {"", "Asia/Shanghei", "localtime", "/etc/localtime", "../Asia/Shanghai",
                           "Asia/../UTC", "+08:00"}) {
    const absl::Status status = LoadTimeZone(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(Message(status).find("Asia/Shanghai or UTC"), std::string_view::npos) << name;
  }
}

}  // namespace
}  // namespace firstseen
