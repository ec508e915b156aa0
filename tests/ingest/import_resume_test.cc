// An import that is interrupted anywhere and started again ends like one that was not.

#include <sys/stat.h>

#include <csignal>
#include <random>
#include <thread>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/import.h"
#include "ingest/import_stream.h"
#include "ingest/input_files.h"
#include "ingest/memory_store.h"

namespace firstseen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

SetOptions People() {
  SetOptions set;
  set.window = WindowKind::kYear;
  set.fields = {{"name", kOpaque}, {"id_no", kTrim}};
  return set;
}

// Rows wide enough that few of them make many blocks; with repeated members, odd rows, blanks.
std::string WideRows(int seed, size_t bytes) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::string text;
  while (text.size() < bytes) {
    const unsigned kind = random() % 20;
    const std::string id = std::to_string(random() % 1500);
    if (kind == 0) {
      text += "odd row " + id + "\n";
    } else if (kind == 1) {
      text += "\n";
    } else {
      text += std::string(5000, static_cast<char>('a' + id.size())) + "|" + id + "|T" +
              std::to_string(seed) + "." + std::to_string(text.size()) + "\n";
    }
  }
  return text;
}

struct Outcome {
  std::vector<uint64_t> counts;
  std::string rejects;
  std::string reasons;
  std::map<MemoryStore::Member, std::string> members;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class ImportResumeTest : public testing::TestWithParam<bool> {
 protected:
  ImportResumeTest() {
    options_.set = "kyc";
    options_.paths = {in_ / "export"};
    options_.mapping.format.delimiter = '|';
    options_.mapping.columns = {"name", "id_no", "serial"};
    options_.mapping.window_of = 2023;
    if (GetParam()) options_.mapping.token_column = "serial";
    options_.rejects = in_ / "bad";
    options_.jobs = 3;
  }

  void WriteExport() {
    in_.Write("export/a", WideRows(1, 7 << 20));
    in_.Write("export/b.gz", Gzip(WideRows(2, 5 << 20)));
    for (int i = 0; i < 12; ++i)
      in_.Write("export/c" + std::to_string(i), WideRows(10 + i, 50'000));
    in_.Write("export/d", "");
    in_.Write("export/e.zst", Zstd(WideRows(3, 3 << 20)));
  }

  Outcome OutcomeOf(const ImportReport& report, const MemoryStore& store) const {
    Outcome outcome;
    outcome.counts = {report.rows,     report.added, report.duplicates, report.closed,
                      report.rejected, report.blank, report.files};
    outcome.rejects = ReadAll(in_ / "bad");
    outcome.reasons = ReadAll(in_ / "bad.reasons");
    outcome.members = store.members();
    // Which of several equal members comes first, and so owns it, is only told with tokens.
    return outcome;
  }

  Outcome Whole() {
    MemoryStore store(People());
    const auto report = RunImport(&store, options_);
    EXPECT_TRUE(report.ok()) << report.status();
    batches_ = store.batches();
    return OutcomeOf(*report, store);
  }

  // The store fails after `at` batches, and after a power cut the last `lost` of them are gone.
  struct Crash {
    size_t at;
    size_t lost;
  };
  void CrashAt(const Outcome& whole, const std::vector<Crash>& crashes) {
    for (const auto& [at, lost] : crashes) {
      MemoryStore store(People());
      store.FailAt(at);
      options_.jobs = 1 + static_cast<int>((at + lost) % 4);
      ASSERT_FALSE(RunImport(&store, options_).ok());
      ASSERT_EQ(store.batches(), at);
      store.Crash(at - std::min(lost, at));
      store.FailAt(SIZE_MAX);
      const auto report = RunImport(&store, options_);
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_TRUE(OutcomeOf(*report, store) == whole) << at << " " << lost;
      ASSERT_EQ(report->resumed, at > lost);
      ASSERT_EQ(store.batches(), batches_);
      ASSERT_THAT(report->notes, IsEmpty());
      ASSERT_EQ(PartFiles(), 0u);
    }
  }

  size_t PartFiles() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(in_.path())) {
      count += entry.path().extension() == ".part" ? 1 : 0;
    }
    return count;
  }

  InputDirectory in_;
  ImportOptions options_;
  size_t batches_ = 0;  // of the last Whole()
};

INSTANTIATE_TEST_SUITE_P(All, ImportResumeTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Unordered"; });

TEST_P(ImportResumeTest, TheNumberOfJobsChangesNothing) {
  WriteExport();
  options_.jobs = 1;
  const Outcome one = Whole();
  EXPECT_GT(one.counts[1], 100u);
  EXPECT_GT(one.counts[2], 100u);
  EXPECT_GT(one.counts[4], 100u);
  for (const int jobs : {2, 4, 16}) {
    options_.jobs = jobs;
    EXPECT_TRUE(Whole() == one) << jobs;
  }
}

TEST_P(ImportResumeTest, ACrashAfterABatchChangesNothing) {
  WriteExport();
  const Outcome whole = Whole();
  ASSERT_GT(batches_, 15u);
  CrashAt(whole, {{0, 0}, {1, 0}, {7, 0}, {8, 5}, {13, 1}, {batches_ - 1, 0}, {batches_ - 1, 5}});
}

using ImportResumeLong = ImportResumeTest;
INSTANTIATE_TEST_SUITE_P(All, ImportResumeLong, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Unordered"; });

TEST_P(ImportResumeLong, ACrashAfterAnyBatchChangesNothing) {
  WriteExport();
  const Outcome whole = Whole();
  std::vector<Crash> crashes;
  for (size_t at = 0; at < batches_; ++at) {
    for (const size_t lost : {0, 1, 5}) crashes.push_back({at, lost});
  }
  CrashAt(whole, crashes);
}

TEST_P(ImportResumeTest, ACrashAtTheVeryEndDoesNotCountTwice) {
  WriteExport();
  const Outcome whole = Whole();
  MemoryStore store(People());
  store.FailAt(batches_ - 1);
  ASSERT_FALSE(RunImport(&store, options_).ok());
  store.FailAt(SIZE_MAX);
  // The last batch goes in, and the program ends before it could write the rejects.
  options_.rejects = in_ / "bad";
  std::filesystem::create_directory(in_ / ".bad.reasons.tmp");
  ASSERT_FALSE(RunImport(&store, options_).ok());
  ASSERT_EQ(store.batches(), batches_);
  std::filesystem::remove(in_ / ".bad.reasons.tmp");
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(OutcomeOf(*report, store) == whole);
  EXPECT_EQ(store.batches(), batches_);
  EXPECT_EQ(store.positions(), 0u);
}

TEST_P(ImportResumeTest, AStopIsCancelledAndGoesOnLater) {
  WriteExport();
  const Outcome whole = Whole();
  MemoryStore store(People());
  std::atomic<bool> stop = false;
  options_.stop = &stop;
  options_.progress = [&](const ImportStatus& status) {
    if (status.rows > 0) stop = true;
  };
  EXPECT_EQ(RunImport(&store, options_).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(store.batches(), batches_);
  options_.stop = nullptr;
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(OutcomeOf(*report, store) == whole);
}

TEST_P(ImportResumeTest, AChangedFileIsReadAgainWithANote) {
  WriteExport();
  options_.jobs = 1;  // so that something of the file is recorded before the store fails
  MemoryStore store(People());
  store.FailAt(8);
  ASSERT_FALSE(RunImport(&store, options_).ok());
  store.FailAt(SIZE_MAX);
  in_.Write("export/a", WideRows(1, 6 << 20));
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->resumed);
  ASSERT_THAT(report->notes, SizeIs(1));
  EXPECT_THAT(report->notes[0], HasSubstr("the input has changed"));
  const Outcome whole = Whole();
  EXPECT_EQ(report->rows, whole.counts[0]);
  EXPECT_EQ(report->added + report->duplicates, whole.counts[1] + whole.counts[2]);
  EXPECT_EQ(ReadAll(in_ / "bad"), whole.rejects);
  EXPECT_EQ(PartFiles(), 0u);
}

TEST_P(ImportResumeTest, AFileAddedBehindWhatWasReadDisturbsNothing) {
  WriteExport();
  MemoryStore store(People());
  store.FailAt(2);
  ASSERT_FALSE(RunImport(&store, options_).ok());
  store.FailAt(SIZE_MAX);
  in_.Write("export/z", "late|1|T9\n");
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->resumed);
  EXPECT_TRUE(OutcomeOf(*report, store) == Whole());
}

TEST_P(ImportResumeTest, RowsSetAsideThatAreGoneAreReadAgainWithANote) {
  WriteExport();
  const Outcome whole = Whole();
  MemoryStore store(People());
  store.FailAt(8);
  ASSERT_FALSE(RunImport(&store, options_).ok());
  store.FailAt(SIZE_MAX);
  ASSERT_GT(PartFiles(), 0u);
  for (const auto& entry : std::filesystem::directory_iterator(in_.path())) {
    if (entry.path().extension() == ".part") std::filesystem::remove(entry.path());
  }
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_THAT(report->notes, SizeIs(1));
  EXPECT_THAT(report->notes[0], HasSubstr("set aside are gone"));
  EXPECT_EQ(ReadAll(in_ / "bad"), whole.rejects);
  EXPECT_EQ(report->rows, whole.counts[0]);
}

TEST_P(ImportResumeTest, AnotherImportKeepsOutOfTheWay) {
  WriteExport();
  const Outcome whole = Whole();
  MemoryStore store(People());
  store.FailAt(8);
  ASSERT_FALSE(RunImport(&store, options_).ok());
  store.FailAt(SIZE_MAX);
  ImportOptions other = options_;
  other.paths = {in_.Write("small", "x|1|T\nodd\n")};
  ASSERT_TRUE(RunImport(&store, other).ok());
  EXPECT_EQ(ReadAll(in_ / "bad"), "odd\n");
  const auto report = RunImport(&store, options_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->resumed);
  EXPECT_EQ(report->rows, whole.counts[0]);
  EXPECT_EQ(ReadAll(in_ / "bad"), whole.rejects);
}

// ---- Pipes.

class PipeTest : public ImportResumeTest {
 protected:
  PipeTest() {
    options_.paths = {in_ / "pipe"};
    EXPECT_EQ(mkfifo(options_.paths[0].c_str(), 0600), 0);
  }
  absl::StatusOr<ImportReport> Import(MemoryStore* store, const std::string& text) {
    std::thread writer([&] { std::ofstream(in_ / "pipe", std::ios::binary) << text; });
    auto report = RunImport(store, options_);
    writer.join();
    return report;
  }
};
INSTANTIATE_TEST_SUITE_P(All, PipeTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ordered" : "Unordered"; });

TEST_P(PipeTest, APipeGoesOnBehindWhatIsIn) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string text = WideRows(4, 21 << 20);
  MemoryStore whole_store(People());
  const auto whole = Import(&whole_store, text);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const Outcome expected = OutcomeOf(*whole, whole_store);
  for (const size_t at : {size_t{1}, size_t{4}, whole_store.batches() - 1}) {
    MemoryStore store(People());
    store.FailAt(at);
    ASSERT_FALSE(Import(&store, text).ok());
    store.FailAt(SIZE_MAX);
    const auto report = Import(&store, text);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->resumed);
    EXPECT_TRUE(OutcomeOf(*report, store) == expected);
    EXPECT_EQ(store.batches(), whole_store.batches());
  }
}

TEST_P(PipeTest, APipeThatBringsSomethingElseIsRefusedOnce) {
  std::signal(SIGPIPE, SIG_IGN);
  options_.jobs = 1;  // so that the first blocks are in
  MemoryStore store(People());
  store.FailAt(8);
  ASSERT_FALSE(Import(&store, WideRows(4, 21 << 20)).ok());
  store.FailAt(SIZE_MAX);
  const std::string other = WideRows(5, 21 << 20);
  const absl::Status status = Import(&store, other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("run the command again"));
  const auto report = Import(&store, other);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->resumed);
}

// ---- Positions.

TEST(ImportPositionTest, ReadsBackWhatItWrote) {
  const ImportPosition position = {1, 2, 3, 4, ~uint64_t{0}, 6, 7, 8, 9, 10};
  EXPECT_EQ(ParsePosition(FormatPosition(position)), position);
  const std::string text = FormatPosition(position);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto cut = ParsePosition(text.substr(0, i));
    // A last number cut short is a number still; what is recorded is whole or not there.
    EXPECT_EQ(cut.has_value(), i >= text.rfind(' ') + 2) << i;
  }
  EXPECT_FALSE(ParsePosition(text + " 11").has_value());
  EXPECT_FALSE(ParsePosition("2 " + text.substr(2)).has_value());
}

}  // namespace
}  // namespace firstseen
