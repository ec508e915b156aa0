// Import into the embedded store: rows a second and peak memory, for plain and compressed input.
//
//   import_bench [--rows=N] [--dir=DIR] [--plain]
//
// DIR (default: the temporary directory) needs 300 bytes a row. --plain leaves out compressed
// input.
//
// Members are two opaque fields of 24 and 32 characters, 56 bytes as in facts of encrypted names
// and id numbers; every tenth row repeats an earlier one. Each kind of input is made before it is
// timed, so it is read from the page cache, and goes into a new store. One line each:
//
//   input  jobs  rows  seconds  rows/s  rows/CPU s  peak memory
//
// rows/CPU s is what one core does, for machines that have other work as well.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "ingest/import.h"
#include "store/embedded_store.h"

namespace firstseen {
namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Characters of base64, as encrypted fields have them.
void AppendOpaque(uint64_t seed, size_t size, std::string* out) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint64_t bits = 0;
  for (size_t i = 0; i < size; ++i) {
    if (i % 10 == 0) bits = Mix(seed * 16 + i);
    out->push_back(kDigits[bits % 64]);
    bits /= 64;
  }
}

void WriteRows(const std::string& path, uint64_t rows) {
  std::ofstream out(path, std::ios::binary);
  std::string text;
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t member = i % 10 == 9 ? Mix(i) % i : i;
    AppendOpaque(member * 2, 24, &text);
    text += '|';
    AppendOpaque(member * 2 + 1, 32, &text);
    text += fmt::format("|2023-{:02}-{:02}|T{:016}\n", 1 + i * 12 / rows, 1 + i % 28, i);
    if (text.size() > (1 << 20)) {
      out << text;
      text.clear();
    }
  }
  out << text;
}

// In a process of its own, so that its peak memory is its own.
int Measure(const std::string& directory, const std::string& input, uint64_t rows, int jobs,
            bool times, bool tokens) {
  EmbeddedStoreOptions store_options;
  store_options.directory = directory + "/data";
  std::filesystem::remove_all(store_options.directory);
  if (!InitEmbeddedStore(store_options).ok()) return 1;
  auto store = OpenEmbeddedStore(store_options);
  if (!store.ok()) return 1;
  SetOptions set;
  set.window = WindowKind::kYear;
  set.fields = {{"name", kOpaque}, {"id_no", kOpaque}};
  if (!(*store)->CreateSet("kyc", set).ok()) return 1;
  ImportOptions options;
  options.set = "kyc";
  options.paths = {input};
  options.mapping.format.delimiter = '|';
  options.mapping.columns = {"name", "id_no", "ds", "serial"};
  if (times) {
    options.mapping.time_column = "ds";
  } else {
    options.mapping.window_of = 2023;
  }
  if (tokens) options.mapping.token_column = "serial";
  options.rejects = directory + "/rejects";
  options.jobs = jobs;
  const auto report = RunImport(store->get(), options);
  if (!report.ok() || report->rows != rows || report->rejected != 0) {
    fmt::print(stderr, "import_bench: {}\n", report.status().ToString());
    return 1;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_seconds =
      static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  fmt::print("{:<28} {:>4} {:>12} {:>8.2f} {:>12.0f} {:>12.0f} {:>10} MB\n",
             fmt::format("{}{}{}", std::filesystem::path(input).filename().string(),
                         times ? ", times" : "", tokens ? ", tokens" : ""),
             jobs, report->rows, report->seconds, report->rows_per_second,
             static_cast<double>(rows) / cpu_seconds, usage.ru_maxrss / 1024);
  std::fflush(stdout);
  return (*store)->Close().ok() ? 0 : 1;
}

int Run(uint64_t rows, const std::string& base, bool plain_only) {
  std::string directory = base + "/firstseen_import_bench_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  const std::string plain = directory + "/rows";
  WriteRows(plain, rows);
  bool good = true;
  for (const char* command : {"gzip -1 -k", "zstd -q -1", "bzip2 -1 -k"}) {
    good = good && (plain_only || std::system(fmt::format("{} {}", command, plain).c_str()) == 0);
  }
  fmt::print("{:<28} {:>4} {:>12} {:>8} {:>12} {:>12} {:>13}\n", "input", "jobs", "rows", "seconds",
             "rows/s", "rows/CPU s", "peak memory");
  std::fflush(stdout);
  struct Case {
    const char* suffix;
    int jobs;
    bool times;
    bool tokens;
  };
  for (const Case& c :
       {Case{"", 1, false, false}, Case{"", 2, false, false}, Case{"", 2, true, false},
        Case{"", 2, false, true}, Case{".gz", 2, false, false}, Case{".zst", 2, false, false},
        Case{".bz2", 2, false, false}}) {
    if (plain_only && c.suffix[0] != '\0') continue;
    const pid_t child = good ? fork() : -1;
    if (child == 0) _exit(Measure(directory, plain + c.suffix, rows, c.jobs, c.times, c.tokens));
    int result = 1;
    good = child > 0 && waitpid(child, &result, 0) == child && result == 0;
  }
  std::filesystem::remove_all(directory);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace firstseen

int main(int argc, char** argv) {
  uint64_t rows = 10'000'000;
  std::string directory = std::filesystem::temp_directory_path();
  bool plain_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--rows=")) {
      rows = std::strtoull(argv[i] + 7, nullptr, 10);
    } else if (argument.starts_with("--dir=")) {
      directory = argument.substr(6);
    } else if (argument == "--plain") {
      plain_only = true;
    } else {
      fmt::print(stderr, "usage: import_bench [--rows=N] [--dir=DIR] [--plain]\n");
      return 2;
    }
  }
  return firstseen::Run(rows, directory, plain_only);
}
