#include "store/conformance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/time_text.h"

namespace firstseen {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

SetOptions YearOfNamesAndIds() {
  SetOptions options;
  options.window = WindowKind::kYear;
  options.fields = {
      {"name", kTrim | kWidth | kNameDot | kZeroWidth},
      {"id_no", kTrim | kWidth | kXCheckDigit | kId15To18 | kZeroWidth},
  };
  return options;
}

void StoreConformanceTest::SetUp() {
  home_ = GetParam().make_home(&clock_);
  auto store = home_->Open();
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
}

void StoreConformanceTest::OpenAgain() {
  EXPECT_TRUE(store_->Close().ok());
  store_.reset();
  auto store = home_->Open();
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
}

void StoreConformanceTest::Create(std::string_view name, const SetOptions& options) {
  const absl::Status status = store_->CreateSet(name, options);
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<MemberResult> StoreConformanceTest::Run(Method method, std::string_view set,
                                                    const std::vector<Row>& rows) {
  std::vector<std::vector<std::string_view>> fields;
  std::vector<MemberRequest> requests;
  const absl::TimeZone zone = *LoadTimeZone("Asia/Shanghai");
  for (const Row& row : rows) fields.emplace_back(row.fields.begin(), row.fields.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    MemberRequest request{fields[i], absl::Time(), rows[i].window, rows[i].token};
    if (!rows[i].time.empty()) request.time = *ParseEventTime(rows[i].time, zone);
    requests.push_back(request);
  }
  std::vector<MemberResult> results(rows.size());
  const absl::Status status = (store_.get()->*method)(set, requests, results);
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

MemberResult StoreConformanceTest::One(Method method, const Row& row) {
  MemberResult result = Run(method, "kyc", {row})[0];
  EXPECT_TRUE(result.status.ok()) << result.status;
  return result;
}

uint64_t StoreConformanceTest::Settle(const std::vector<std::string>& tokens) {
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  const auto settled = store_->Settle("kyc", views);
  EXPECT_TRUE(settled.ok()) << settled.status();
  return settled.value_or(~uint64_t{0});
}

ImportTotals StoreConformanceTest::Import(std::string_view source, std::string_view position,
                                          const std::vector<Row>& rows,
                                          std::vector<absl::Status>* statuses) {
  std::vector<std::vector<std::string_view>> fields;
  for (const Row& row : rows) fields.emplace_back(row.fields.begin(), row.fields.end());
  std::vector<ImportRow> import;
  for (size_t i = 0; i < rows.size(); ++i) {
    import.push_back({fields[i], rows[i].window.value(), rows[i].token});
  }
  std::vector<absl::Status> own(rows.size());
  const auto totals =
      store_->Import("kyc", source, position, import, statuses != nullptr ? *statuses : own);
  EXPECT_TRUE(totals.ok()) << totals.status();
  EXPECT_TRUE(store_->ImportSync().ok());
  return totals.value_or(ImportTotals());
}

namespace {

constexpr char kId[] = "33010219200403064X";
constexpr char kOtherId[] = "110105194912310021";

Row In(WindowId window, std::string name, std::string id, std::string token = "") {
  return {{std::move(name), std::move(id)}, "", window, std::move(token)};
}
Row At(std::string time, std::string name, std::string id, std::string token = "") {
  return {{std::move(name), std::move(id)}, std::move(time), std::nullopt, std::move(token)};
}

std::vector<Verdict> Verdicts(const std::vector<MemberResult>& results) {
  std::vector<Verdict> verdicts;
  for (const MemberResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    verdicts.push_back(result.verdict);
  }
  return verdicts;
}

constexpr Verdict kFirst = Verdict::kFirst;
constexpr Verdict kDuplicate = Verdict::kDuplicate;
constexpr Verdict kRepeat = Verdict::kRepeat;
constexpr Verdict kClosed = Verdict::kClosed;

// ---- Sets

TEST_P(StoreConformanceTest, ANewSetIsListedWithItsOptions) {
  EXPECT_TRUE(store().ListSets().empty());
  SetOptions options = YearOfNamesAndIds();
  options.time_zone = "Europe/Lisbon";
  options.member_encoding = MemberEncoding::kConcat;
  options.bits = 112;
  options.expected = 1000;
  Create("kyc", options);
  Create("a.B-c_9", YearOfNamesAndIds());
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_THAT(store().ListSets(), testing::UnorderedElementsAre("kyc", "a.B-c_9"));
    ASSERT_TRUE(store().Options("kyc").ok());
    EXPECT_EQ(*store().Options("kyc"), options);
    OpenAgain();
  }
}

TEST_P(StoreConformanceTest, ASetThatDoesNotExistIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store().Options("kyc").status()));
  EXPECT_TRUE(absl::IsNotFound(store().Claim("kyc", {}, {})));
  EXPECT_TRUE(absl::IsNotFound(store().Check("kyc", {}, {})));
  EXPECT_TRUE(absl::IsNotFound(store().Remove("kyc", {}, {})));
  EXPECT_TRUE(absl::IsNotFound(store().Settle("kyc", {}).status()));
  EXPECT_TRUE(absl::IsNotFound(store().Import("kyc", "f", "1", {}, {}).status()));
  EXPECT_EQ(store().FindImport("kyc", "f"), std::nullopt);
  EXPECT_TRUE(absl::IsNotFound(store().ForgetImports("kyc", "")));
  EXPECT_TRUE(absl::IsNotFound(store().Drop("kyc", 2023)));
  EXPECT_TRUE(absl::IsNotFound(store().Reopen("kyc", 2023)));
  EXPECT_TRUE(absl::IsNotFound(store().SetStats("kyc").status()));
  EXPECT_THAT(Message(store().Claim("kyc", {}, {})), HasSubstr("kyc"));
}

TEST_P(StoreConformanceTest, CreatingASetAgainIsFineOnlyWithTheSameOptions) {
  const SetOptions options = YearOfNamesAndIds();
  Create("kyc", options);
  EXPECT_TRUE(store().CreateSet("kyc", options).ok());
  SetOptions more = options;
  more.expected = 5'000'000;
  EXPECT_TRUE(store().CreateSet("kyc", more).ok()) << "a hint is no difference";
  EXPECT_EQ(*store().Options("kyc"), options);

  const auto refused = [&](std::string_view clause, auto change) {
    SetOptions other = options;
    change(other);
    const absl::Status status = store().CreateSet("kyc", other);
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(std::string(clause)));
    EXPECT_EQ(*store().Options("kyc"), options);
  };
  refused("window is year and not day", [](auto& o) { o.window = WindowKind::kDay; });
  refused("time zone is Asia/Shanghai and not UTC", [](auto& o) { o.time_zone = "UTC"; });
  refused("fields is name,id_no and not name", [](auto& o) { o.fields.pop_back(); });
  refused("fields is name,id_no and not name,id", [](auto& o) { o.fields[1].name = "id"; });
  refused("normalisation of name is trim,width,name-dot,zero-width and not opaque",
          [](auto& o) { o.fields[0].normalise = kOpaque; });
  refused(
      "normalisation of id_no is trim,width,x-check-digit,id-15-to-18,zero-width and not "
      "width,x-check-digit,id-15-to-18,zero-width",
      [](auto& o) { o.fields[1].normalise &= ~kTrim; });
  refused("member encoding is fields and not concat",
          [](auto& o) { o.member_encoding = MemberEncoding::kConcat; });
  refused("bits is 96 and not 128", [](auto& o) { o.bits = 128; });
  refused("durability is fsync and not none", [](auto& o) { o.durability = Durability::kNone; });
}

TEST_P(StoreConformanceTest, ImpossibleSetsAreRefusedWithTheReason) {
  const auto refused = [&](std::string_view name, std::string_view reason, auto change) {
    SetOptions options = YearOfNamesAndIds();
    change(options);
    const absl::Status status = store().CreateSet(name, options);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(std::string(reason)));
  };
  const auto nothing = [](auto&) {};
  for (const char* name : {"", "_x", ".x", "a b", "a/b", "a:b", "\u5F20"}) {
    refused(name, "a set's name has 1 to 64", nothing);
  }
  refused(std::string(65, 'a'), "a set's name has 1 to 64", nothing);
  refused("s", "too few for an exact set", [](auto& o) { o.bits = 64; });
  for (const int bits : {0, -96, 81, 95, 120, 129, 256}) {
    refused("s", "choose 80, 88, 96", [bits](auto& o) { o.bits = bits; });
  }
  refused("s", "1 to 16 fields", [](auto& o) { o.fields.clear(); });
  refused("s", "1 to 16 fields", [](auto& o) { o.fields.resize(17, {"f", kOpaque}); });
  refused("s", "two fields have the name name", [](auto& o) { o.fields[1].name = "name"; });
  for (const char* field : {"", "a,b", "a;b", "a:b", " a", "a ", "a\n", "\xFF"}) {
    refused("s", "the name of field 2", [field](auto& o) { o.fields[1].name = field; });
  }
  refused("s", "normalisation", [](auto& o) { o.fields[0].normalise = 1u << 20; });
  refused("s", "Mars", [](auto& o) { o.time_zone = "Mars/Olympus"; });
  refused("s", "expected", [](auto& o) { o.expected = ~uint64_t{0}; });
  refused("s", "window", [](auto& o) { o.window = static_cast<WindowKind>(9); });
  EXPECT_TRUE(store().ListSets().empty());
  for (const int bits : {80, 88, 96, 112, 128}) {
    SetOptions options = YearOfNamesAndIds();
    options.bits = bits;
    EXPECT_TRUE(store().CreateSet("b" + std::to_string(bits), options).ok());
  }
}

// ---- Claims

TEST_P(StoreConformanceTest, TheFirstClaimIsFirstAndOthersAreDuplicates) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_THAT(
      Verdicts(Claim({In(2023, "张三", kId, "t1"), In(2023, "张三", kId, "t2"),
                      In(2023, "李四", kId, "t3"), In(2023, "张三", kOtherId, "t4"),
                      In(2023, "张三", kId), In(2023, "王五", kId), In(2023, "王五", kId)})),
      ElementsAre(kFirst, kDuplicate, kFirst, kFirst, kDuplicate, kFirst, kDuplicate));
}

TEST_P(StoreConformanceTest, ARetryByTheOwnerIsARepeatEvenAfterOpeningAgain) {
  Create("kyc", YearOfNamesAndIds());
  const MemberResult first = ClaimOne(In(2023, "张三", kId, "t1"));
  EXPECT_EQ(first.verdict, kFirst);
  for (int opened = 0; opened < 3; ++opened) {
    const MemberResult again = ClaimOne(In(2023, "张三", kId, "t1"));
    EXPECT_EQ(again.verdict, kRepeat);
    EXPECT_EQ(again.sequence, first.sequence);
    const MemberResult other = ClaimOne(In(2023, "张三", kId, "t2"));
    EXPECT_EQ(other.verdict, kDuplicate);
    EXPECT_GT(other.sequence, first.sequence);
    OpenAgain();
  }
}

TEST_P(StoreConformanceTest, SequencesGrowFromClaimToClaim) {
  Create("kyc", YearOfNamesAndIds());
  uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const MemberResult result = ClaimOne(In(2023, "张三", std::to_string(i), "t"));
    EXPECT_EQ(result.verdict, kFirst);
    EXPECT_GT(result.sequence, last);
    last = result.sequence;
    if (i == 10) OpenAgain();
  }
}

TEST_P(StoreConformanceTest, OfSimultaneousClaimsExactlyOneIsFirst) {
  Create("kyc", YearOfNamesAndIds());
  constexpr int kThreads = 4;
  constexpr int kMembers = 200;
  std::vector<std::atomic<int>> firsts(kMembers);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int begin = 0; begin < kMembers; begin += 20) {
        std::vector<Row> rows;
        for (int i = begin; i < begin + 20; ++i) {
          rows.push_back(In(2023, "张三", std::to_string(i), "thread" + std::to_string(t)));
        }
        const std::vector<MemberResult> results = Claim(rows);
        for (int i = 0; i < 20; ++i) firsts[begin + i] += results[i].verdict == kFirst ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : firsts) EXPECT_EQ(count, 1);
}

TEST_P(StoreConformanceTest, ABatchOfAnySizeIsDoneInOrder) {
  Create("kyc", YearOfNamesAndIds());
  constexpr int kRows = 40'000;
  std::vector<Row> rows;
  for (int i = 0; i < kRows; ++i) {
    rows.push_back(In(2023, "张三", std::to_string(i % (kRows / 2))));
  }
  const std::vector<MemberResult> results = Claim(rows);
  for (int i = 0; i < kRows; ++i) {
    ASSERT_TRUE(results[i].status.ok()) << results[i].status;
    ASSERT_EQ(results[i].verdict, i < kRows / 2 ? kFirst : kDuplicate) << i;
  }
}

TEST_P(StoreConformanceTest, CheckAnswersWithoutClaiming) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kFirst);
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kDuplicate);
  EXPECT_EQ(CheckOne(In(2022, "张三", kId)), kFirst);
}

// ---- Windows

TEST_P(StoreConformanceTest, TheLastMillisecondOfAYearAndTheFirstOfTheNextAreTwoWindows) {
  Create("kyc", YearOfNamesAndIds());
  const auto results = Claim({At("2023-12-31T23:59:59.999+08:00", "张三", kId, "t1"),
                              At("2024-01-01T00:00:00+08:00", "张三", kId, "t2"),
                              At("2023-12-31T23:59:59.999+08:00", "张三", kId, "t3"),
                              At("2023-01-01T00:00:00+08:00", "张三", kId, "t4"),
                              At("2022-12-31T16:00:00Z", "张三", kId, "t5"),
                              At("2022-12-31T15:59:59.999Z", "张三", kId, "t6"),
                              At("2024-01-01 00:00:00", "张三", kId, "t7")});
  EXPECT_THAT(Verdicts(results),
              ElementsAre(kFirst, kFirst, kDuplicate, kDuplicate, kDuplicate, kFirst, kDuplicate));
  std::vector<WindowId> windows;
  for (const MemberResult& result : results) windows.push_back(result.window);
  EXPECT_THAT(windows, ElementsAre(2023, 2024, 2023, 2023, 2023, 2022, 2024));
}

TEST_P(StoreConformanceTest, TheSetsOwnZoneDecides) {
  SetOptions options = YearOfNamesAndIds();
  options.time_zone = "America/New_York";
  Create("kyc", options);
  EXPECT_EQ(ClaimOne(At("2024-01-01T04:59:59Z", "张三", kId)).window, 2023);
  EXPECT_EQ(ClaimOne(At("2024-01-01T05:00:00Z", "张三", kId)).window, 2024);
}

TEST_P(StoreConformanceTest, MonthsDaysAndNoWindowsWork) {
  SetOptions options = YearOfNamesAndIds();
  const auto windows = [&](WindowKind kind, std::string_view set) {
    options.window = kind;
    Create(set, options);
    const auto results = Run(
        &Store::Claim, set,
        {At("2023-11-30T23:59:59+08:00", "张三", kId), At("2023-12-01T00:00:00+08:00", "张三", kId),
         At("2023-12-31T00:00:00+08:00", "张三", kId)});
    std::vector<std::pair<WindowId, Verdict>> pairs;
    for (const MemberResult& r : results) pairs.emplace_back(r.window, r.verdict);
    return pairs;
  };
  using Pairs = std::vector<std::pair<WindowId, Verdict>>;
  EXPECT_EQ(windows(WindowKind::kMonth, "month"),
            (Pairs{{202311, kFirst}, {202312, kFirst}, {202312, kDuplicate}}));
  EXPECT_EQ(windows(WindowKind::kDay, "day"),
            (Pairs{{20231130, kFirst}, {20231201, kFirst}, {20231231, kFirst}}));
  EXPECT_EQ(windows(WindowKind::kNone, "none"),
            (Pairs{{0, kFirst}, {0, kDuplicate}, {0, kDuplicate}}));
}

TEST_P(StoreConformanceTest, TheSameTokenInAnotherWindowIsANewClaim) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_THAT(Verdicts(Claim({In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1"),
                              In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1")})),
              ElementsAre(kFirst, kFirst, kRepeat, kRepeat));
}

TEST_P(StoreConformanceTest, WindowsTooFarInTheFutureAreRefusedForClaimsAndImports) {
  SetOptions options = YearOfNamesAndIds();
  options.window = WindowKind::kDay;
  Create("kyc", options);
  // The clock stands at 2024-01-01T08:00+08:00: windows that begin until the 3rd 08:00 are open.
  const auto results = Claim(
      {At("2024-01-03T23:00:00+08:00", "张三", kId), At("2024-01-04T00:00:00+08:00", "张三", kId),
       In(20240104, "张三", kId), In(22030101, "张三", kId), At("2023-12-31", "张三", kId)});
  EXPECT_TRUE(results[0].status.ok()) << results[0].status;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(absl::IsInvalidArgument(results[i].status)) << i;
    EXPECT_THAT(std::string(Message(results[i].status)), HasSubstr("too far in the future"));
  }
  EXPECT_TRUE(results[4].status.ok()) << results[4].status;
  EXPECT_EQ(CheckOne(In(20240104, "张三", kId)), kFirst);
  std::vector<absl::Status> statuses(2);
  const ImportTotals totals =
      Import("f", "1", {In(20240103, "李四", kId), In(20240104, "李四", kId)}, &statuses);
  EXPECT_EQ(totals.added, 1u);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(absl::IsInvalidArgument(statuses[1]));

  clock_.Set(clock_.Now() + absl::Hours(24));
  EXPECT_EQ(ClaimOne(In(20240104, "张三", kId)).verdict, kFirst);
}

TEST_P(StoreConformanceTest, WindowsThatTheSetCannotHaveAreRefused) {
  Create("kyc", YearOfNamesAndIds());
  for (const WindowId window : {0, 1969, 3000, 202312, 20231231, -1, -2023}) {
    for (const Method method : {&Store::Claim, &Store::Check, &Store::Remove}) {
      const MemberResult result = Run(method, "kyc", {In(window, "张三", kId)})[0];
      EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << window << " " << result.status;
    }
    EXPECT_TRUE(absl::IsInvalidArgument(store().Drop("kyc", window))) << window;
    EXPECT_TRUE(absl::IsInvalidArgument(store().Reopen("kyc", window))) << window;
  }
  const std::string_view fields[] = {"张三", kId};
  for (const absl::Time time :
       {absl::FromUnixSeconds(-100'000), absl::InfinitePast(), absl::InfiniteFuture()}) {
    const MemberRequest request{fields, time, std::nullopt, ""};
    MemberResult result;
    ASSERT_TRUE(store().Claim("kyc", {&request, 1}, {&result, 1}).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << time;
    ASSERT_TRUE(store().Check("kyc", {&request, 1}, {&result, 1}).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << time;
  }
  EXPECT_TRUE(store().SetStats("kyc")->windows.empty());
}

TEST_P(StoreConformanceTest, ADroppedWindowIsClosedUntilItIsReopenedAndThenEmpty) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kFirst);
  ASSERT_TRUE(store().Drop("kyc", 2022).ok());
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kClosed);
    EXPECT_EQ(ClaimOne(In(2022, "李四", kId, "t2")).verdict, kClosed);
    EXPECT_EQ(CheckOne(In(2022, "张三", kId)), kClosed);
    EXPECT_EQ(RemoveOne(In(2022, "张三", kId)), kClosed);
    EXPECT_EQ(Import("f", "1", {In(2022, "王五", kId)}).closed, 1u);
    EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kRepeat);
    OpenAgain();
  }
  ASSERT_TRUE(store().Reopen("kyc", 2022).ok());
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kFirst);
  OpenAgain();
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
}

// ---- Remove and settle

TEST_P(StoreConformanceTest, RemoveWithATokenTakesOutOnlyWhatTheTokenOwns) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2023, "张三", kId, "t1"), In(2023, "李四", kId)});
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t2")), kFirst);
  EXPECT_EQ(RemoveOne(In(2023, "李四", kId, "t1")), kFirst);
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kDuplicate);
  EXPECT_EQ(CheckOne(In(2023, "李四", kId)), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t1")), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId, "t1")), kFirst);
  OpenAgain();
  EXPECT_EQ(CheckOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t3")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, RemoveWithoutATokenTakesOutWhoeverOwnsIt) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2023, "张三", kId, "t1"), In(2022, "张三", kId, "t1")});
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId)), kDuplicate);
  EXPECT_EQ(RemoveOne(In(2023, "张三", kId)), kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t2")).verdict, kFirst);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
}

TEST_P(StoreConformanceTest, SettleCountsTheClaimsOfItsTokensInEveryWindow) {
  Create("kyc", YearOfNamesAndIds());
  Claim({In(2022, "张三", kId, "t1"), In(2023, "张三", kId, "t1"), In(2023, "李四", kId, "t2"),
         In(2023, "王五", kId, "t3"), In(2023, "赵六", kId)});
  EXPECT_EQ(Settle({"t1", "t2", "nobody", ""}), 3u);
  EXPECT_EQ(Settle({"t1", "t2"}), 0u) << "they are settled already";
  EXPECT_EQ(Settle({"nobody"}), 0u);
  EXPECT_EQ(Settle({}), 0u);
  // Settled a moment ago: a retry is still known.
  EXPECT_EQ(ClaimOne(In(2022, "张三", kId, "t1")).verdict, kRepeat);
  EXPECT_EQ(ClaimOne(In(2023, "李四", kId, "t1")).verdict, kDuplicate);
}

// ---- Import

TEST_P(StoreConformanceTest, AnImportRemembersItsPositionAndTotals) {
  Create("kyc", YearOfNamesAndIds());
  EXPECT_EQ(store().FindImport("kyc", "job/000000_0"), std::nullopt);
  ImportTotals totals = Import(
      "job/000000_0", "100", {In(2023, "张三", kId), In(2023, "李四", kId), In(2023, "张三", kId)});
  EXPECT_EQ(totals.added, 2u);
  EXPECT_EQ(totals.duplicates, 1u);
  Import("job/000000_0", "200", {In(2023, "王五", kId), In(2022, "张三", kId)});
  Import("job/000001_0", "7", {In(2023, "张三", kId)});
  for (int opened = 0; opened < 2; ++opened) {
    const auto state = store().FindImport("kyc", "job/000000_0");
    ASSERT_TRUE(state.has_value());
    EXPECT_EQ(state->position, "200");
    EXPECT_EQ(state->totals.added, 4u);
    EXPECT_EQ(state->totals.duplicates, 1u);
    EXPECT_EQ(state->totals.closed, 0u);
    EXPECT_EQ(store().FindImport("kyc", "job/000001_0")->totals.duplicates, 1u);
    OpenAgain();
  }
  ASSERT_TRUE(store().ForgetImports("kyc", "job/000000").ok());
  EXPECT_EQ(store().FindImport("kyc", "job/000000_0"), std::nullopt);
  EXPECT_TRUE(store().FindImport("kyc", "job/000001_0").has_value());
}

TEST_P(StoreConformanceTest, ImportingAgainAddsNothing) {
  Create("kyc", YearOfNamesAndIds());
  const std::vector<Row> rows = {In(2023, "张三", kId), In(2023, "李四", kId),
                                 In(2022, "张三", kId)};
  EXPECT_EQ(Import("a", "1", rows).added, 3u);
  const ImportTotals again = Import("b", "1", rows);
  EXPECT_EQ(again.added, 0u);
  EXPECT_EQ(again.duplicates, 3u);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "t1")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, AnImportedTokenMakesItsTransactionARepeat) {
  Create("kyc", YearOfNamesAndIds());
  Import("a", "1", {In(2023, "张三", kId, "serial-1"), In(2023, "张三", kId, "serial-2")});
  OpenAgain();
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "serial-1")).verdict, kRepeat);
  EXPECT_EQ(ClaimOne(In(2023, "张三", kId, "serial-2")).verdict, kDuplicate);
}

TEST_P(StoreConformanceTest, ImportTellsWhichRowsItLeftOut) {
  Create("kyc", YearOfNamesAndIds());
  std::vector<absl::Status> statuses(5);
  const ImportTotals totals = Import("a", "1",
                                     {In(2023, "张三", kId),
                                      {{"张三"}, "", 2023, ""},
                                      In(1900, "张三", kId),
                                      In(2023, " ", ""),
                                      In(2023, "李四", kId)},
                                     &statuses);
  EXPECT_EQ(totals.added, 2u);
  EXPECT_EQ(totals.duplicates, 0u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(absl::IsInvalidArgument(statuses[i]), i >= 1 && i <= 3) << i << statuses[i];
  }
}

TEST_P(StoreConformanceTest, AnImportOfNoRowsStillMovesThePosition) {
  Create("kyc", YearOfNamesAndIds());
  Import("a", "12", {});
  OpenAgain();
  EXPECT_EQ(store().FindImport("kyc", "a")->position, "12");
}

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
  const char* const reasons[] = {"",
                                 "has 1 fields",
                                 "has 3 fields",
                                 "field id_no is",
                                 "nothing but empty fields",
                                 "the token is",
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
  EXPECT_THAT(Verdicts(Claim({In(2023, "ab", "c"), In(2023, "a", "bc"), In(2023, "", "abc")})),
              ElementsAre(kFirst, kFirst, kFirst));
  options.member_encoding = MemberEncoding::kConcat;
  Create("joined", options);
  EXPECT_THAT(Verdicts(Run(&Store::Claim, "joined",
                           {In(2023, "ab", "c"), In(2023, "a", "bc"), In(2023, "", "abc"),
                            In(2023, "a", "b")})),
              ElementsAre(kFirst, kDuplicate, kDuplicate, kFirst));
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
