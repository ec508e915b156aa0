// kill -9 at random moments, and starting again: nothing answered is lost, nothing counted twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cli/cli_fixture.h"

namespace firstseen {
namespace {

using nlohmann::json;

class KillTest : public CliTest {
 protected:
  KillTest() {
    const char* given = std::getenv("FIRSTSEEN_SEED");
    const uint64_t seed =
        given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::printf("FIRSTSEEN_SEED=%llu\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
  }

  uint64_t Below(uint64_t n) { return random_() % n; }

  void SleepUpTo(uint64_t microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(Below(microseconds)));
  }

  // Kills `kills` claims runs; then checks everything that was answered.
  void KillClaims(int kills);
  // Kills `kills` import runs, then lets one end; its report must be that of an undisturbed run.
  void KillImports(int kills, uint64_t rows);

  std::mt19937_64 random_;
};

void KillTest::KillClaims(int kills) {
  MakeSet();
  std::map<std::string, std::string> answered;  // row to answer
  constexpr int kPeople = 2'000;
  int serial = 0;
  for (int i = 0; i < kills; ++i) {
    Child child(Arguments({"claim", "kyc"}));
    std::vector<std::string> sent;
    for (int burst = 0; burst < 20; ++burst) {
      std::string text;
      for (int row = 0; row < 50; ++row) {
        sent.push_back("T" + std::to_string(serial++) + "|2023-05-01|p|" +
                       std::to_string(Below(kPeople)));
        text += sent.back() + "\n";
      }
      if (!child.Write(text)) break;
      if (burst == 0) answered[sent[0]] = child.ReadLine();  // it runs now
    }
    SleepUpTo(30'000);
    child.Signal(SIGKILL);
    child.Wait();
    const std::string rest = child.ReadAll();
    // The last line may have been cut by the kill; a cut answer is none.
    std::vector<std::string> lines = Lines(rest);
    if (!rest.empty() && rest.back() != '\n') lines.pop_back();
    for (size_t line = 0; line < lines.size(); ++line) answered[sent[line + 1]] = lines[line];
  }
  std::string again;
  for (const auto& [row, answer] : answered) again += row + "\n";
  const std::vector<std::string> lines = Lines(Run({"claim", "kyc"}, again).out);
  ASSERT_EQ(lines.size(), answered.size());
  size_t next = 0;
  int firsts = 0;
  for (const auto& [row, answer] : answered) {
    const std::string& now = lines[next++];
    if (answer.starts_with("FIRST")) {
      ++firsts;
      EXPECT_EQ(now, "REPEAT" + answer.substr(5)) << "an answered claim was lost";
    } else {
      EXPECT_TRUE(answer.starts_with("DUPLICATE")) << answer;
      EXPECT_TRUE(now.starts_with("DUPLICATE")) << now;
    }
  }
  EXPECT_GT(firsts, 0);
}

void KillTest::KillImports(int kills, uint64_t rows) {
  MakeSet();
  const std::string columns = "name,id_no,ds,biz_seq_no";
  ASSERT_EQ(RunProgram({"generate", "--seed", "5", "--history-rows", std::to_string(rows),
                        "--transactions", "1000", "--out", path("year")})
                .exit_status,
            0);
  const json truth = json::parse(Content(path("year/truth.json")));
  const std::vector<std::string> command =
      Arguments({"import", "kyc", path("year/history"), "--columns", columns, "--time-column", "ds",
                 "--rejects", path("rejects"), "--json"});
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    Child child(command);
    SleepUpTo(400'000);
    child.Signal(SIGKILL);
    if (child.Wait() != -SIGKILL) break;  // it was done already
    ++killed;
  }
  const Ran ran = RunProgram(command);
  ASSERT_EQ(ran.exit_status, 0) << ran.err;
  const json report = json::parse(ran.out);
  const json stats = json::parse(Run({"stats", "--json"}).out);
  EXPECT_EQ(stats["sets"][0]["windows"][0]["members"], truth["history"]["members"]);
  EXPECT_EQ(report["rows"], truth["history"]["rows"]);
  EXPECT_EQ(report["rejected"], truth["history"]["rejected"]);
  if (killed < kills) return;  // a run before this one ended well
  // The last kill may have struck between the end of the import and that of the program: then this
  // was another import of the same rows. Never is it a part.
  if (report["added"] != 0) {
    EXPECT_EQ(report["added"], truth["history"]["members"]);
  } else {
    EXPECT_EQ(report["duplicates"],
              report["rows"].get<uint64_t>() - report["rejected"].get<uint64_t>());
  }
}

TEST_F(KillTest, ClaimsAnsweredBeforeAKillAreThere) { KillClaims(3); }

TEST_F(KillTest, AnImportKilledAndResumedReportsWhatAWholeOneDoes) { KillImports(3, 100'000); }

class KillLong : public KillTest {};

// How many kills: the environment's FIRSTSEEN_KILLS (scripts/soak.sh), else `otherwise`.
int Kills(int otherwise) {
  const char* const given = std::getenv("FIRSTSEEN_KILLS");
  return given != nullptr ? std::atoi(given) : otherwise;
}

TEST_F(KillLong, ClaimsAnsweredBeforeAKillAreThere) { KillClaims(Kills(200)); }

TEST_F(KillLong, AnImportKilledAndResumedReportsWhatAWholeOneDoes) { KillImports(25, 2'000'000); }

}  // namespace
}  // namespace firstseen
