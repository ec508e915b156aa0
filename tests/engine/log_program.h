// A program that uses a log on a disk that can fail, and what it was promised: what the tests of
// the log under faults share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/log.h"
#include "support/faulty_file_system.h"

namespace firstseen::log_program {

using Disk = FaultyFileSystem;

inline constexpr char kDirectory[] = "/data";
inline constexpr int64_t kNever = 1'000'000'000;

inline Log::Options OptionsFor(FileSystem* disk) {
  Log::Options options;
  options.files = disk;
  options.directory = kDirectory;
  options.segment_bytes = 1024;
  options.interval_ms = kNever;
  return options;
}

// What was appended, and how much of it has been promised.
struct History {
  std::vector<std::string> records;  // record i has number i + 1
  uint64_t acknowledged = 0;
  uint64_t after = 0;  // a snapshot holds everything up to here
};

// A program that uses a log, and remembers what it was told.
class Program {
 public:
  explicit Program(Disk* disk, History history = {}) : disk_(disk), history_(std::move(history)) {}

  // Opens the log and compares. Returns what is wrong, or "".
  std::string Open() {
    std::vector<std::string> replayed;
    uint64_t next = history_.after + 1;
    std::string wrong;
    auto log = Log::Open(OptionsFor(disk_), history_.after,
                         [&](uint64_t sequence, std::string_view record) {
                           if (sequence != next++) wrong = "numbers out of order";
                           replayed.emplace_back(record);
                           return absl::OkStatus();
                         });
    if (!log.ok()) return log.status().ToString();
    if (!wrong.empty()) return wrong;
    const uint64_t last = history_.after + replayed.size();
    if (last > history_.records.size()) return "more records than were appended";
    if (last < history_.acknowledged) {
      return fmt::format("record {} was acknowledged, {} is the last", history_.acknowledged, last);
    }
    for (uint64_t i = history_.after; i < last; ++i) {
      if (replayed[i - history_.after] != history_.records[i]) {
        return fmt::format("record {} is another one", i + 1);
      }
    }
    if ((*log)->durable() != last) return "durable() is not the last record";
    history_.records.resize(last);
    history_.acknowledged = last;
    log_ = *std::move(log);
    return "";
  }

  // False when the log refused.
  bool Append(std::string record) {
    {
      MutexLock lock(mutex_);
      history_.records.push_back(record);
    }
    const uint64_t sequence = log_->Append(record);
    MutexLock lock(mutex_);
    if (sequence == 0) {
      history_.records.pop_back();
      return false;
    }
    EXPECT_EQ(sequence, history_.records.size());
    return true;
  }

  bool Wait() { return log_->WaitDurable(log_->last_appended()).ok(); }

  bool Snapshot() {
    const absl::StatusOr<uint64_t> first = log_->Rotate();
    if (!first.ok()) return false;
    {
      MutexLock lock(mutex_);
      history_.after = *first - 1;
    }
    return log_->RemoveUpTo(*first - 1).ok();
  }

  // May be called while another thread appends.
  History history() {
    MutexLock lock(mutex_);
    History copy = history_;
    copy.acknowledged = std::max(copy.acknowledged, log_ != nullptr ? log_->durable() : 0);
    return copy;
  }

  Log* log() { return log_.get(); }
  std::string Name(std::string_view kind) { return fmt::format("{} {}", kind, ++names_); }

 private:
  Disk* const disk_;
  Mutex mutex_;
  History history_;
  std::unique_ptr<Log> log_;
  int names_ = 0;
};

// Single records, groups, records larger than a segment, several segments, a snapshot, and at the
// end records that nobody waits for. Goes on whatever fails.
inline void Work(Program* program, std::string_view kind) {
  program->Append(program->Name(kind));
  program->Wait();
  program->Append(program->Name(kind) + std::string(1500, 'L'));
  program->Wait();
  for (int i = 0; i < 3; ++i) program->Append(program->Name(kind) + std::string(200, 'g'));
  program->Wait();
  for (int i = 0; i < 6; ++i) {
    program->Append(program->Name(kind) + std::string(150, 's'));
    program->Wait();
  }
  program->Snapshot();
  for (int i = 0; i < 3; ++i) {
    program->Append(program->Name(kind));
    program->Wait();
  }
  program->Append(program->Name(kind));
  program->Append(program->Name(kind));
}

struct Moment {
  std::unique_ptr<Disk> disk;
  History history;
};

// Calls `take` after each operation while `Work` runs on `disk`, and once after the end.
inline void WorkAndTake(Disk* disk, const History& before, std::string_view kind, bool close,
                        const std::function<void(History)>& take) {
  Program program(disk, before);
  std::atomic<bool> open = false;
  disk->set_after_operation([&](uint64_t) {
    // While the log is being opened nothing new is promised.
    take(open.load() ? program.history() : before);
  });
  ASSERT_EQ(program.Open(), "");
  open = true;
  Work(&program, kind);
  if (close) {
    ASSERT_TRUE(program.log()->Close().ok());
  }
  const History end = program.history();
  disk->set_after_operation(nullptr);
  take(end);
}

inline std::string OpenAgain(Disk* disk, const History& history) {
  return Program(disk, history).Open();
}

}  // namespace firstseen::log_program
