#include "store/embedded_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "keys/key_file.h"
#include "store/conformance.h"
#include "support/directory.h"
#include "support/faulty_file_system.h"

namespace firstseen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSegmentBytes = 1 << 20;

class EmbeddedHome : public StoreHome {
 public:
  explicit EmbeddedHome(const Clock* clock) {
    options_.directory = directory_.path() + "/data";
    options_.clock = clock;
    options_.log_segment_bytes = kSegmentBytes;
    EXPECT_TRUE(InitEmbeddedStore(options_).ok());
  }
  absl::StatusOr<std::unique_ptr<Store>> Open() override { return OpenEmbeddedStore(options_); }

 private:
  const TestDirectory directory_;
  EmbeddedStoreOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Embedded, StoreConformanceTest,
                         testing::Values(StoreKind{"embedded",
                                                   [](const Clock* clock) {
                                                     return std::make_unique<EmbeddedHome>(clock);
                                                   }}),
                         [](const auto& info) { return info.param.name; });

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class EmbeddedStoreTest : public testing::Test {
 protected:
  EmbeddedStoreTest() {
    options_.directory = directory_.path() + "/data";
    options_.log_segment_bytes = kSegmentBytes;
  }

  void Init() {
    const absl::Status status = InitEmbeddedStore(options_);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::unique_ptr<Store> Open() {
    auto store = OpenEmbeddedStore(options_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  absl::Status OpenError() { return OpenEmbeddedStore(options_).status(); }
  std::string KeyPath() const { return options_.directory + "/key"; }
  void AppendToKeyFile(const std::string& line) {
    std::ofstream(KeyPath(), std::ios::app) << line << "\n";
  }

  static Verdict Claim(Store* store, WindowId window, std::string_view member,
                       std::string_view token = "") {
    const std::string_view fields[] = {member};
    const MemberRequest request{fields, absl::Time(), window, token};
    MemberResult result;
    const absl::Status status = store->Claim("kyc", {&request, 1}, {&result, 1});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.verdict;
  }
  static void CreateYearSet(Store* store) {
    SetOptions options;
    options.window = WindowKind::kYear;
    options.fields = {{"member", kOpaque}};
    const absl::Status status = store->CreateSet("kyc", options);
    ASSERT_TRUE(status.ok()) << status;
  }

  const TestDirectory directory_;
  EmbeddedStoreOptions options_;
};

TEST_F(EmbeddedStoreTest, InitMakesADirectoryAndAKeyForTheirOwnerOnly) {
  Init();
  struct stat info;
  ASSERT_EQ(stat(options_.directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(KeyPath().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options_.directory)) {
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 077, 0u) << entry.path();
  }
}

TEST_F(EmbeddedStoreTest, InitAgainChangesNothing) {
  Init();
  {
    const std::unique_ptr<Store> store = Open();
    CreateYearSet(store.get());
    EXPECT_EQ(Claim(store.get(), 2023, "a"), Verdict::kFirst);
    EXPECT_TRUE(store->Close().ok());
  }
  const std::string key = Contents(KeyPath());
  Init();
  EXPECT_EQ(Contents(KeyPath()), key);
  const std::unique_ptr<Store> store = Open();
  EXPECT_EQ(Claim(store.get(), 2023, "a"), Verdict::kDuplicate);
}

TEST_F(EmbeddedStoreTest, TheKeyMayLieElsewhereAndServeSeveralDirectories) {
  options_.key_file = directory_.path() + "/elsewhere";
  Init();
  EXPECT_FALSE(std::filesystem::exists(KeyPath()));
  const std::string key = Contents(options_.key_file);
  EXPECT_NE(Open(), nullptr);
  options_.directory += "2";
  Init();
  EXPECT_EQ(Contents(options_.key_file), key);
  EXPECT_NE(Open(), nullptr);
}

TEST_F(EmbeddedStoreTest, InitMakesNoNewKeyBesideExistingData) {
  Init();
  ASSERT_NE(Open(), nullptr);
  std::filesystem::remove(KeyPath());
  const absl::Status status = InitEmbeddedStore(options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("restore your backup of the key file"));
  EXPECT_FALSE(std::filesystem::exists(KeyPath()));
}

TEST_F(EmbeddedStoreTest, SimultaneousInitsAgreeOnOneKey) {
  std::vector<std::thread> threads;
  std::atomic<int> succeeded = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const absl::Status status = InitEmbeddedStore(options_);
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
      succeeded += status.ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(succeeded, 1);
  EXPECT_NE(Open(), nullptr);
}

// Whatever operation of `init` fails, and whatever the disk has of it after a power loss: `init`
// again makes a good directory, and what a successful `init` made is on disk.
TEST(EmbeddedStoreFaultTest, InitCanBeInterruptedAnywhere) {
  const auto options_on = [](FileSystem* files) {
    EmbeddedStoreOptions options;
    options.directory = "/data/store";
    options.files = files;
    options.log_segment_bytes = kSegmentBytes;
    return options;
  };
  const auto use = [&](FileSystem* files) {
    const auto store = OpenEmbeddedStore(options_on(files));
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->CreateSet("kyc", YearOfNamesAndIds()).ok());
    EXPECT_TRUE((*store)->Close().ok());
  };
  const auto init = [&](FileSystem* files) { return InitEmbeddedStore(options_on(files)); };
  bool whole = false;
  for (uint64_t at = 1; !whole; ++at) {
    ASSERT_LT(at, 100u);
    for (const bool tear : {false, true}) {
      FaultyFileSystem disk;
      disk.FailAt({.at = at, .for_good = true, .tear = tear});
      const bool done = init(&disk).ok();
      whole = done && disk.operations() < at;
      EXPECT_TRUE(whole || !done) << "operation " << at << " failed unnoticed";
      for (uint64_t seed = 0; seed < 6; ++seed) {
        SCOPED_TRACE(fmt::format("operation {}, tear {}, seed {}", at, tear, seed));
        const auto after = disk.AfterPowerLoss(seed);
        if (!done) {
          const absl::Status again = init(after.get());
          ASSERT_TRUE(again.ok()) << again;
        }
        use(after.get());
      }
      FaultyFileSystem flaky;
      flaky.FailAt({.at = at, .tear = tear});
      const bool good = init(&flaky).ok();
      flaky.FailAt({});
      if (!good) {
        const absl::Status again = init(&flaky);
        ASSERT_TRUE(again.ok()) << "operation " << at << ": " << again;
      }
      use(&flaky);
    }
  }
}

// Whatever operation of the first opening with a new key fails, the next one succeeds, and both
// keys are known from then on.
TEST(EmbeddedStoreFaultTest, ANewKeyCanBeTakenUpAfterAnyFault) {
  for (uint64_t i = 1;; ++i) {
    FaultyFileSystem disk;
    EmbeddedStoreOptions options;
    options.directory = "/data/store";
    options.files = &disk;
    options.log_segment_bytes = kSegmentBytes;
    ASSERT_TRUE(InitEmbeddedStore(options).ok());
    ASSERT_TRUE(OpenEmbeddedStore(options).ok());
    const std::string one = disk.Content("/data/store/key");
    disk.SetContent("/data/store/key",
                    one + "key 2 ffeeddccbbaa99887766554433221100 from 2025-01-01\n");
    disk.FailAt({.at = disk.operations() + i, .for_good = true});
    const bool whole = OpenEmbeddedStore(options).ok();
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(fmt::format("operation {}, seed {}", i, seed));
      const auto after = disk.AfterPowerLoss(seed);
      options.files = after.get();
      EXPECT_TRUE(whole || OpenEmbeddedStore(options).ok());
      after->SetContent("/data/store/key", one);
      EXPECT_TRUE(absl::IsFailedPrecondition(OpenEmbeddedStore(options).status()));
    }
    if (whole) break;
    ASSERT_LT(i, 100u);
  }
}

TEST_F(EmbeddedStoreTest, OpeningNeedsADirectoryAndItsKey) {
  EXPECT_TRUE(absl::IsNotFound(OpenError()));
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("firstseen init --data"));
  Init();
  std::filesystem::rename(KeyPath(), KeyPath() + ".away");
  EXPECT_TRUE(absl::IsNotFound(OpenError()));
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("restore your backup"));
  std::filesystem::rename(KeyPath() + ".away", KeyPath());
  ASSERT_EQ(chmod(KeyPath().c_str(), 0640), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError()));
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("chmod 600"));
  EXPECT_TRUE(absl::IsFailedPrecondition(InitEmbeddedStore(options_)));
  ASSERT_EQ(chmod(KeyPath().c_str(), 0600), 0);
  EXPECT_NE(Open(), nullptr);
}

TEST_F(EmbeddedStoreTest, AWrongKeyIsRefusedEverywhere) {
  Init();
  ASSERT_NE(Open(), nullptr);
  const std::string right = Contents(KeyPath());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(std::filesystem::remove(KeyPath()));
    ASSERT_TRUE(CreateKeyFile(options_.files, KeyPath()).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenError())) << OpenError();
    EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("key"));
    if (round == 0) {
      EXPECT_TRUE(absl::IsFailedPrecondition(InitEmbeddedStore(options_)));
      EXPECT_TRUE(absl::IsFailedPrecondition(RepairEmbeddedStore(options_, true).status()));
    }
    // The engine knows its first key even when the list of keys is gone.
    std::filesystem::remove(options_.directory + "/key_checks");
  }
  std::ofstream(KeyPath()) << right;
  EXPECT_NE(Open(), nullptr);
}

TEST_F(EmbeddedStoreTest, ASecondProcessLearnsWhoHoldsTheDirectory) {
  Init();
  options_.holder = "bill run on host seven";
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError())) << OpenError();
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("bill run on host seven"));
  ASSERT_TRUE(store->Close().ok());
  EXPECT_NE(Open(), nullptr);
}

TEST_F(EmbeddedStoreTest, ANewKeyBeginsWithANewWindow) {
  Init();
  {
    const std::unique_ptr<Store> store = Open();
    CreateYearSet(store.get());
    EXPECT_EQ(Claim(store.get(), 2024, "a", "t1"), Verdict::kFirst);
    EXPECT_TRUE(store->Close().ok());
  }
  AppendToKeyFile("key 2 ffeeddccbbaa99887766554433221100 from 2025-01-01");
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<Store> store = Open();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(Claim(store.get(), 2024, "a", "t1"), Verdict::kRepeat);
    EXPECT_EQ(Claim(store.get(), 2024, "a", "t2"), Verdict::kDuplicate);
    EXPECT_EQ(Claim(store.get(), 2025, "a", "t1"), round == 0 ? Verdict::kFirst : Verdict::kRepeat);
    const std::string_view tokens[] = {"t1"};
    EXPECT_EQ(*store->Settle("kyc", tokens), round == 0 ? 2u : 0u) << "owners under both keys";
    EXPECT_TRUE(store->Close().ok());
  }
}

TEST_F(EmbeddedStoreTest, AKeyForAWindowInUseIsRefused) {
  Init();
  {
    const std::unique_ptr<Store> store = Open();
    CreateYearSet(store.get());
    Claim(store.get(), 2024, "a");
    EXPECT_TRUE(store->Close().ok());
  }
  const std::string before = Contents(KeyPath());
  AppendToKeyFile("key 2 ffeeddccbbaa99887766554433221100 from 2024-01-01");
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError()));
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("window 2024 of set kyc"));
  std::ofstream(KeyPath()) << before;
  EXPECT_NE(Open(), nullptr);
}

TEST_F(EmbeddedStoreTest, KeysInUseCannotBeTakenOutOrChanged) {
  Init();
  ASSERT_NE(Open(), nullptr);
  const std::string one = Contents(KeyPath());
  AppendToKeyFile("key 2 ffeeddccbbaa99887766554433221100 from 2025-01-01");
  const std::string two = Contents(KeyPath());
  ASSERT_NE(Open(), nullptr);
  std::ofstream(KeyPath()) << one;
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenError()));
  EXPECT_THAT(std::string(Message(OpenError())), HasSubstr("latest backup"));
  for (const char* line : {"key 2 ffeeddccbbaa99887766554433221101 from 2025-01-01",
                           "key 3 ffeeddccbbaa99887766554433221100 from 2025-01-01",
                           "key 2 ffeeddccbbaa99887766554433221100 from 2026-01-01"}) {
    std::ofstream(KeyPath()) << one << line << "\n";
    EXPECT_TRUE(absl::IsFailedPrecondition(OpenError())) << line;
  }
  std::ofstream(KeyPath()) << two;
  EXPECT_NE(Open(), nullptr);
}

// Names, id numbers and tokens must not be found in any file of the data directory.
TEST_F(EmbeddedStoreTest, NoFileHoldsWhatWasClaimed) {
  const std::string name = "欧阳淑芬甲乙丙";
  const std::string id = "33010219200403064X";
  const std::string token = "SERIAL-20231231-000000000042";
  Init();
  const auto search = [&] {
    size_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options_.directory)) {
      if (!entry.is_regular_file()) continue;
      const std::string content = Contents(entry.path());
      bytes += content.size();
      for (const std::string& secret : {name, id, id.substr(0, 17), std::string("330102200403064"),
                                        std::string("20403064"), token, std::string("0000042")}) {
        EXPECT_EQ(content.find(secret), std::string::npos) << entry.path();
      }
    }
    EXPECT_GT(bytes, 1000u);
  };
  const std::unique_ptr<Store> store = Open();
  SetOptions options = YearOfNamesAndIds();
  for (const auto encoding : {MemberEncoding::kFields, MemberEncoding::kConcat}) {
    options.member_encoding = encoding;
    const std::string set = encoding == MemberEncoding::kConcat ? "concat" : "fields";
    ASSERT_TRUE(store->CreateSet(set, options).ok());
    const std::string_view fields[] = {name, id};
    const std::string_view old_fields[] = {name, "330102200403064"};
    std::vector<MemberResult> results(3);
    const std::vector<MemberRequest> requests = {{fields, absl::Time(), 2023, token},
                                                 {old_fields, absl::Time(), 2022, token},
                                                 {fields, absl::Time(), 2203, token}};
    ASSERT_TRUE(store->Claim(set, requests, results).ok());
    EXPECT_EQ(results[0].verdict, Verdict::kFirst);
    const ImportRow row{fields, 2021, token};
    absl::Status status;
    ASSERT_EQ(
        store->Import(set, "job", "1", {&row, 1}, ImportOwners::kUnsettled, {&status, 1})->added,
        1u);
    const std::string_view tokens[] = {token};
    EXPECT_EQ(*store->Settle(set, tokens), 3u);
    ASSERT_TRUE(store->Remove(set, std::span(requests).first(1), std::span(results).first(1)).ok());
  }
  search();
  ASSERT_TRUE(store->Snapshot().ok());
  search();
  ASSERT_TRUE(store->Close().ok());
  search();
}

TEST_F(EmbeddedStoreTest, OwnersOverTheirLimitRefuseTokenedClaimsOnly) {
  options_.owner_bytes_max = 4096;
  Init();
  const std::unique_ptr<Store> store = Open();
  CreateYearSet(store.get());
  absl::Status refused;
  for (int i = 0; i < 10'000 && refused.ok(); ++i) {
    const std::string member = std::to_string(i);
    const std::string_view fields[] = {member};
    const MemberRequest request{fields, absl::Time(), 2023, member};
    MemberResult result;
    ASSERT_TRUE(store->Claim("kyc", {&request, 1}, {&result, 1}).ok());
    refused = result.status;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(Claim(store.get(), 2023, "no token"), Verdict::kFirst);
  EXPECT_EQ(Claim(store.get(), 2023, "0", "0"), Verdict::kRepeat) << "nothing is forgotten early";
}

TEST_F(EmbeddedStoreTest, AHealthyDirectoryNeedsNoRepair) {
  Init();
  { CreateYearSet(Open().get()); }
  const auto losses = RepairEmbeddedStore(options_, false);
  ASSERT_TRUE(losses.ok()) << losses.status();
  EXPECT_THAT(*losses, IsEmpty());
  EXPECT_EQ(Open()->ListSets().size(), 1u);
}

TEST_F(EmbeddedStoreTest, RepairNeverCallsGoodWhatDoesNotOpen) {
  Init();
  {
    const auto store = Open();
    CreateYearSet(store.get());
    EXPECT_EQ(Claim(store.get(), 2023, "0"), Verdict::kFirst);
  }
  options_.memory_bytes_max = 1;  // nothing is damaged, and it does not open all the same
  const absl::Status opened = OpenEmbeddedStore(options_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(opened)) << opened;
  EXPECT_EQ(RepairEmbeddedStore(options_, false).status(), opened);
  EXPECT_EQ(RepairEmbeddedStore(options_, true).status(), opened);
}

TEST_F(EmbeddedStoreTest, RepairNeedsADirectory) {
  EXPECT_TRUE(absl::IsNotFound(RepairEmbeddedStore(options_, false).status()));
}

}  // namespace
}  // namespace firstseen
