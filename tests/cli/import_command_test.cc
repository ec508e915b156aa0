// `firstseen import` as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli_fixture.h"

namespace firstseen {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ImportCommandTest : public CliTest {
 protected:
  json Import(const std::vector<std::string>& arguments, std::string_view input = "") const {
    std::vector<std::string> command = {"import", "kyc", "--json"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ran ran = Run(command, input);
    EXPECT_EQ(ran.exit_status, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
};

TEST_F(ImportCommandTest, AHiveDirectoryWithPartitionFoldersNeedsNoScript) {
  MakeSet();
  fs::create_directories(path("export/ds=2023-12-31"));
  fs::create_directories(path("export/ds=2024-01-01/HIVE_UNION_SUBDIR_1"));
  WriteFile("export/_SUCCESS", "");
  WriteFile("export/ds=2023-12-31/.000000_0.crc", "x");
  WriteFile("export/ds=2023-12-31/000000_0", "\ufeff张三|33010219200403064X\r\n\r\n李四|1\r\n");
  WriteFile("export/ds=2024-01-01/HIVE_UNION_SUBDIR_1/000000_0_copy_1", "张三|33010219200403064x");
  const json report = Import({path("export"), "--columns", "name,id_no", "--time-column", "ds"});
  EXPECT_EQ(report["rows"], 3);
  EXPECT_EQ(report["added"], 3);
  EXPECT_EQ(report["rejected"], 0);
  EXPECT_EQ(report["skipped_files"], 2);
  EXPECT_EQ(Run({"check", "kyc"}, "2023-12-31|张三|330102200403064\n2024-01-01|李四|1\n").out,
            "PRESENT|2023\nABSENT|2024\n");
}

TEST_F(ImportCommandTest, StandardInputIsImportedAndAgainAddsNothing) {
  MakeSet();
  const std::vector<std::string> arguments = {"-", "--columns", "name,id_no", "--window-of",
                                              "2023"};
  EXPECT_EQ(Import(arguments, "a|1\nb|2\na|1\n")["added"], 2);
  const json again = Import(arguments, "a|1\nb|2\na|1\n");
  EXPECT_EQ(again["added"], 0);
  EXPECT_EQ(again["duplicates"], 3);
}

TEST_F(ImportCommandTest, RejectedRowsCanBeMendedAndImported) {
  MakeSet();
  WriteFile("history", "a|1\nb\nc|3|left over\n");
  const std::string rejects = path("history.rejects");
  const json report = Import(
      {path("history"), "--columns", "name,id_no", "--window-of", "2023", "--rejects", rejects});
  EXPECT_EQ(report["rejected"], 2);
  EXPECT_EQ(Content(rejects), "b\nc|3|left over\n");
  EXPECT_THAT(Content(rejects + ".reasons"), HasSubstr("history"));
  WriteFile("mended", "b|2\nc|3\n");
  const json mended = Import({path("mended"), "--columns", "name,id_no", "--window-of", "2023"});
  EXPECT_EQ(mended["added"], 2);
  EXPECT_EQ(mended["rejected"], 0);
}

TEST_F(ImportCommandTest, AnImportedTransactionMetAgainIsARepeatAndAnotherADuplicate) {
  MakeSet();
  Import({"-", "--columns", "name,id_no,ds,biz_seq_no", "--time-column", "ds", "--token-column",
          "biz_seq_no"},
         "张三|1|2023-12-30|S1\n");
  const Ran ran = Run({"claim", "kyc"}, "S1|2023-12-30|张三|1\nS2|2023-12-30|张三|1\n");
  EXPECT_THAT(ran.out, testing::StartsWith("REPEAT|2023|"));
  EXPECT_THAT(ran.out, HasSubstr("DUPLICATE|2023|"));
}

TEST_F(ImportCommandTest, OwnersSettledByTheImportStillAnswerRepeat) {
  MakeSet();
  Import({"-", "--columns", "name,id_no,ds,biz_seq_no", "--time-column", "ds", "--token-column",
          "biz_seq_no", "--settle"},
         "张三|1|2023-12-30|S1\n");
  const json settled = json::parse(Run({"settle", "kyc", "--json"}, "S1\n").out);
  EXPECT_EQ(settled["claims_settled"], 0) << "it is settled already";
  EXPECT_THAT(Run({"claim", "kyc"}, "S1|2023-12-30|张三|1\n").out,
              testing::StartsWith("REPEAT|2023|"));
}

TEST_F(ImportCommandTest, AFileThatCannotBeReadFailsTheImport) {
  MakeSet();
  WriteFile("000000_0", "a|1\n");
  WriteFile("000001_0.gz", "this is no gzip file\n");
  const Ran ran = Run({"import", "kyc", path("000000_0"), path("000001_0.gz"), "--columns",
                       "name,id_no", "--window-of", "2023"});
  EXPECT_EQ(ran.exit_status, 1);
  EXPECT_THAT(ran.err, HasSubstr("000001_0.gz"));
  EXPECT_EQ(
      Run({"import", "kyc", path("missing"), "--columns", "name,id_no", "--window-of", "2023"})
          .exit_status,
      1);
}

TEST_F(ImportCommandTest, WrongOptionsExitTwo) {
  MakeSet();
  WriteFile("f", "a|1\n");
  EXPECT_EQ(
      Run({"import", "kyc", path("f"), "--columns", "name,id_no", "--window-of", "23"}).exit_status,
      2);
  EXPECT_EQ(Run({"import", "kyc", path("f"), "--columns", "name,id_no", "--window-of", "2023",
                 "--time-column", "ds"})
                .exit_status,
            2);
  EXPECT_EQ(Run({"import", "kyc", path("f")}).exit_status, 2) << "--columns is missing";
}

// Names and id numbers may be in rejects files only, where the user wants them.
TEST_F(ImportCommandTest, NothingPersonalInMessagesOrTheDataDirectory) {
  MakeSet();
  const std::string name = "欧阳倩倩";
  const std::string id = "330102192004030648";  // wrong check digit: kept as it is
  WriteFile("history", name + "|" + id + "|2023-02-30\n" + name + "|" + id + "|2023-05-01\n" +
                           name + "|" + id + "\n" + name + "|\xff\xfe|2023-05-01\n");
  std::string printed;
  const auto run = [&](const std::vector<std::string>& arguments, std::string_view input = "") {
    const Ran ran = Run(arguments, input);
    printed += ran.out + ran.err;
  };
  run({"import", "kyc", path("history"), "--columns", "name,id_no,ds", "--time-column", "ds",
       "--rejects", path("rejects")});
  run({"claim", "kyc"}, "SERIAL77|2023-05-01|" + name + "|" + id + "\nSERIAL78|bad time|" + name +
                            "|" + id + "\nSERIAL79|2203-01-01|" + name + "|" + id + "\nSERIAL80|" +
                            name + "|" + id + "\n");
  run({"check", "kyc"}, "2023-05-01|" + name + "|" + id + "\n" + name + "\n");
  run({"settle", "kyc"}, "SERIAL77\nSERIAL78|x\n");
  run({"import", "kyc", path("history"), "--columns", "name,id_no", "--window-of", "2023",
       "--rejects", path("rejects2"), "--json"});
  run({"stats"});
  run({"snapshot"});
  for (const std::string& secret : {name, id, std::string("SERIAL7"), std::string("SERIAL8")}) {
    EXPECT_THAT(printed, Not(HasSubstr(secret)));
    for (const std::string& file : Files(data())) {
      EXPECT_THAT(Content(file), Not(HasSubstr(secret))) << file;
    }
  }
  EXPECT_THAT(Content(path("rejects")), HasSubstr(name));
  EXPECT_THAT(Content(path("rejects.reasons")), Not(HasSubstr(name)));
}

}  // namespace
}  // namespace firstseen
