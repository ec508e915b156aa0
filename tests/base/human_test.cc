#include "base/human.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/progress.h"
#include "base/status.h"

namespace firstseen {
namespace {

TEST(FormatBytesTest, UsesBinaryUnitsAndNeverRoundsUpAcrossThem) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1023 KiB");
  EXPECT_EQ(FormatBytes(13'207'024'436), "12.3 GiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(FormatCountTest, GroupsByThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1 000");
  EXPECT_EQ(FormatCount(1234567), "1 234 567");
}

TEST(FormatSecondsTest, ShowsTwoUnits) {
  EXPECT_EQ(FormatSeconds(0.44), "0.4 s");
  EXPECT_EQ(FormatSeconds(9.97), "10 s");
  EXPECT_EQ(FormatSeconds(59.7), "1 min 00 s");
  EXPECT_EQ(FormatSeconds(184), "3 min 04 s");
  EXPECT_EQ(FormatSeconds(7500), "2 h 05 min");
  EXPECT_EQ(FormatSeconds(86400 * 3 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(FormatSeconds(-1), "?");
  EXPECT_EQ(FormatSeconds(std::numeric_limits<double>::infinity()), "?");
}

TEST(ParseBytesTest, TakesNumbersWithAndWithoutUnits) {
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("18446744073709551615").value(), ~uint64_t{0});
  EXPECT_EQ(ParseBytes("7B").value(), 7u);
  EXPECT_EQ(ParseBytes("64M").value(), 64u << 20);
  EXPECT_EQ(ParseBytes("10GiB").value(), 10ull << 30);
  EXPECT_EQ(ParseBytes("10 GB").value(), 10ull << 30);
  EXPECT_EQ(ParseBytes("1.5g").value(), 3ull << 29);
  EXPECT_EQ(ParseBytes("0").value(), 0u);
}

TEST(ParseBytesTest, RefusesTheRest) {
  for (const char* text : {"", "x", "-1", "1.5", "10 XB", "10GiBs", "GiB", "1e3", "99999999T",
                           "18446744073709551616", "nan", "inf", " 1", "1,5G"}) {
    EXPECT_EQ(ParseBytes(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ProgressLineTest, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("importing", "rows", 25, 100, 1'000'000, 10, 200),
            "importing [======>                 ]  25%  1 000 000 rows  100 000 rows/s  30 s left");
  EXPECT_EQ(ProgressLine("importing", "rows", 100, 100, 10, 1, 200),
            "importing [========================] 100%  10 rows  10 rows/s  0.0 s left");
}

TEST(ProgressLineTest, UnknownTotalHasNoBarAndNoTimeLeft) {
  EXPECT_EQ(ProgressLine("reading", "rows", 5, 0, 100, 10, 200), "reading  100 rows  10 rows/s");
}

TEST(ProgressLineTest, NothingDoneYetPromisesNoTime) {
  EXPECT_EQ(ProgressLine("reading", "rows", 0, 100, 0, 0, 200),
            "reading [>                       ]   0%  0 rows  0 rows/s");
}

TEST(ProgressLineTest, FitsTheTerminal) {
  EXPECT_EQ(ProgressLine("importing", "rows", 25, 100, 1'000'000, 10, 20).size(), 20u);
}

TEST(ProgressTest, PrintsNothingWhenNotShown) {
  testing::internal::CaptureStderr();
  {
    Progress progress({.label = "importing", .unit = "rows", .total = 10});
    progress.Update(5, 5);
    progress.Clear();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Every call finds a second gone.
class SteppingClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch(); }
  int64_t MonotonicNanos() const override { return nanos_ += 1'000'000'000; }

 private:
  mutable int64_t nanos_ = 0;
};

TEST(ProgressTest, DrawsOverItselfAndLeavesAnEmptyLine) {
  const SteppingClock clock;
  testing::internal::CaptureStderr();
  {
    Progress progress({.label = "a", .unit = "rows", .total = 0, .shown = true, .clock = &clock});
    progress.Update(5, 5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\ra  5 rows  5 rows/s\r" + std::string(19, ' ') + "\r");
}

}  // namespace
}  // namespace firstseen
