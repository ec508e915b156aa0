#include "store/conformance.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/time_text.h"

namespace firstseen {

using testing::ElementsAre;
using testing::HasSubstr;

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
                                          std::vector<absl::Status>* statuses,
                                          ImportOwners owners) {
  std::vector<std::vector<std::string_view>> fields;
  for (const Row& row : rows) fields.emplace_back(row.fields.begin(), row.fields.end());
  std::vector<ImportRow> import;
  for (size_t i = 0; i < rows.size(); ++i) {
    import.push_back({fields[i], rows[i].window.value(), rows[i].token});
  }
  std::vector<absl::Status> own(rows.size());
  const auto totals = store_->Import("kyc", source, position, import, owners,
                                     statuses != nullptr ? *statuses : own);
  EXPECT_TRUE(totals.ok()) << totals.status();
  EXPECT_TRUE(store_->ImportSync().ok());
  return totals.value_or(ImportTotals());
}

namespace {

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
  EXPECT_TRUE(
      absl::IsNotFound(store().Import("kyc", "f", "1", {}, ImportOwners::kUnsettled, {}).status()));
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

}  // namespace
}  // namespace firstseen
