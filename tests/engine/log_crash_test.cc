// The power goes or the program dies at each operation of the log. Every acknowledged record must
// be there, in order, without a hole, and no record that was never appended.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/log_program.h"
#include "support/random.h"

namespace firstseen::log_program {
namespace {

TEST(LogCrashTest, PowerLossAtAnyOperationKeepsEveryAcknowledgedRecord) {
  Disk disk;
  std::vector<Moment> moments;
  WorkAndTake(&disk, {}, "first", true, [&](const History& history) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      moments.push_back({disk.AfterPowerLoss(seed), history});
    }
  });
  ASSERT_GT(moments.size(), 1000u);
  for (const Moment& moment : moments) {
    ASSERT_EQ(OpenAgain(moment.disk.get(), moment.history), "");
  }
}

// What a first recovery cut off must not come back after a second one.
TEST(LogCrashTest, PowerLossAgainAfterRecoveryKeepsToTheFirstRecovery) {
  Disk disk;
  std::vector<Moment> first;
  WorkAndTake(&disk, {}, "first", false, [&](const History& history) {
    for (uint64_t seed : {0, 1, 2, 3}) first.push_back({disk.AfterPowerLoss(seed), history});
  });
  for (const Moment& moment : first) {
    std::vector<Moment> second;
    Program program(moment.disk.get(), moment.history);
    ASSERT_EQ(program.Open(), "");
    const auto take = [&](uint64_t) {
      for (uint64_t seed : {0, 1, 2}) {
        second.push_back({moment.disk->AfterPowerLoss(seed), program.history()});
      }
    };
    take(0);
    moment.disk->set_after_operation(take);
    // The same shapes as in the first life.
    for (int i = 0; i < 3; ++i) {
      program.Append(program.Name("later"));
      program.Wait();
    }
    for (const Moment& again : second) {
      ASSERT_EQ(OpenAgain(again.disk.get(), again.history), "");
    }
    ASSERT_TRUE(program.log()->Close().ok());
  }
}

// The program dies, is started again, answers from what it read, and then the power goes.
TEST(LogCrashTest, WhatARestartedProgramReadsIsOnDisk) {
  Disk disk;
  std::vector<Moment> moments;
  WorkAndTake(&disk, {}, "first", false, [&](const History& history) {
    moments.push_back({disk.AfterProcessCrash(), history});
  });
  for (const Moment& moment : moments) {
    Program restarted(moment.disk.get(), moment.history);
    ASSERT_EQ(restarted.Open(), "");
    for (uint64_t seed = 0; seed < 10; ++seed) {
      auto after = moment.disk->AfterPowerLoss(seed);
      ASSERT_EQ(OpenAgain(after.get(), restarted.history()), "");
    }
  }
}

TEST(LogCrashTest, DamageToTheLastFrameOfAClosedLogIsNoticedAfterPowerLoss) {
  Disk disk;
  Program program(&disk);
  ASSERT_EQ(program.Open(), "");
  program.Append("record");
  ASSERT_TRUE(program.log()->Close().ok());
  auto after = disk.AfterPowerLoss(0);
  const std::string path = "/data/00000000000000000001.log";
  std::string content = after->Content(path);
  content[64 + 56 + 5] ^= 1;
  after->SetContent(path, content);
  EXPECT_THAT(OpenAgain(after.get(), program.history()), testing::HasSubstr("DATA_LOSS"));
}

// ---- Random lives: any workload, any fault, any end, again and again on the same disk.

void LiveOnce(Random* random, Program* program) {
  for (uint64_t steps = random->Below(30); steps > 0; --steps) {
    switch (random->Below(8)) {
      case 0:
        program->Snapshot();
        break;
      case 1:
        program->log()->Nudge();
        break;
      case 2:
      case 3:
      case 4:
        program->Wait();
        break;
      default:
        program->Append(program->Name("random") + std::string(random->Below(700), 'r'));
    }
  }
  if (random->OneIn(3)) program->log()->Close().IgnoreError();
}

void LiveAndDie(Random* random, uint64_t lives) {
  auto disk = std::make_unique<Disk>();
  History history;
  for (uint64_t life = 0; life < lives && !testing::Test::HasFailure(); ++life) {
    const bool faulty = random->OneIn(2);
    if (faulty) {
      disk->FailAt({.at = 1 + random->Below(60),
                    .for_good = random->OneIn(2),
                    .error = random->OneIn(2) ? Disk::Error::kIo : Disk::Error::kNoSpace,
                    .tear = random->OneIn(2)});
    }
    Program program(disk.get(), history);
    const std::string wrong = program.Open();
    if (wrong.empty()) {
      LiveOnce(random, &program);
      history = program.history();
    } else {
      ASSERT_TRUE(faulty && wrong.find("(injected)") != std::string::npos) << wrong;
    }
    auto next = random->OneIn(2) ? disk->AfterProcessCrash() : disk->AfterPowerLoss(random->Next());
    // The old program's writer may still be at work on the old disk.
    if (program.log() != nullptr) program.log()->Close().IgnoreError();
    disk = std::move(next);
  }
}

TEST(LogCrashTest, RandomLivesKeepEveryAcknowledgedRecord) {
  Random random;
  for (int i = 0; i < 100 && !HasFailure(); ++i) LiveAndDie(&random, 8);
}

TEST(LogCrashLong, RandomLivesKeepEveryAcknowledgedRecord) {
  Random random;
  for (int i = 0; i < 10'000 && !HasFailure(); ++i) LiveAndDie(&random, 20);
}

}  // namespace
}  // namespace firstseen::log_program
