// Imports into the embedded store: killed, powered off, repeated.

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/import.h"
#include "ingest/input_files.h"
#include "store/embedded_store.h"
#include "support/faulty_file_system.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

uint64_t Seed() {
  const char* text = std::getenv("FIRSTSEEN_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  std::printf("FIRSTSEEN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

SetOptions People() {
  SetOptions set;
  set.window = WindowKind::kYear;
  set.fields = {{"name", kTrim}, {"id_no", kTrim}};
  return set;
}

// Rows of about 40 bytes, or padded to more; repeated members, odd rows, blank lines.
std::string Rows(int seed, int count, size_t padding = 0) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::string text;
  for (int i = 0; i < count; ++i) {
    const unsigned id = random() % static_cast<unsigned>(count);
    switch (random() % 40) {
      case 0:
        text += fmt::format("odd row {}\n", id);
        break;
      case 1:
        text += "\n";
        break;
      default:
        text += fmt::format("name {}|{}|T{}.{}|{}\n", id % 1000, id, seed, i,
                            std::string(padding, 'x'));
    }
  }
  return text;
}

struct Outcome {
  std::vector<uint64_t> counts;
  uint64_t members = 0;
  std::string rejects;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend void PrintTo(const Outcome& outcome, std::ostream* out) {
    for (const uint64_t count : outcome.counts) *out << count << " ";
    *out << "members " << outcome.members << " rejects " << outcome.rejects.size();
  }
};

class ImportStoreTest : public testing::TestWithParam<bool> {
 protected:
  ImportStoreTest() {
    options_.set = "kyc";
    options_.paths = {in_ / "export"};
    options_.mapping.format.delimiter = '|';
    options_.mapping.columns = {"name", "id_no", "serial", "padding"};
    options_.mapping.window_of = 2023;
    if (GetParam()) options_.mapping.token_column = "serial";
    options_.rejects = in_ / "bad";
    options_.jobs = 2;
  }

  absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& name,
                                                   FileSystem* files = FileSystem::Posix()) {
    EmbeddedStoreOptions options;
    options.directory = in_ / name;
    options.files = files;
    RETURN_IF_ERROR(InitEmbeddedStore(options));
    ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenEmbeddedStore(options));
    RETURN_IF_ERROR(store->CreateSet("kyc", People()));
    return store;
  }

  absl::StatusOr<Outcome> Import(Store* store) {
    ASSIGN_OR_RETURN(const ImportReport report, RunImport(store, options_));
    ASSIGN_OR_RETURN(const StoreSetStats stats, store->SetStats("kyc"));
    Outcome outcome;
    outcome.counts = {report.rows, report.added, report.duplicates, report.rejected, report.blank};
    for (const StoreWindowStats& window : stats.windows) outcome.members += window.members;
    ASSIGN_OR_RETURN(outcome.rejects, ReadFile(options_.files, options_.rejects));
    return outcome;
  }

  // One import without interruption, into a store of its own.
  Outcome Whole() {
    auto store = OpenStore("whole");
    EXPECT_TRUE(store.ok()) << store.status();
    const auto outcome = Import(store->get());
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return *outcome;
  }

  // Starts an import in another process and kills it after `micros`. True when it had ended.
  bool ImportAndKill(int64_t micros) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = OpenStore("data");
      const bool good = store.ok() && RunImport(store->get(), options_).ok();
      _exit(good ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
    kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
  }

  void KillLoop(int loops, int64_t micros_max);
  void PowerLoop(uint64_t step, std::vector<uint64_t> seeds);

  InputDirectory in_;
  ImportOptions options_;
};

INSTANTIATE_TEST_SUITE_P(All, ImportStoreTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Unordered"; });

TEST_P(ImportStoreTest, ASecondImportAddsNothingAlsoAfterAReopen) {
  in_.Write("export/a", Rows(1, 5000));
  in_.Write("export/b.gz", Gzip(Rows(2, 5000)));
  auto store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  const auto first = Import(store->get());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->counts[1], first->members);
  ASSERT_TRUE((*store)->Close().ok());
  store->reset();
  store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  const auto second = Import(store->get());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->counts[0], first->counts[0]);
  EXPECT_EQ(second->counts[1], 0u);
  EXPECT_EQ(second->counts[2], first->counts[1] + first->counts[2]);
  EXPECT_EQ(second->members, first->members);
  EXPECT_EQ(second->rejects, first->rejects);
}

TEST_P(ImportStoreTest, RowsOfADroppedWindowAreCountedAsClosed) {
  in_.Write("export/a", "a|1|T1|\nb|2|T2|\n");
  auto store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Drop("kyc", 2023).ok());
  const auto report = RunImport(store->get(), options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->rows, 2u);
  EXPECT_EQ(report->closed, 2u);
  EXPECT_EQ(report->added, 0u);
}

TEST_P(ImportStoreTest, ATokenMakesTheSameTransactionARepeat) {
  in_.Write("export/a", "a|1|T1|\n a |1|T2|\n");
  auto store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(RunImport(store->get(), options_).ok());
  const std::string_view fields[] = {"a", "1"};
  for (const auto& [token, verdict] :
       {std::pair("T1", GetParam() ? Verdict::kRepeat : Verdict::kDuplicate),
        std::pair("T2", Verdict::kDuplicate)}) {
    MemberRequest request;
    request.fields = fields;
    request.window = 2023;
    request.token = token;
    MemberResult result;
    ASSERT_TRUE((*store)->Claim("kyc", std::span(&request, 1), std::span(&result, 1)).ok());
    EXPECT_EQ(result.verdict, verdict) << token;
  }
}

TEST_P(ImportStoreTest, ARowTheSetRefusesIsAReject) {
  options_.mapping.window_of.reset();
  options_.mapping.columns[3] = "time";
  options_.mapping.time_column = "time";
  in_.Write("export/a", "a|1|T1|20230101\nb|2|T2|22030101\n|  |T3|20230101\nc|3|T4|20230101\n");
  auto store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  const auto outcome = Import(store->get());
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->counts[1], 2u);
  EXPECT_EQ(outcome->rejects, "b|2|T2|22030101\n|  |T3|20230101\n");
  EXPECT_THAT(ReadAll(in_ / "bad.reasons"), HasSubstr("too far in the future"));
}

// ---- kill -9

void ImportStoreTest::KillLoop(int loops, int64_t micros_max) {
  const Outcome whole = Whole();
  std::mt19937_64 random(Seed());
  int ended = 0;
  for (int i = 0; i < loops; ++i) {
    ended += ImportAndKill(static_cast<int64_t>(random() % static_cast<uint64_t>(micros_max)));
  }
  std::printf("%d of %d imports ended before they were killed\n", ended, loops);
  auto store = OpenStore("data");
  ASSERT_TRUE(store.ok()) << store.status();
  const auto outcome = Import(store->get());
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->members, whole.members);
  EXPECT_EQ(outcome->rejects, whole.rejects);
  EXPECT_EQ(outcome->counts[0], whole.counts[0]);
  if (ended == 0) {
    EXPECT_EQ(*outcome, whole);
  }
}

TEST_P(ImportStoreTest, KilledImportsGoOn) {
  in_.Write("export/a", Rows(1, 20'000, 300));
  in_.Write("export/b.gz", Gzip(Rows(2, 20'000, 300)));
  KillLoop(4, 200'000);
}

class ImportStoreLong : public ImportStoreTest {};
INSTANTIATE_TEST_SUITE_P(All, ImportStoreLong, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Unordered"; });

TEST_P(ImportStoreLong, KilledImportsGoOn) {
  in_.Write("export/a", Rows(1, 200'000, 300));
  in_.Write("export/b.gz", Gzip(Rows(2, 100'000, 300)));
  for (int i = 0; i < 20; ++i) {
    KillLoop(5, 600'000);
    std::filesystem::remove_all(in_ / "data");
    std::filesystem::remove_all(in_ / "whole");
  }
}

// ---- Power cuts: rejects, positions and members must fit each other.

void ImportStoreTest::PowerLoop(uint64_t step, std::vector<uint64_t> seeds) {
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"export/a", Rows(1, 900, 10'000)}, {"export/b", Rows(2, 50)}, {"export/c", Rows(3, 50)}};
  for (const auto& [name, text] : inputs) in_.Write(name, text);
  const auto make_disk = [&] {
    std::vector<std::string> directories = {in_ / "export"};
    while (directories.back() != "/") directories.push_back(ParentDirectory(directories.back()));
    auto disk = std::make_unique<FaultyFileSystem>(directories);
    for (const auto& [name, text] : inputs) {
      auto file = disk->Open(in_ / name, OpenMode::kCreate);
      EXPECT_TRUE(file.ok() && (*file)->Write(0, text).ok() && (*file)->Sync().ok());
    }
    EXPECT_TRUE(disk->SyncDirectory(in_ / "export").ok());
    // The store is made before the faults begin.
    auto store = OpenStore("data", disk.get());
    EXPECT_TRUE(store.ok() && (*store)->Close().ok()) << store.status();
    return disk;
  };

  auto disk = make_disk();
  options_.files = disk.get();
  const uint64_t first = disk->operations();
  Outcome whole;
  {
    auto store = OpenStore("data", disk.get());
    ASSERT_TRUE(store.ok()) << store.status();
    const auto outcome = Import(store->get());
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    whole = *outcome;
  }
  const uint64_t last = disk->operations();
  ASSERT_GT(last, first + 10);
  uint64_t interrupted = 0;
  for (uint64_t at = first + 1; at <= last; at += step) {
    disk = make_disk();
    options_.files = disk.get();
    {
      disk->FailAt({.at = at, .for_good = true});
      auto store = OpenStore("data", disk.get());
      if (store.ok() && RunImport(store->get(), options_).ok()) continue;
    }
    ++interrupted;
    for (const uint64_t seed : seeds) {
      const auto after = disk->AfterPowerLoss(seed);
      options_.files = after.get();
      // Rejects are written out when everything else is done.
      const auto rejects = ReadFile(after.get(), options_.rejects);
      const bool ended = rejects.ok() && *rejects == whole.rejects;
      auto store = OpenStore("data", after.get());
      ASSERT_TRUE(store.ok()) << at << " " << seed << " " << store.status();
      const auto outcome = Import(store->get());
      ASSERT_TRUE(outcome.ok()) << at << " " << seed << " " << outcome.status();
      Outcome expected = whole;
      if (ended && outcome->counts[1] == 0) {
        // It was cut off between its end and its report: the same import again finds all there.
        expected.counts[2] += std::exchange(expected.counts[1], 0);
      }
      ASSERT_EQ(*outcome, expected) << "operation " << at << ", seed " << seed;
      ASSERT_FALSE((*store)->FindImport("kyc", "import/").has_value());
    }
  }
  EXPECT_GT(interrupted, 0u);
}

TEST_P(ImportStoreTest, APowerCutChangesNothing) { PowerLoop(23, {0, 7}); }

TEST_P(ImportStoreLong, APowerCutAtAnyOperationChangesNothing) { PowerLoop(1, {0, 1, 2, 3, 4}); }

}  // namespace
}  // namespace firstseen
