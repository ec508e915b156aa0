// The program's conventions: help, exit statuses, JSON, locking, and what each subcommand answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli_fixture.h"

namespace firstseen {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::vector<std::vector<std::string>>& Subcommands() {
  static const auto* commands = new std::vector<std::vector<std::string>>{
      {"init"},     {"create"},  {"import"},      {"claim"},          {"check"},         {"remove"},
      {"settle"},   {"stats"},   {"drop"},        {"reopen"},         {"snapshot"},      {"repair"},
      {"generate"}, {"version"}, {"bill", "run"}, {"bill", "resend"}, {"bill", "verify"}};
  return *commands;
}

TEST_F(CliTest, EverySubcommandHasHelpWithExamples) {
  for (std::vector<std::string> command : Subcommands()) {
    command.push_back("--help");
    const Ran ran = RunProgram(command);
    EXPECT_EQ(ran.exit_status, 0) << command[0];
    EXPECT_THAT(ran.out, HasSubstr("Example")) << command[0];
    EXPECT_EQ(ran.err, "") << command[0];
  }
  EXPECT_EQ(RunProgram({"--help"}).exit_status, 0);
  EXPECT_EQ(RunProgram({"bill", "--help"}).exit_status, 0);
}

TEST_F(CliTest, WrongUsageExitsTwo) {
  for (std::vector<std::string> command : Subcommands()) {
    command.push_back("--no-such-flag");
    const Ran ran = RunProgram(command);
    EXPECT_EQ(ran.exit_status, 2) << command[0];
    EXPECT_EQ(ran.out, "") << command[0];
    EXPECT_NE(ran.err, "") << command[0];
  }
  EXPECT_EQ(RunProgram({}).exit_status, 2);
  EXPECT_EQ(RunProgram({"no-such-command"}).exit_status, 2);
  EXPECT_EQ(RunProgram({"bill"}).exit_status, 2);
  EXPECT_EQ(RunProgram({"stats"}).exit_status, 2) << "--data is missing";
}

TEST_F(CliTest, WrongValuesOfOptionsExitTwo) {
  MakeSet();
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--bits", "64"},
                                             {"--window", "week"},
                                             {"--durability", "maybe"},
                                             {"--normalise", "no-such-switch"},
                                             {"--member-encoding", "json"}}) {
    std::vector<std::string> command = {"create", "other",    "--data", data(),        "--fields",
                                        "id_no",  "--window", "year",   "--normalise", "trim"};
    command.insert(command.end(), options.begin(), options.end());
    EXPECT_EQ(RunProgram(command).exit_status, 2) << options[0];
  }
  EXPECT_EQ(Run({"drop", "kyc", "--window-of", "2023-13"}).exit_status, 2);
  EXPECT_EQ(Run({"claim", "kyc", "--delimiter", "||"}).exit_status, 2);
  EXPECT_EQ(Run({"claim", "kyc", "--encoding", "latin-1"}).exit_status, 2);
}

TEST_F(CliTest, DataDirectoryComesFromTheEnvironmentToo) {
  MakeSet();
  setenv("FIRSTSEEN_DATA", data().c_str(), 1);
  const Ran ran = RunProgram({"stats", "--json"});
  unsetenv("FIRSTSEEN_DATA");
  EXPECT_EQ(ran.exit_status, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["sets"][0]["set"], "kyc");
}

TEST_F(CliTest, InitMakesAKeyForItsOwnerOnlyAndSaysToBackItUp) {
  const Ran ran = Run({"init"});
  EXPECT_EQ(ran.exit_status, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("back up"));
  struct stat status;
  ASSERT_EQ(stat((data() + "/key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(data().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CliTest, KeyFileMayLieElsewhereAndIsNeededAgain) {
  const std::string key = path("secret.key");
  ASSERT_EQ(Run({"init", "--key-file", key}).exit_status, 0);
  EXPECT_EQ(Run({"stats", "--key-file", key}).exit_status, 0);
  const Ran without = Run({"stats"});
  EXPECT_EQ(without.exit_status, 1);
  EXPECT_THAT(without.err, HasSubstr("key"));
}

TEST_F(CliTest, CreatePrintsWhichNormalisationAppliesToWhichField) {
  ASSERT_EQ(Run({"init"}).exit_status, 0);
  const Ran ran = Run({"create", "kyc", "--window", "year", "--fields", "name,id_no", "--normalise",
                       "trim,id-15-to-18,name-dot"});
  EXPECT_EQ(ran.exit_status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("name: trim,name-dot"));
  EXPECT_THAT(ran.out, HasSubstr("id_no: trim,id-15-to-18"));
}

TEST_F(CliTest, CreatingASetTwiceFails) {
  MakeSet();
  const Ran ran =
      Run({"create", "kyc", "--window", "year", "--fields", "name", "--normalise", "trim"});
  EXPECT_EQ(ran.exit_status, 2);
  EXPECT_THAT(ran.err, HasSubstr("kyc"));
}

TEST_F(CliTest, ClaimAnswersEveryRowInOrder) {
  MakeSet();
  const Ran ran = Run({"claim", "kyc"},
                      "T1|2023-12-31 23:59:59|张三|33010219200403064X\n"
                      "T2|2023-12-31T23:59:59.999+08:00| 张三 |33010219200403064x\n"
                      "T1|2023-12-31 23:59:59|张三|33010219200403064X\n"
                      "\n"
                      "T3|2024-01-01|张三|330102200403064\n"
                      "T4|2024-01-01|李四\n"
                      "T5|yesterday|李四|33010219200403064X\n"
                      "T6|1704067200000|李四|33010219200403064X");
  EXPECT_EQ(ran.exit_status, 1) << "rows were rejected";
  const std::vector<std::string> lines = Lines(ran.out);
  ASSERT_EQ(lines.size(), 7u) << ran.out;
  EXPECT_THAT(lines[0], StartsWith("FIRST|2023|"));
  EXPECT_THAT(lines[1], StartsWith("DUPLICATE|2023|"));
  EXPECT_EQ(lines[2], "REPEAT" + lines[0].substr(5));
  EXPECT_THAT(lines[3], StartsWith("FIRST|2024|"));
  EXPECT_THAT(lines[4], StartsWith("REJECTED|line 6: "));
  EXPECT_THAT(lines[5], StartsWith("REJECTED|line 7: "));
  EXPECT_THAT(lines[6], StartsWith("FIRST|2024|"));
}

TEST_F(CliTest, ClaimAnswersBeforeTheEndOfItsInput) {
  MakeSet();
  Child child(Arguments({"claim", "kyc"}));
  ASSERT_TRUE(child.Write("T1|2023-05-01|张三|33010219200403064X\n"));
  EXPECT_THAT(child.ReadLine(), StartsWith("FIRST|2023|"));
  ASSERT_TRUE(child.Write("T2|2023-05-01|张三|33010219200403064X\nT3|2023-05-01|李四|1"));
  EXPECT_THAT(child.ReadLine(), StartsWith("DUPLICATE|2023|"));
  child.CloseInput();
  EXPECT_THAT(child.ReadLine(), StartsWith("FIRST|2023|"));
  EXPECT_EQ(child.ReadLine(), "");
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(CliTest, LinesTooLongAreRejectedAndTheNextOnesAnswered) {
  MakeSet();
  const std::string longest(3'000'000, 'x');
  const Ran ran = Run({"check", "kyc"},
                      "2023-01-01|a|" + longest + "\n2023-01-01|a|b\n" + "2023-01-01|a|" + longest);
  EXPECT_EQ(ran.exit_status, 1);
  const std::vector<std::string> lines = Lines(ran.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith("REJECTED|line 1: "));
  EXPECT_EQ(lines[1], "ABSENT|2023");
  EXPECT_THAT(lines[2], StartsWith("REJECTED|line 3: "));
}

TEST_F(CliTest, CheckRemoveAndSettleAnswerEveryRow) {
  MakeSet();
  EXPECT_EQ(Run({"claim", "kyc"}, "T1|2023-05-01|张三|1\n").exit_status, 0);
  const std::string rows = "2023-05-01|张三|1\n2024-05-01|张三|1\n";
  EXPECT_THAT(Lines(Run({"check", "kyc"}, rows).out), ElementsAre("PRESENT|2023", "ABSENT|2024"));
  const Ran settled = Run({"settle", "kyc"}, "T1\nT2\n\\N\nT1|x\n");
  EXPECT_EQ(settled.exit_status, 1);
  const std::vector<std::string> lines = Lines(settled.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "SETTLED");
  EXPECT_EQ(lines[1], "SETTLED");
  EXPECT_THAT(lines[2], StartsWith("REJECTED|line 3: "));
  EXPECT_THAT(lines[3], StartsWith("REJECTED|line 4: "));
  EXPECT_THAT(Lines(Run({"remove", "kyc"}, rows).out), ElementsAre("REMOVED|2023", "ABSENT|2024"));
  EXPECT_THAT(Lines(Run({"check", "kyc"}, rows).out), ElementsAre("ABSENT|2023", "ABSENT|2024"));
}

TEST_F(CliTest, RowsComeFromAFileInAnyDelimiterAndEncoding) {
  MakeSet();
  // 珅 is AB 7C in GB18030: its second byte is '|'.
  WriteFile("rows.txt", "T1|2023-05-01|\xab\x7c|1\n");
  EXPECT_THAT(Run({"claim", "kyc", path("rows.txt"), "--encoding", "gb18030"}).out,
              StartsWith("FIRST|2023|"));
  EXPECT_EQ(Run({"check", "kyc", "--delimiter", "tab"}, "2023-05-01\t珅\t1\n").out,
            "PRESENT\t2023\n");
  EXPECT_EQ(Run({"check", "kyc", path("missing.txt")}).exit_status, 1);
}

TEST_F(CliTest, ASetWithoutWindowsTakesRowsWithoutTime) {
  ASSERT_EQ(Run({"init"}).exit_status, 0);
  ASSERT_EQ(
      Run({"create", "devices", "--window", "none", "--fields", "device", "--normalise", "opaque"})
          .exit_status,
      0);
  EXPECT_THAT(Run({"claim", "devices"}, "T1||d1\n").out, StartsWith("FIRST|all|"));
  EXPECT_EQ(Run({"check", "devices"}, "|d1\n2023-01-01|d2\n").out, "PRESENT|all\nABSENT|all\n");
}

TEST_F(CliTest, ADroppedWindowIsClosedUntilItIsReopened) {
  MakeSet();
  const std::string row = "T1|2022-05-01|张三|1\n";
  EXPECT_THAT(Run({"claim", "kyc"}, row).out, StartsWith("FIRST|2022|"));
  EXPECT_EQ(Run({"drop", "kyc", "--window-of", "2022"}).exit_status, 0);
  const Ran closed = Run({"claim", "kyc"}, row);
  EXPECT_THAT(closed.out, StartsWith("CLOSED|2022|"));
  EXPECT_EQ(closed.exit_status, 0);
  EXPECT_THAT(Run({"stats"}).out, HasSubstr("dropped"));
  EXPECT_EQ(Run({"reopen", "kyc", "--window-of", "2022"}).exit_status, 0);
  EXPECT_THAT(Run({"claim", "kyc"}, row).out, StartsWith("FIRST|2022|"));
}

TEST_F(CliTest, JsonIsOneObjectAndNothingElse) {
  const auto parsed = [&](const std::vector<std::string>& arguments, std::string_view input = "") {
    std::vector<std::string> with_json = arguments;
    with_json.push_back("--json");
    const Ran ran = Run(with_json, input);
    const json object = json::parse(ran.out, nullptr, false);
    EXPECT_TRUE(object.is_object()) << arguments[0] << ": " << ran.out << ran.err;
    return object;
  };
  EXPECT_EQ(parsed({"init"})["data"], data());
  EXPECT_EQ(parsed({"create", "kyc", "--window", "year", "--fields", "name,id_no", "--normalise",
                    "trim"})["fields"][0]["normalise"],
            "trim");
  WriteFile("history.txt", "a|1\nb|2\nb|2\nbroken\n");
  const json imported = parsed(
      {"import", "kyc", path("history.txt"), "--columns", "name,id_no", "--window-of", "2023"});
  for (const char* key :
       {"rows", "added", "duplicates", "rejected", "skipped_files", "seconds", "rows_per_second"}) {
    EXPECT_TRUE(imported.contains(key)) << key;
  }
  EXPECT_EQ(imported["added"], 2);
  EXPECT_EQ(imported["rejected"], 1);
  const json claimed = parsed({"claim", "kyc"}, "T1|2023-01-01|a|1\nT2|2023-01-01|c|1\nbad\n");
  EXPECT_EQ(claimed["answers"].size(), 3u);
  EXPECT_EQ(claimed["answers"][0]["verdict"], "DUPLICATE");
  EXPECT_EQ(claimed["FIRST"], 1);
  EXPECT_EQ(claimed["REJECTED"], 1);
  EXPECT_EQ(parsed({"check", "kyc"})["rows"], 0);
  EXPECT_EQ(parsed({"remove", "kyc"}, "2023-01-01|c|1\n")["REMOVED"], 1);
  EXPECT_EQ(parsed({"settle", "kyc"}, "T2\n")["SETTLED"], 1);
  EXPECT_EQ(parsed({"drop", "kyc", "--window-of", "2023"})["members"], 2);
  EXPECT_EQ(parsed({"drop", "kyc", "--window-of", "2023"})["state"], "dropped");
  EXPECT_EQ(parsed({"reopen", "kyc", "--window-of", "2023"})["state"], "open");
  EXPECT_TRUE(parsed({"snapshot"}).contains("snapshot_bytes"));
  EXPECT_EQ(parsed({"repair"})["losses"].size(), 0u);
  EXPECT_TRUE(json::parse(RunProgram({"version", "--json"}).out).contains("version"));
  EXPECT_TRUE(parsed({"stats", "no_such_set"}).contains("error"));
}

TEST_F(CliTest, StatsNamesEverythingAboutAWindow) {
  MakeSet();
  Run({"claim", "kyc"}, "T1|2023-05-01|张三|1\nT2|2023-05-01|李四|1\n");
  const json stats = json::parse(Run({"stats", "kyc", "--json"}).out);
  const json& window = stats["sets"][0]["windows"][0];
  EXPECT_EQ(window["window"], "2023");
  EXPECT_EQ(window["members"], 2);
  EXPECT_EQ(window["bits"], 96);
  EXPECT_EQ(window["durability"], "fsync");
  EXPECT_GT(window["owner_bytes"], 0);
  for (const char* key : {"bytes", "bytes_per_member", "load_factor"}) {
    EXPECT_GT(window[key], 0) << key;
  }
  EXPECT_GT(window["false_duplicate_probability"], 0);
  EXPECT_LT(window["false_duplicate_probability"], 1e-20);
  for (const char* key :
       {"log_bytes", "snapshot_bytes", "log_age_seconds", "snapshot_age_seconds"}) {
    EXPECT_TRUE(stats.contains(key)) << key;
  }
  EXPECT_TRUE(stats["snapshot_age_seconds"].is_null());
  EXPECT_GE(stats["log_age_seconds"], 0) << "the log has an age without a snapshot";
  EXPECT_LT(stats["log_age_seconds"], 86400);
  ASSERT_EQ(Run({"snapshot"}).exit_status, 0);
  EXPECT_GT(json::parse(Run({"stats", "--json"}).out)["snapshot_bytes"], 0);
}

TEST_F(CliTest, OverALimitRowsAreRefusedWithTheLimitsName) {
  MakeSet();
  std::string rows;
  for (int i = 0; i < 10'000; ++i) rows += "T|2023-05-01|a|" + std::to_string(i) + "\n";
  const Ran ran = Run({"claim", "kyc", "--memory-bytes-max", "32K"}, rows);
  EXPECT_EQ(ran.exit_status, 1);
  EXPECT_THAT(ran.out + ran.err, HasSubstr("memory_bytes_max"));
  EXPECT_EQ(Run({"claim", "kyc", "--memory-bytes-max", "much"}).exit_status, 2);
  EXPECT_EQ(Run({"claim", "kyc", "--memory-bytes-max", "1GiB"}, "T1|2023-05-01|a|1\n").exit_status,
            0);
}

TEST_F(CliTest, ASecondProcessIsRefusedAndToldWhoHoldsTheData) {
  MakeSet();
  Child holder(Arguments({"claim", "kyc"}));
  ASSERT_TRUE(holder.Write("T1|2023-05-01|张三|1\n"));
  ASSERT_THAT(holder.ReadLine(), StartsWith("FIRST"));  // it has the lock now
  const Ran second = Run({"stats"});
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.err, HasSubstr("firstseen claim"));
  holder.CloseInput();
  EXPECT_EQ(holder.Wait(), 0);
  EXPECT_EQ(Run({"stats"}).exit_status, 0);
}

TEST_F(CliTest, TheBillingServiceExitsZeroOnSigtermAndASecondOneIsRefused) {
  MakeSet();
  std::filesystem::copy_file(FIRSTSEEN_EXAMPLE_CONFIG, path("firstseen.toml"));
  std::filesystem::create_directory(path("inbox"));
  WriteFile("inbox/bad.txt", "no|such|columns\n1|2|3\n");
  const std::vector<std::string> command = {"bill", "run", "--config", path("firstseen.toml")};
  Child service(command);
  while (!std::filesystem::exists(path("failed/bad.txt"))) usleep(10'000);
  const Ran second = RunProgram(command);
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.err, HasSubstr("firstseen bill run"));
  service.Signal(SIGTERM);
  EXPECT_EQ(service.Wait(), 0);
  WriteFile("inbox/bad.txt", "no|such|columns\n1|2|3\n");
  std::vector<std::string> once = command;
  once.push_back("--once");
  EXPECT_EQ(RunProgram(once).exit_status, 1) << "a file went to failed/";
}

TEST_F(CliTest, DamagedFilesAreRefusedUntilRepaired) {
  MakeSet();
  Run({"claim", "kyc"}, "T1|2023-05-01|张三|1\n");
  Run({"claim", "kyc"}, "T2|2023-05-01|李四|1\n");
  DamageLog();
  const Ran refused = Run({"stats"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("repair"));
  const Ran listed = Run({"repair"});
  EXPECT_EQ(listed.exit_status, 1) << "something would be lost";
  EXPECT_NE(listed.out, "");
  EXPECT_EQ(Run({"stats"}).exit_status, 1) << "listing changes nothing";
  EXPECT_EQ(Run({"repair", "--apply"}).exit_status, 0);
  EXPECT_EQ(Run({"stats"}).exit_status, 0);
}

TEST_F(CliTest, ADirectoryWithoutItsLogIsRefusedAndRepairAgrees) {
  MakeSet();
  Run({"claim", "kyc"}, "T1|2023-05-01|张三|1\n");
  for (const std::string& file : Files(data())) {
    if (file.ends_with(".log")) std::filesystem::remove(file);
  }
  EXPECT_EQ(Run({"stats"}).exit_status, 1);
  const Ran listed = Run({"repair"});
  EXPECT_EQ(listed.exit_status, 1);
  EXPECT_THAT(listed.out, HasSubstr("every set and all its members are lost"));
  EXPECT_THAT(listed.err, HasSubstr("--apply"));
  EXPECT_EQ(Run({"stats"}).exit_status, 1) << "listing changes nothing";
  EXPECT_EQ(Run({"repair", "--apply"}).exit_status, 0);
  EXPECT_EQ(Run({"repair"}).out, "nothing to repair\n");
  EXPECT_EQ(Run({"stats"}).exit_status, 0);
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAnError) {
  MakeSet();
  WriteFile("rows.txt", "2023-01-01|a|1\n");
  const std::string command = std::string(FIRSTSEEN_PROGRAM) + " check kyc " + path("rows.txt") +
                              " --data " + data() + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace firstseen
