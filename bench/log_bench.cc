// The log: records made durable a second by 1, 8, 64 and 512 threads that each wait for their own
// record, beside the rate at which the disk does bare fdatasyncs on a preallocated file. The first
// divided by the second is what group commit gains.
//
//   log_bench [DIRECTORY] [SECONDS]    directory on the disk to be measured, default "."; seconds
//                                      for each line, default 2
//
// Output, one line each:  what  threads  a second  p50 us  p99 us
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "engine/log.h"

namespace firstseen {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kRecordBytes = 40;  // about what a claim with an owner takes

double Seconds(SteadyClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void Print(std::string_view what, int threads, double seconds, std::vector<double>* latencies) {
  std::sort(latencies->begin(), latencies->end());
  const auto at = [&](double share) {
    return (*latencies)[static_cast<size_t>(share * static_cast<double>(latencies->size() - 1))];
  };
  fmt::print("{:<22} {:>4} threads {:>9.0f}/s  p50 {:>7.0f} us  p99 {:>7.0f} us\n", what, threads,
             static_cast<double>(latencies->size()) / seconds, at(0.5) * 1e6, at(0.99) * 1e6);
}

// The disk alone: one small write and one fdatasync after the other.
absl::Status MeasureSyncs(const std::string& directory, double seconds) {
  const std::string path = directory + "/bare";
  ASSIGN_OR_RETURN(const auto file, FileSystem::Posix()->Open(path, OpenMode::kCreate));
  RETURN_IF_ERROR(file->Allocate(64 << 20));
  RETURN_IF_ERROR(file->Sync());
  const std::string block(128, 'x');
  std::vector<double> latencies;
  const auto start = SteadyClock::now();
  for (uint64_t offset = 0; Seconds(SteadyClock::now() - start) < seconds; offset += block.size()) {
    const auto begin = SteadyClock::now();
    RETURN_IF_ERROR(file->Write(offset, block));
    RETURN_IF_ERROR(file->Sync());
    latencies.push_back(Seconds(SteadyClock::now() - begin));
  }
  Print("bare fdatasync", 1, Seconds(SteadyClock::now() - start), &latencies);
  return absl::OkStatus();
}

absl::Status MeasureLog(const std::string& directory, int threads, double seconds) {
  RETURN_IF_ERROR(FileSystem::Posix()->CreateDirectory(directory));
  ASSIGN_OR_RETURN(const auto log,
                   Log::Open({.directory = directory}, 0,
                             [](uint64_t, std::string_view) { return absl::OkStatus(); }));
  std::vector<std::vector<double>> latencies(static_cast<size_t>(threads));
  std::vector<absl::Status> statuses(static_cast<size_t>(threads));
  std::atomic<bool> stop = false;
  const std::string record(kRecordBytes, 'x');
  std::vector<std::thread> workers;
  const auto start = SteadyClock::now();
  for (size_t t = 0; t < static_cast<size_t>(threads); ++t) {
    workers.emplace_back([&, t] {
      while (!stop && statuses[t].ok()) {
        const auto begin = SteadyClock::now();
        statuses[t] = log->WaitForSpace();
        if (statuses[t].ok()) statuses[t] = log->WaitDurable(log->Append(record));
        latencies[t].push_back(Seconds(SteadyClock::now() - begin));
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  const double elapsed = Seconds(SteadyClock::now() - start);
  std::vector<double> all;
  for (size_t t = 0; t < static_cast<size_t>(threads); ++t) {
    RETURN_IF_ERROR(statuses[t]);
    all.insert(all.end(), latencies[t].begin(), latencies[t].end());
  }
  Print("append and wait", threads, elapsed, &all);
  return log->Close();
}

// Records that nobody waits for, as an import makes them: bytes a second.
absl::Status MeasureStream(const std::string& directory, double seconds) {
  RETURN_IF_ERROR(FileSystem::Posix()->CreateDirectory(directory));
  ASSIGN_OR_RETURN(const auto log,
                   Log::Open({.directory = directory}, 0,
                             [](uint64_t, std::string_view) { return absl::OkStatus(); }));
  const std::string record(100'000, 'x');
  uint64_t bytes = 0;
  const auto start = SteadyClock::now();
  while (Seconds(SteadyClock::now() - start) < seconds) {
    RETURN_IF_ERROR(log->WaitForSpace());
    log->Append(record);
    bytes += record.size();
  }
  RETURN_IF_ERROR(log->Close());
  fmt::print("{:<22} {:>4} thread  {:>9.0f} MB/s, all on disk\n", "100 kB records", 1,
             static_cast<double>(bytes) / Seconds(SteadyClock::now() - start) / 1e6);
  return absl::OkStatus();
}

absl::Status Run(const std::string& parent, double seconds) {
  const std::string directory = parent + "/log_bench." + std::to_string(getpid());
  RETURN_IF_ERROR(FileSystem::Posix()->CreateDirectory(directory));
  absl::Status status = MeasureSyncs(directory, seconds);
  for (const int threads : {1, 8, 64, 512}) {
    if (!status.ok()) break;
    status = MeasureLog(fmt::format("{}/{}", directory, threads), threads, seconds);
  }
  if (status.ok()) status = MeasureStream(directory + "/stream", seconds);
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace
}  // namespace firstseen

int main(int argc, char** argv) {
  const absl::Status status =
      firstseen::Run(argc > 1 ? argv[1] : ".", argc > 2 ? std::atof(argv[2]) : 2);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.ToString());
  return 1;
}
