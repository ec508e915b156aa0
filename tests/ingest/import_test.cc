#include "ingest/import.h"

#include <sys/stat.h>

#include <random>

#include "base/status.h"
#include "gmock/gmock.h"
#include "ingest/input_files.h"
#include "ingest/memory_store.h"

namespace firstseen {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SetOptions People() {
  SetOptions set;
  set.window = WindowKind::kYear;
  set.fields = {{"name", kTrim}, {"id_no", kTrim}};
  return set;
}

class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    options_.set = "kyc";
    options_.paths = {in_ / "export"};
    options_.mapping.format.delimiter = '|';
    options_.mapping.columns = {"name", "id_no"};
    options_.mapping.window_of = 2023;
    options_.rejects = in_ / "bad";
    options_.jobs = 2;
  }
  ImportReport Import() {
    const auto report = RunImport(&store_, options_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ImportReport();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(in_.path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  InputDirectory in_;
  MemoryStore store_{People()};
  ImportOptions options_;
};

TEST_F(ImportTest, CountsWhatItDid) {
  in_.Write("export/000000_0",
            "\xef\xbb\xbf"
            "a|1\r\nb|2\r\n\r\na|1\r\n");
  in_.Write("export/000001_0.gz", Gzip("c|3\n") + Gzip("d|4\nonly one\n\n\n"));
  in_.Write("export/000002_0", "");
  in_.Write("export/_SUCCESS", "");
  const ImportReport report = Import();
  EXPECT_EQ(report.rows, 6u);
  EXPECT_EQ(report.added, 4u);
  EXPECT_EQ(report.duplicates, 1u);
  EXPECT_EQ(report.rejected, 1u);
  EXPECT_EQ(report.blank, 3u);
  EXPECT_EQ(report.files, 3u);
  EXPECT_EQ(report.skipped_files, 1u);
  EXPECT_FALSE(report.resumed);
  EXPECT_EQ(report.rejects, in_ / "bad");
  EXPECT_EQ(store_.members().size(), 4u);
  EXPECT_EQ(store_.positions(), 0u);
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(ImportTest, RejectsAreTheRowsAsTheyWereAndTheReasonsBesideThem) {
  in_.Write("export/a", "name|id_no|ds\r\na|1\nx\n\n\xff\xfe|2\n");
  in_.Write("export/b.bz2", Bzip2("p|\\N"));
  Import();
  EXPECT_EQ(ReadAll(in_ / "bad"), "name|id_no|ds\r\nx\n\xff\xfe|2\np|\\N\n");
  const std::string reasons = ReadAll(in_ / "bad.reasons");
  EXPECT_THAT(reasons, HasSubstr("file\tline\tfield\treason\tremedy\n"));
  EXPECT_THAT(reasons, HasSubstr("export/a\t1\t\tthe row has 3 fields instead of 2\t"));
  EXPECT_THAT(reasons, HasSubstr("export/a\t3\t\tthe row has 1 field instead of 2\t"));
  EXPECT_THAT(reasons, HasSubstr("export/a\t5\tname\tthe value is not valid UTF-8\t"));
  EXPECT_THAT(reasons, HasSubstr("export/b.bz2\t1\tid_no\tthe value is null\t"));
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), '\n'), 5);
  for (const char* name : {"bad", "bad.reasons"}) {
    struct stat info;
    ASSERT_EQ(stat((in_ / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_THAT(Files(), ElementsAre("bad", "bad.reasons", "export"));
}

TEST_F(ImportTest, RejectsCanBeMendedAndImportedAgain) {
  in_.Write("export/a", "a|1\nb,2\nc|3\n");
  EXPECT_EQ(Import().rejected, 1u);
  ASSERT_EQ(ReadAll(in_ / "bad"), "b,2\n");
  options_.paths = {in_.Write("mended", "b|2\n")};
  const ImportReport mended = Import();
  EXPECT_EQ(mended.added, 1u);
  EXPECT_EQ(mended.rejected, 0u);
  EXPECT_EQ(store_.members().size(), 3u);
  EXPECT_EQ(ReadAll(in_ / "bad"), "");  // those of the last import
}

TEST_F(ImportTest, RejectsKeepTheEncodingOfTheInput) {
  options_.mapping.format.encoding = TextEncoding::kGb18030;
  in_.Write("export/a", "\xd5\xc5\x8e\x7c|1\n\xd5\xc5|1|2\n\xd5\xc5|1\x81\n");
  EXPECT_EQ(Import().rejected, 2u);
  EXPECT_EQ(ReadAll(in_ / "bad"), "\xd5\xc5|1|2\n\xd5\xc5|1\x81\n");
  EXPECT_EQ(store_.members().begin()->first.second[0], "\xe5\xbc\xa0\xe5\xb7\xaa");
}

TEST_F(ImportTest, RejectsBelowPartitionFoldersKeepTheirFolder) {
  options_.mapping.window_of.reset();
  options_.mapping.time_column = "ds";
  in_.Write("export/ds=2023-12-31/000000_0", "a|1\nodd\n");
  in_.Write("export/ds=2024-01-01/000000_0", "a|1\nodder\n");
  const ImportReport report = Import();
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(report.rejected, 2u);
  EXPECT_EQ(ReadAll(in_ / "bad"), "");
  EXPECT_EQ(ReadAll(in_ / "bad.d/ds=2023-12-31/rejects"), "odd\n");
  EXPECT_EQ(ReadAll(in_ / "bad.d/ds=2024-01-01/rejects"), "odder\n");

  in_.Write("bad.d/ds=2024-01-01/rejects", "b|2\n");
  options_.paths = {in_ / "bad.d"};
  options_.rejects = in_ / "still_bad";
  const ImportReport again = Import();
  EXPECT_EQ(again.added, 1u);
  EXPECT_EQ(again.rejected, 1u);
  EXPECT_EQ(store_.members().count({2024, {"b", "2"}}), 1u);
}

TEST_F(ImportTest, TheDefaultPlaceHasFilesOnlyWhenSomethingWasRejected) {
  options_.rejects.clear();
  options_.rejects_directory = in_ / "rejects";
  in_.Write("export/a", "a|1\n");
  EXPECT_EQ(Import().rejects, "");
  EXPECT_TRUE(std::filesystem::is_empty(in_ / "rejects"));
  in_.Write("export/a", "a|1\nodd\n");
  const std::string path = Import().rejects;
  EXPECT_THAT(path, HasSubstr(in_ / "rejects/kyc-"));
  EXPECT_EQ(ReadAll(path), "odd\n");
  in_.Write("export/a", "a|1\nodd|2\n");
  EXPECT_EQ(Import().rejects, "");
  EXPECT_TRUE(std::filesystem::is_empty(in_ / "rejects"));
}

TEST_F(ImportTest, TheRejectsMustNotLieInTheInput) {
  in_.Write("export/a", "a|1\n");
  for (const char* path : {"export/bad", "export/a", "export/deep/../bad"}) {
    options_.rejects = in_ / path;
    const absl::Status status = RunImport(&store_, options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(ReadAll(in_ / "export/a"), "a|1\n");
  options_.rejects = in_ / "nowhere/bad";
  EXPECT_THAT(std::string(Message(RunImport(&store_, options_).status())), HasSubstr("nowhere"));
}

TEST_F(ImportTest, ASecondRunAddsNothing) {
  in_.Write("export/a", "a|1\nb|2\nodd\n");
  Import();
  const ImportReport again = Import();
  EXPECT_EQ(again.rows, 3u);
  EXPECT_EQ(again.added, 0u);
  EXPECT_EQ(again.duplicates, 2u);
  EXPECT_EQ(again.rejected, 1u);
  EXPECT_FALSE(again.resumed);
}

TEST_F(ImportTest, AFileThatCannotBeReadIsAnErrorBeforeTheFirstRow) {
  in_.Write("export/a", "a|1\n");
  in_.Write("export/b.gz", "no gzip");
  const absl::Status status = RunImport(&store_, options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("b.gz"));
  EXPECT_EQ(store_.batches(), 0u);
}

TEST_F(ImportTest, AFileThatBreaksOffIsAnErrorThatNamesIt) {
  const std::string whole = Gzip("a|1\nb|2\nc|3\n");
  in_.Write("export/a", "x|1\n");
  in_.Write("export/b.gz", whole.substr(0, whole.size() - 4));
  const absl::Status status = RunImport(&store_, options_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("b.gz"));
  in_.Write("export/b.gz", whole);
  EXPECT_EQ(Import().rows, 4u);
}

TEST_F(ImportTest, WindowsTheStoreRefusesAreRejects) {
  options_.mapping.columns = {"name", "id_no", "time"};
  options_.mapping.window_of.reset();
  options_.mapping.time_column = "time";
  store_.RefuseWindowsAfter(2024);
  in_.Write("export/a", "a|1|20230101\nb|2|22030101\nc|3|20240101\n");
  const ImportReport report = Import();
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(report.rejected, 1u);
  EXPECT_EQ(ReadAll(in_ / "bad"), "b|2|22030101\n");
  EXPECT_THAT(ReadAll(in_ / "bad.reasons"), HasSubstr("\ttime\twindow begins too far"));
  options_.mapping.time_column.clear();
  options_.mapping.window_of = 2203;
  EXPECT_EQ(RunImport(&store_, options_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ImportTest, ARowOverTheLimitIsRejectedAndTheRestRead) {
  const std::string longest(3 << 20, 'x');
  in_.Write("export/a", "a|1\n" + longest + "\nb|2\n");
  const ImportReport report = Import();
  EXPECT_EQ(report.added, 2u);
  EXPECT_EQ(report.rejected, 1u);
  EXPECT_EQ(ReadAll(in_ / "bad").size(), kLineBytesMax + 1);
  EXPECT_THAT(ReadAll(in_ / "bad.reasons"), HasSubstr("a\t2\t\tthe line has more than"));
}

TEST_F(ImportTest, ProgressEndsAtTheWhole) {
  in_.Write("export/a", "a|1\nb|2\n");
  in_.Write("export/b.gz", Gzip("c|3\n"));
  ImportStatus last;
  options_.progress = [&](const ImportStatus& status) { last = status; };
  Import();
  EXPECT_EQ(last.rows, 3u);
  EXPECT_EQ(last.bytes_done, last.bytes_total);
  EXPECT_GT(last.bytes_total, 8u);
}

TEST_F(ImportTest, JobsOutOfRangeAreRefused) {
  in_.Write("export/a", "a|1\n");
  for (const int jobs : {-1, 65}) {
    options_.jobs = jobs;
    EXPECT_EQ(RunImport(&store_, options_).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ImportTest, GarbageNeverStopsAnImport) {
  const char* seed_text = std::getenv("FIRSTSEEN_SEED");
  const uint64_t seed =
      seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  std::printf("FIRSTSEEN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (const TextEncoding encoding : {TextEncoding::kUtf8, TextEncoding::kGb18030}) {
    for (const bool escape : {false, true}) {
      uint64_t lines = 0;
      std::string bytes;
      while (lines < 10'000) {
        // Half of the bytes from what means something, the others from all there are.
        static constexpr std::string_view kSpecial = "||\\\\\\N\r\n a1\x81\xa1\xef\xbb\xbf";
        const char c =
            random() % 2 == 0 ? kSpecial[random() % kSpecial.size()] : static_cast<char>(random());
        bytes += c;
        lines += c == '\n' ? 1 : 0;
      }
      in_.Write("export/a", bytes);
      options_.mapping.format = {.delimiter = '|', .encoding = encoding};
      if (escape) options_.mapping.format.escape = '\\';
      const ImportReport report = Import();
      EXPECT_EQ(report.rows + report.blank, lines);
      EXPECT_EQ(report.added + report.duplicates + report.rejected, report.rows);
      EXPECT_GT(report.rejected, 0u);
      EXPECT_GT(report.added, 0u);
    }
  }
}

}  // namespace
}  // namespace firstseen
