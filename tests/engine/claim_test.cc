// What claims, checks, removals and settling answer.
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

class ClaimTest : public EngineSetTest {};

TEST_F(ClaimTest, SecondClaimOfSameMemberIsDuplicate) {
  EXPECT_EQ(Claim(2023, 1), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1), Verdict::kDuplicate);
  EXPECT_EQ(Claim(2023, 2), Verdict::kFirst);
}

TEST_F(ClaimTest, AMemberCountsOnceInEachWindow) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  EXPECT_EQ(Claim(2024, 1, 7), Verdict::kFirst);
  EXPECT_EQ(Claim(2024, 1, 7), Verdict::kRepeat);
}

TEST_F(ClaimTest, ARetryByTheOwnerIsARepeatWithTheSequenceOfTheFirst) {
  const ClaimResult first = ClaimOne(*engine_, set_, 2023, 1, 7);
  EXPECT_EQ(first.verdict, Verdict::kFirst);
  EXPECT_EQ(first.sequence % 2, 0u);
  const ClaimResult duplicate = ClaimOne(*engine_, set_, 2023, 1, 8);
  EXPECT_EQ(duplicate.verdict, Verdict::kDuplicate);
  EXPECT_EQ(duplicate.sequence % 2, 1u);
  EXPECT_GT(duplicate.sequence, first.sequence);
  Reopen();
  const ClaimResult repeat = ClaimOne(*engine_, set_, 2023, 1, 7);
  EXPECT_EQ(repeat.verdict, Verdict::kRepeat);
  EXPECT_EQ(repeat.sequence, first.sequence);
  EXPECT_GT(ClaimOne(*engine_, set_, 2023, 1, 8).sequence, first.sequence);
}

TEST_F(ClaimTest, AClaimWithoutTokenOfOnesOwnMemberIsADuplicate) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 0), Verdict::kDuplicate);
  EXPECT_EQ(Claim(2023, 2, 0), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 2, 7), Verdict::kDuplicate);
}

TEST_F(ClaimTest, TheRequestsOfABatchAreDoneInOrder) {
  std::vector<ClaimRequest> requests;
  for (uint64_t n = 0; n < 300; ++n) {
    requests.push_back({2023, Print(n), n + 1});
    requests.push_back({2023, Print(n), n + 2});
    requests.push_back({2024, Print(n), n + 1});
    requests.push_back({2023, Print(n), n + 1});
  }
  std::vector<ClaimResult> results(requests.size());
  ASSERT_TRUE(engine_->Claim(set_, requests, results).ok());
  for (size_t i = 0; i < results.size(); i += 4) {
    EXPECT_EQ(results[i].verdict, Verdict::kFirst);
    EXPECT_EQ(results[i + 1].verdict, Verdict::kDuplicate);
    EXPECT_EQ(results[i + 2].verdict, Verdict::kFirst);
    EXPECT_EQ(results[i + 3].verdict, Verdict::kRepeat);
    EXPECT_LT(results[i].sequence, results[i + 1].sequence);
    EXPECT_LT(results[i].sequence, results[i + 2].sequence);
    EXPECT_EQ(results[i].sequence, results[i + 3].sequence);
  }
}

TEST_F(ClaimTest, CheckFindsWithoutAdding) {
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  EXPECT_TRUE(engine_->Stats(set_)->windows.empty());
  EXPECT_EQ(Claim(2023, 1), Verdict::kFirst);
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kDuplicate);
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2024, 1), Verdict::kFirst);
}

TEST_F(ClaimTest, ARemovedMemberCanBeClaimedAgainAndItsFormerOwnerIsForgotten) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 1), Verdict::kDuplicate);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
  Reopen();
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
}

TEST_F(ClaimTest, RemoveWithAnOwnerTakesOnlyWhatIsItsOwn) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 2), Verdict::kFirst);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 1, 8), Verdict::kFirst);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 2, 8), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 8), Verdict::kDuplicate);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 1, 7), Verdict::kDuplicate);
  EXPECT_EQ(Claim(2023, 1, 8), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
}

TEST_F(ClaimTest, SettleCountsTheOwnersUnsettledClaimsInEveryWindow) {
  Claim(2023, 1, 7);
  Claim(2023, 2, 7);
  Claim(2024, 1, 7);
  Claim(2024, 2, 8);
  const std::vector<uint64_t> owners = {7, 99, 0};
  EXPECT_EQ(engine_->Settle(set_, owners).value(), 3u);
  EXPECT_EQ(engine_->Settle(set_, owners).value(), 0u);
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kRepeat);
  Reopen();
  EXPECT_EQ(engine_->Settle(set_, owners).value(), 0u);
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kRepeat);
}

TEST_F(ClaimTest, OwnersAreForgottenAfter48HoursOfOpenTimeFromSettlingOn) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 2, 8), Verdict::kFirst);
  // However long the machine is down.
  Close();
  clock_.AdvanceWhileDown(absl::Hours(24 * 365));
  Open();
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kRepeat);
  EXPECT_EQ(engine_->Settle(set_, std::vector<uint64_t>{7}).value(), 1u);
  clock_.Advance(absl::Hours(40));
  Close();
  clock_.AdvanceWhileDown(absl::Hours(24 * 365));
  Open();
  clock_.Advance(absl::Hours(8) - absl::Milliseconds(1));
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kRepeat);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
  // Unsettled owners never expire.
  clock_.Advance(absl::Hours(24 * 365));
  EXPECT_EQ(Claim(2023, 2, 8), Verdict::kRepeat);
  Reopen();
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
  EXPECT_EQ(Claim(2023, 2, 8), Verdict::kRepeat);
}

TEST_F(ClaimTest, TheJanitorFreesExpiredOwners) {
  Claim(2023, 1, 7);
  Claim(2023, 2, 8);
  ASSERT_EQ(engine_->Settle(set_, std::vector<uint64_t>{7}).value(), 1u);
  clock_.Advance(absl::Hours(49));
  for (int i = 0; i < 600 && engine_->Stats(set_)->windows[0].owners != 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(engine_->Stats(set_)->windows[0].owners, 1u);
}

TEST_F(ClaimTest, TheYearTurnsWithoutHoles) {
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kFirst);
  ASSERT_TRUE(engine_->Drop(set_, 2023).ok());
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kClosed);
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kClosed);
  EXPECT_EQ(RemoveVerdict(*engine_, set_, 2023, 1), Verdict::kClosed);
  Reopen();
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kClosed);
  ASSERT_TRUE(engine_->Drop(set_, 2023).ok());  // again: nothing to do
  ASSERT_TRUE(engine_->Reopen(set_, 2023).ok());
  EXPECT_EQ(CheckVerdict(*engine_, set_, 2023, 1), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 8), Verdict::kFirst);
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
  Reopen();
  EXPECT_EQ(Claim(2023, 1, 7), Verdict::kDuplicate);
  EXPECT_EQ(Claim(2023, 1, 8), Verdict::kRepeat);
}

TEST_F(ClaimTest, AWindowThatNeverWasCanBeDropped) {
  ASSERT_TRUE(engine_->Drop(set_, 2022).ok());
  EXPECT_EQ(Claim(2022, 1), Verdict::kClosed);
  ASSERT_TRUE(engine_->Reopen(set_, 2021).ok());
  EXPECT_EQ(Claim(2021, 1), Verdict::kFirst);
}

TEST_F(ClaimTest, AnImpossibleWindowIsRefusedAlone) {
  const std::vector<ClaimRequest> requests = {
      {2023, Print(1), 0}, {202312, Print(1), 0}, {0, Print(1), 0}, {2023, Print(2), 0}};
  std::vector<ClaimResult> results(requests.size());
  ASSERT_TRUE(engine_->Claim(set_, requests, results).ok());
  EXPECT_EQ(results[0].verdict, Verdict::kFirst);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results[2].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results[3].verdict, Verdict::kFirst);
  EXPECT_EQ(engine_->Drop(set_, 202312).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ClaimTest, AnUnknownSetIsNotFound) {
  const ClaimRequest request{2023, Print(1), 0};
  ClaimResult result;
  EXPECT_EQ(engine_->Claim(99, {&request, 1}, {&result, 1}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine_->FindSet("nope").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine_->Stats(99).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine_->Drop(99, 2023).code(), absl::StatusCode::kNotFound);
}

TEST_F(ClaimTest, WidthDecidesWhatIsTheSame) {
  SetOptions narrow = YearSet();
  narrow.bits = 80;
  const SetId set = CreateSet("narrow", narrow);
  Fingerprint print = Print(5);
  ClaimRequest request{2023, print, 0};
  ClaimResult result;
  ASSERT_TRUE(engine_->Claim(set, {&request, 1}, {&result, 1}).ok());
  EXPECT_EQ(result.verdict, Verdict::kFirst);
  request.fingerprint.lo ^= 1;  // beyond the 80th bit
  ASSERT_TRUE(engine_->Claim(set, {&request, 1}, {&result, 1}).ok());
  EXPECT_EQ(result.verdict, Verdict::kDuplicate);
}

TEST_F(ClaimTest, OfSimultaneousClaimsExactlyOneIsFirst) {
  constexpr int kThreads = 4;
  constexpr uint64_t kMembers = 2000;
  std::vector<std::vector<ClaimResult>> results(kThreads, std::vector<ClaimResult>(kMembers));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<ClaimRequest> requests;
      for (uint64_t n = 0; n < kMembers; ++n) {
        requests.push_back(
            {static_cast<WindowId>(2020 + n % 3), Print(n), static_cast<uint64_t>(t + 1)});
      }
      for (size_t at = 0; at < kMembers; at += 100) {
        ASSERT_TRUE(engine_
                        ->Claim(set_, std::span(requests).subspan(at, 100),
                                std::span(results[t]).subspan(at, 100))
                        .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t n = 0; n < kMembers; ++n) {
    uint64_t first_sequence = 0;
    int firsts = 0;
    for (int t = 0; t < kThreads; ++t) {
      if (results[t][n].verdict != Verdict::kFirst) continue;
      ++firsts;
      first_sequence = results[t][n].sequence;
    }
    EXPECT_EQ(firsts, 1);
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_GE(results[t][n].sequence, first_sequence);
    }
  }
}

}  // namespace
}  // namespace firstseen
