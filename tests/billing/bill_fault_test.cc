// Stops the run at every single step, as a crash would, and runs again: the bill must be that of a
// run that was never stopped.
#include <gtest/gtest.h>

#include <algorithm>

#include "billing/billing_place.h"

namespace firstseen {
namespace {

// Two passes with everything in them that takes a step of its own.
class Story {
 public:
  explicit Story(BillingPlace* place) : place_(place) {}

  static constexpr int kPasses = 3;

  void Deliver(int pass) {
    if (pass == 0) {
      place_->Deliver("1.txt",
                      {Row("a1", "2023-12-31 23:56:00", "a"), Row("a2", "2023-12-31 23:57:00", "a"),
                       Row("b1", "2023-12-31 23:57:00", "b"),
                       Row("b1", "2023-12-31 23:58:00", "b", "loan", "REVERSED"),
                       Row("b2", "2023-12-31 23:58:00", "b"), "bad row",
                       Row("a3", "2024-01-01 00:00:00", "a")});
      place_->Deliver("2.txt", {Row("b2", "2023-12-31 23:58:00", "b", "loan", "REVERSED"),
                                Row("b3", "2023-12-31 23:59:00", "b", "wallet"),
                                Row("f1", "2023-12-31 23:59:00", "a", "free"),
                                Row("a1", "2023-12-31 23:56:00", "a")});
      place_->Write("inbox/3.txt", "unreadable\n");
    } else if (pass == 1) {
      place_->Deliver("1.txt", {Row("c1", "2023-12-31 23:59:00", "c"),  // late
                                Row("a1", "2024-01-01 00:03:00", "a", "loan", "REVERSED"),
                                Row("a4", "2024-01-01 00:04:00", "a")});
    } else {
      place_->Deliver("4.txt", {Row("d1", "2024-01-20 00:01:00", "d"),
                                Row("a3", "2024-01-01 00:00:00", "a")});  // long purged
    }
  }

  absl::Status Run(int pass, BillRunOptions options = {}) {
    static constexpr const char* kNow[kPasses] = {"2024-01-01 00:01:00", "2024-01-01 00:07:00",
                                                  "2024-01-20 00:06:00"};
    return place_->TryRun(kNow[pass], std::move(options)).status();
  }

  static std::set<std::string> Expected() { return {"a1", "b3", "f1", "a3", "c1", "d1"}; }

 private:
  BillingPlace* place_;
};

void ExpectRight(const BillingPlace& place) {
  EXPECT_EQ(place.BilledOnce(), Story::Expected());
  EXPECT_EQ(place.Billed(BillKind::kAdjustments), (std::map<std::string, int>{{"a1", 1}}));
  const VerifyReport report = place.Verify();
  EXPECT_TRUE(report.ok()) << DescribeFindings(report);
  EXPECT_EQ(report.billed, 6u);
  // Nothing half done is left.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place.path())) {
    EXPECT_FALSE(entry.is_regular_file() && entry.path().extension() == ".tmp") << entry.path();
  }
  EXPECT_TRUE(std::filesystem::is_empty(place.path() + "/inbox"));
  EXPECT_TRUE(place.Exists("failed/3.txt"));
}

PlaceOptions Settings(int chunk_rows = 3) {
  return {.settings = {"bills.empty_files=false", fmt::format("inbox.chunk_rows={}", chunk_rows)}};
}

// Runs the story and stops `pass` at its step `stop_at`. Returns false when it has fewer steps.
bool RunStoppedAt(int pass, int stop_at, int chunk_rows) {
  BillingPlace place(Settings(chunk_rows));
  Story story(&place);
  bool stopped = false;
  for (int i = 0; i < Story::kPasses; ++i) {
    story.Deliver(i);
    if (i == pass) {
      int steps = 0;
      std::string last;
      BillRunOptions options;
      options.step_hook = [&](std::string_view step) {
        if (steps++ < stop_at) return absl::OkStatus();
        last = step;
        return Unavailable("stopped at step {}", step);
      };
      stopped = !story.Run(i, options).ok();
      SCOPED_TRACE(fmt::format("pass {} stopped at {} ({})", pass, stop_at, last));
      if (!stopped) return false;
    }
    const absl::Status status = story.Run(i);
    EXPECT_TRUE(status.ok()) << status;
  }
  SCOPED_TRACE(fmt::format("pass {} stopped at {}", pass, stop_at));
  ExpectRight(place);
  return true;
}

TEST(BillFaultTest, AnUninterruptedStoryEndsRight) {
  BillingPlace place(Settings());
  Story story(&place);
  for (int i = 0; i < Story::kPasses; ++i) {
    story.Deliver(i);
    ASSERT_TRUE(story.Run(i).ok());
  }
  ExpectRight(place);
}

// A sample of the steps; BillFaultLong stops at every one.
TEST(BillFaultTest, StoppedAtAnyStepTheNextRunEndsRight) {
  for (int pass = 0; pass < Story::kPasses; ++pass) {
    for (int step = pass; RunStoppedAt(pass, step, step % 2 == 0 ? 3 : 1'000); step += 9) {
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(BillFaultLong, StoppedAtEveryStepTheNextRunEndsRight) {
  for (const int chunk_rows : {3, 1'000}) {
    for (int pass = 0; pass < Story::kPasses; ++pass) {
      int step = 0;
      while (RunStoppedAt(pass, step, chunk_rows)) {
        if (testing::Test::HasFailure()) return;
        ++step;
      }
      EXPECT_GT(step, 10);
    }
  }
}

// Between a release and the ledger's record another transaction of the member becomes its owner.
TEST(BillFaultTest, StoppedBetweenReleaseAndRecordItEndsRight) {
  BillingPlace place(Settings(1'000));
  Story story(&place);
  story.Deliver(0);
  BillRunOptions options;
  options.step_hook = [](std::string_view step) {
    return step == "record" ? Unavailable("stopped") : absl::OkStatus();
  };
  ASSERT_FALSE(story.Run(0, options).ok());
  for (int pass = 0; pass < Story::kPasses; ++pass) {
    if (pass > 0) story.Deliver(pass);
    ASSERT_TRUE(story.Run(pass).ok());
  }
  ExpectRight(place);
}

// The next run comes 30 days later.
TEST(BillFaultTest, StoppedInTheFirstPassAndStarted30DaysLaterItBillsTheSame) {
  for (int stop_at = 0;; stop_at += 6) {
    BillingPlace place(Settings(1'000));
    Story story(&place);
    story.Deliver(0);
    int steps = 0;
    BillRunOptions options;
    options.step_hook = [&](std::string_view) {
      return steps++ < stop_at ? absl::OkStatus() : Unavailable("stopped");
    };
    const bool stopped = !story.Run(0, options).ok();
    place.Run("2024-01-31 00:01:00");
    SCOPED_TRACE(fmt::format("stopped at {}", stop_at));
    EXPECT_EQ(place.BilledOnce(), (std::set<std::string>{"a1", "b3", "f1", "a3"}));
    EXPECT_EQ(DescribeFindings(place.Verify()), "");
    if (!stopped || testing::Test::HasFailure()) return;
  }
}

// Every run of a row of them is stopped one step later than the last.
TEST(BillFaultTest, StoppedAgainAndAgainItStillComesToItsEnd) {
  BillingPlace place(Settings());
  Story story(&place);
  for (int pass = 0; pass < Story::kPasses; ++pass) {
    story.Deliver(pass);
    for (int stop_at = 0;; stop_at += 4) {
      int steps = 0;
      BillRunOptions options;
      options.step_hook = [&](std::string_view) {
        return steps++ < stop_at ? absl::OkStatus() : Unavailable("stopped");
      };
      if (story.Run(pass, options).ok()) break;
      ASSERT_LT(stop_at, 1'000);
    }
  }
  ExpectRight(place);
}

}  // namespace
}  // namespace firstseen
