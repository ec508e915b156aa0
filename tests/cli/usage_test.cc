// Wrong usage: exit status 2, and a message that names what is wrong and what was probably meant.
// Work that failed is another matter: 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cli_fixture.h"

namespace firstseen {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class UsageTest : public CliTest {
 protected:
  // `arguments` are wrong, and the message says `text`.
  void ExpectUsage(const std::vector<std::string>& arguments, const std::string& text) const {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_status, 2) << arguments[0] << ": " << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text)) << arguments[0];
    EXPECT_EQ(ran.out, "") << arguments[0];
  }
  std::vector<std::string> Create(const std::vector<std::string>& options) const {
    std::vector<std::string> command = {"create", "other",       "--fields",
                                        "id_no",  "--normalise", "trim"};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  }
};

TEST_F(UsageTest, AnUnknownSubcommandIsNamedWithTheOneThatWasMeant) {
  const Ran ran = RunProgram({"improt", "kyc", "--data", "x"});
  EXPECT_EQ(ran.exit_status, 2);
  EXPECT_EQ(ran.err, "firstseen: there is no subcommand improt; did you mean import?\n");
  EXPECT_THAT(RunProgram({"bill", "rnu"}).err,
              StartsWith("firstseen bill: there is no subcommand rnu; did you mean run?"));
  EXPECT_THAT(RunProgram({"xylophonist"}).err, HasSubstr("xylophonist; see firstseen --help"));
}

TEST_F(UsageTest, TheVersionIsAFlagToo) {
  const Ran ran = RunProgram({"--version"});
  EXPECT_EQ(ran.exit_status, 0);
  EXPECT_EQ(ran.out, RunProgram({"version"}).out);
  EXPECT_THAT(ran.out, StartsWith("firstseen "));
}

TEST_F(UsageTest, WrongWordsAreAnsweredWithTheRightOnes) {
  ASSERT_EQ(Run({"init"}).exit_status, 0);
  const auto err = [&](const std::vector<std::string>& options) {
    const Ran ran = Run(Create(options));
    EXPECT_EQ(ran.exit_status, 2);
    return Lines(ran.err)[0];
  };
  EXPECT_EQ(err({"--window", "week"}), "--window: week is none of day, month, none, year");
  EXPECT_EQ(err({"--window", "year", "--durability", "0"}),
            "--durability: 0 is none of fsync, interval, none");
}

TEST_F(UsageTest, CountsAreNotNegative) {
  ASSERT_EQ(Run({"init"}).exit_status, 0);
  for (const char* count : {"-1", "1e9", "18446744073709551616", ""}) {
    ExpectUsage(Create({"--window", "year", "--expected", count}), "--expected");
  }
  EXPECT_EQ(
      RunProgram({"generate", "--out", path("g"), "--history-rows", "-5", "--transactions", "1000"})
          .exit_status,
      2);
  EXPECT_EQ(Run(Create({"--window", "year", "--expected", "1000"})).exit_status, 0);
}

TEST_F(UsageTest, AnUnknownSetIsNamedWithTheOneThatWasMeant) {
  ASSERT_EQ(Run({"init"}).exit_status, 0);
  ExpectUsage({"stats", "kyc"}, "there is no set kyc; there is none yet");
  MakeSet();
  WriteFile("rows", "a|1\n");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"stats", "kcy"},
           {"check", "kcy", path("rows")},
           {"claim", "kcy", path("rows")},
           {"remove", "kcy", path("rows")},
           {"settle", "kcy", path("rows")},
           {"drop", "kcy", "--window-of", "2023"},
           {"reopen", "kcy", "--window-of", "2023"},
           {"import", "kcy", path("rows"), "--columns", "name,id_no", "--window-of", "2023"}}) {
    ExpectUsage(command, "there is no set kcy; did you mean kyc?");
  }
}

TEST_F(UsageTest, ASetThatIsThereIsNotMadeDifferently) {
  MakeSet();
  ExpectUsage({"create", "kyc", "--window", "month", "--fields", "name,id_no", "--normalise",
               "trim,width,zero-width,name-dot,x-check-digit,id-15-to-18"},
              "set kyc exists and is different");
}

TEST_F(UsageTest, AnImportThatCannotWorkAsAskedIsWrongUsage) {
  MakeSet();
  WriteFile("rows", "a|1\n");
  const auto import = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"import", "kyc", path("rows")};
    command.insert(command.end(), options.begin(), options.end());
    return command;
  };
  ExpectUsage(import({"--columns", "name,id_no"}), "give the window of all rows");
  ExpectUsage(import({"--columns", "name,id", "--window-of", "2023"}), "column id_no is needed");
  ExpectUsage(import({"--columns", "name,id_no", "--window-of", "2200"}), "2200");
  ExpectUsage(import({"--columns", "name,id_no", "--window-of", "2023", "--settle"}),
              "token column");
  // What it reads from is another matter.
  EXPECT_EQ(
      Run({"import", "kyc", path("missing"), "--columns", "name,id_no", "--window-of", "2023"})
          .exit_status,
      1);
  WriteFile("rows.lzo", "a|1\n");
  EXPECT_EQ(
      Run({"import", "kyc", path("rows.lzo"), "--columns", "name,id_no", "--window-of", "2023"})
          .exit_status,
      1);
}

TEST_F(UsageTest, AWrongConfigurationIsWrongUsage) {
  MakeSet();
  std::filesystem::copy_file(FIRSTSEEN_EXAMPLE_CONFIG, path("firstseen.toml"));
  const std::string config = path("firstseen.toml");
  const auto run = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"bill", "run", "--once"};
    command.insert(command.end(), options.begin(), options.end());
    return RunProgram(command);
  };
  const Ran unknown = run({"--config", config, "--set", "ledger.keep_dyas=3"});
  EXPECT_EQ(unknown.exit_status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("keep_days"));
  EXPECT_EQ(run({"--config", config, "--set", "ledger.keep_days=many"}).exit_status, 2);
  EXPECT_EQ(run({"--config", path("missing.toml")}).exit_status, 2);
  WriteFile("bad.toml", "[[[");
  EXPECT_EQ(run({"--config", path("bad.toml")}).exit_status, 2);
}

TEST_F(UsageTest, OnlyAWindowThatTheSetHasIsDropped) {
  MakeSet();
  ExpectUsage({"drop", "kyc", "--window-of", "2022"}, "no window 2022, and no other yet");
  Run({"claim", "kyc"}, "T1|2021-05-01|a|1\nT2|2022-05-01|a|1\nT3|2022-05-01|b|1\n");
  ExpectUsage({"drop", "kyc", "--window-of", "2032"}, "no window 2032; it has 2021, 2022");
  ExpectUsage({"drop", "kyc", "--window-of", "2032", "--unseen"}, "2032");
  EXPECT_EQ(Run({"drop", "kyc", "--window-of", "2022"}).out,
            "kyc 2022: dropped, 2 members forgotten\n");
  const Ran again = Run({"drop", "kyc", "--window-of", "2022"});
  EXPECT_EQ(again.exit_status, 0);
  EXPECT_THAT(again.err, HasSubstr("dropped before"));
  EXPECT_EQ(Run({"drop", "kyc", "--window-of", "2021"}).out,
            "kyc 2021: dropped, 1 member forgotten\n");
  EXPECT_EQ(Run({"drop", "kyc", "--window-of", "2020", "--unseen"}).exit_status, 0);
  EXPECT_THAT(Run({"claim", "kyc"}, "T4|2020-05-01|a|1\n").out, StartsWith("CLOSED|2020|"));
}

TEST_F(UsageTest, ReopeningSaysThatTheMembersAreForgotten) {
  MakeSet();
  Run({"claim", "kyc"}, "T1|2022-05-01|a|1\n");
  const Ran open = Run({"reopen", "kyc", "--window-of", "2022"});
  EXPECT_EQ(open.exit_status, 0);
  EXPECT_THAT(open.err, HasSubstr("it is open"));
  ExpectUsage({"reopen", "kyc", "--window-of", "2012"}, "no window 2012; it has 2022");
  ASSERT_EQ(Run({"drop", "kyc", "--window-of", "2022"}).exit_status, 0);
  const Ran reopened = Run({"reopen", "kyc", "--window-of", "2022"});
  EXPECT_EQ(reopened.exit_status, 0);
  EXPECT_THAT(reopened.err, HasSubstr("members were forgotten"));
}

TEST_F(UsageTest, ASecondInitSaysThatNothingWasChanged) {
  EXPECT_THAT(Run({"init"}).err, Not(HasSubstr("nothing was changed")));
  const Ran again = Run({"init"});
  EXPECT_EQ(again.exit_status, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing was changed"));
  EXPECT_THAT(again.err, Not(HasSubstr("back up")));
  EXPECT_EQ(json::parse(Run({"init", "--json"}).out)["made"], false);
}

TEST_F(UsageTest, APipeAsKeyFileIsRefusedAndNotWaitedFor) {
  MakeSet();
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const Ran ran = Run({"stats", "--key-file", path("pipe")});
  EXPECT_EQ(ran.exit_status, 1);
  EXPECT_THAT(ran.err, HasSubstr("no regular file"));
}

TEST_F(UsageTest, ReasonsFitTheCommandThatGivesThem) {
  MakeSet();
  const std::string longest(3'000'000, 'x');
  const Ran claim = Run({"claim", "kyc"}, "T|2023-01-01|a|" + longest + "\n");
  EXPECT_THAT(claim.out, HasSubstr("line 1: the line has more than 1048576 bytes; shorten it\n"));
  EXPECT_THAT(claim.err, HasSubstr("1 row, 1 REJECTED"));
  EXPECT_EQ(Run({"claim", "kyc", "--encoding", "gb18030"}, "T|2023-01-01|\xff|1\n").out,
            "REJECTED|line 1: the line is not valid GB18030; correct the encoding of this line\n");
}

TEST_F(UsageTest, AnImportSaysWhyMostRowsWereRejected) {
  MakeSet();
  WriteFile("rows", "a|1\nb\nc\n|\n");
  const Ran ran =
      Run({"import", "kyc", path("rows"), "--columns", "name,id_no", "--window-of", "2023"});
  EXPECT_EQ(ran.exit_status, 0);
  EXPECT_THAT(Lines(ran.out)[0], StartsWith("4 rows of 1 file: 1 added, 0 duplicates, 3 rejected"));
  EXPECT_THAT(ran.err, HasSubstr("the commonest reason (2 rows): the row has 1 field instead of 2;"
                                 " complete the row, or check the delimiter\n"));
}

}  // namespace
}  // namespace firstseen
