#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/human.h"

namespace firstseen {
namespace {

constexpr int64_t kRedrawNanos = 200'000'000;
constexpr int kBarChars = 24;
constexpr int kDefaultWidth = 80;

int TerminalWidth() {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultWidth;
}

std::string Bar(double share) {
  const int filled = static_cast<int>(share * kBarChars);
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < kBarChars) bar += '>';
  bar.resize(kBarChars, ' ');
  return fmt::format("[{}] {:3.0f}%", bar, share * 100);
}

}  // namespace

bool StderrIsTerminal() {
  const char* const term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::string ProgressLine(std::string_view label, std::string_view unit, uint64_t done,
                         uint64_t total, uint64_t items, double seconds, int width) {
  const double share =
      total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double rate = seconds > 0 ? static_cast<double>(items) / seconds : 0;
  std::string line(label);
  if (total > 0) line += " " + Bar(share);
  line += fmt::format("  {} {}  {} {}/s", FormatCount(items), unit,
                      FormatCount(static_cast<uint64_t>(rate)), unit);
  if (share > 0) line += fmt::format("  {} left", FormatSeconds(seconds * (1 - share) / share));
  if (line.size() > static_cast<size_t>(width)) line.resize(static_cast<size_t>(width));
  return line;
}

Progress::Progress(Options options)
    : options_(std::move(options)),
      start_nanos_(options_.clock->MonotonicNanos()),
      drawn_nanos_(start_nanos_) {}

Progress::~Progress() { Clear(); }

void Progress::Update(uint64_t done, uint64_t items) {
  if (!options_.shown) return;
  const int64_t now = options_.clock->MonotonicNanos();
  MutexLock lock(mutex_);
  if (now - drawn_nanos_ < kRedrawNanos) return;
  drawn_nanos_ = now;
  // One column is left free: a full line would make some terminals wrap.
  std::string line =
      ProgressLine(options_.label, options_.unit, done, options_.total, items,
                   static_cast<double>(now - start_nanos_) * 1e-9, TerminalWidth() - 1);
  const size_t chars = line.size();
  line.resize(std::max(chars, drawn_chars_), ' ');
  drawn_chars_ = chars;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  MutexLock lock(mutex_);
  if (drawn_chars_ == 0) return;
  std::fprintf(stderr, "\r%s\r", std::string(drawn_chars_, ' ').c_str());
  std::fflush(stderr);
  drawn_chars_ = 0;
}

}  // namespace firstseen
