// kill -9 at random moments of the real program, and start again, the last time 30 days later: the
// set of billed transactions is that of a run that nobody killed, each in one file.
#ifdef FIRSTSEEN_PROGRAM

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "billing/billing_place.h"
#include "support/random.h"

extern char** environ;

namespace firstseen {
namespace {

class Program {
 public:
  Program(const BillingPlace& place, const std::string& now) {
    const std::string config = place.path() + "/firstseen.toml";
    const std::string log = place.path() + "/program.log";
    std::vector<std::string> words = {FIRSTSEEN_PROGRAM, "bill",  "run", "--config", config,
                                      "--once",          "--now", now};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    EXPECT_EQ(posix_spawn(&pid_, FIRSTSEEN_PROGRAM, &actions, nullptr, arguments.data(), environ),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void KillAfter(std::chrono::microseconds delay) {
    std::this_thread::sleep_for(delay);
    kill(pid_, SIGKILL);
    Wait();
  }
  // Exit status, or -1 when it was killed.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

void Deliver(const BillingPlace& place, uint64_t seed, int files, int rows) {
  Random random(seed);
  uint64_t serial = 0;
  for (int file = 0; file < files; ++file) {
    std::vector<std::string> lines;
    for (int row = 0; row < rows; ++row) {
      const uint64_t person = random.Below(static_cast<uint64_t>(files) * rows / 2);
      const int minute = 50 + file % 20;
      const std::string time =
          fmt::format("{} {:02}:{:02}:{:02}", minute < 60 ? "2023-12-31" : "2024-01-01",
                      minute < 60 ? 23 : 0, minute % 60, row % 60);
      const char* app = random.OneIn(5) ? "free" : random.OneIn(2) ? "loan" : "wallet";
      const auto line = [&](const char* status) {
        return fmt::format("{0}|o{0}|{1}|{2}|{3}.{4:02}|{5}|Person {6}|ID{6}", serial, app, time,
                           random.Below(100), random.Below(100), status, person);
      };
      lines.push_back(line(random.OneIn(10) ? "FAILED" : "SUCCESS"));
      if (random.OneIn(15)) lines.push_back(lines.back());
      if (random.OneIn(20)) lines.push_back(line("REVERSED"));
      ++serial;
    }
    place.Deliver(fmt::format("{:04}.txt", file), lines);
  }
}

void KillLoop(int rounds, int files, int rows) {
  Random random;
  const uint64_t seed = random.Next();
  const PlaceOptions settings = {.settings = {}};
  BillingPlace reference(settings);
  Deliver(reference, seed, files, rows);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Program(reference, "2024-01-01T00:16:00+08:00").Wait(), 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);
  const std::set<std::string> expected = reference.BilledOnce();
  ASSERT_FALSE(expected.empty());

  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    BillingPlace place(settings);
    Deliver(place, seed, files, rows);
    for (uint64_t kills = 1 + random.Below(6); kills > 0; --kills) {
      Program(place, "2024-01-01T00:16:00+08:00")
          .KillAfter(std::chrono::microseconds(random.Below(whole.count())));
    }
    place.Set("bills.empty_files=false");
    const int status = Program(place, "2024-01-31T00:16:00+08:00").Wait();
    ASSERT_EQ(status, 0) << place.Read("program.log");
    ASSERT_EQ(place.BilledOnce(), expected);
    const VerifyReport report = place.Verify();
    ASSERT_TRUE(report.ok()) << DescribeFindings(report);
    ASSERT_EQ(report.billed, expected.size());
  }
}

TEST(BillKillTest, KilledAtRandomMomentsItBillsTheSame) { KillLoop(3, 12, 40); }

TEST(BillKillLong, KilledAtRandomMomentsItBillsTheSame) { KillLoop(60, 30, 100); }

TEST(BillServiceTest, SigtermFinishesTheFileInHandAndExitsWithZero) {
  BillingPlace place;
  Deliver(place, 1, 3, 10);
  const std::string config = place.path() + "/firstseen.toml";
  const pid_t pid = fork();
  if (pid == 0) {
    const int log = open((place.path() + "/program.log").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(log, 1);
    dup2(log, 2);
    execl(FIRSTSEEN_PROGRAM, FIRSTSEEN_PROGRAM, "bill", "run", "--config", config.c_str(), nullptr);
    _exit(127);
  }
  while (!place.Exists("done/0000.txt")) {
    ASSERT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << place.Read("program.log");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // While it runs, another one is refused and names it.
  EXPECT_EQ(Program(place, "2024-01-01T00:16:00+08:00").Wait(), 1);
  ASSERT_EQ(kill(pid, SIGTERM), 0);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << place.Read("program.log");
  for (const auto& entry : std::filesystem::directory_iterator(place.path() + "/done")) {
    EXPECT_NE(entry.path().extension(), ".tmp");
  }
}

}  // namespace
}  // namespace firstseen

#endif  // FIRSTSEEN_PROGRAM
