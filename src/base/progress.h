// A progress bar on stderr for work that takes long: share done, rate, time left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace firstseen {

// Whether stderr is a terminal that a bar may be drawn on (not TERM=dumb). NO_COLOR does not turn
// the bar off: it has no colours.
bool StderrIsTerminal();

// One line, at most `width` characters, without line end. `total` 0 = unknown: no bar, no time
// left.
//   importing [=====>              ]  27%  1 234 567 rows  512 345 rows/s  2 min 03 s left
std::string ProgressLine(std::string_view label, std::string_view unit, uint64_t done,
                         uint64_t total, uint64_t items, double seconds, int width);

// Draws the line over itself, some times a second; nothing at all when it is not shown.
// Thread-safe.
class Progress {
 public:
  struct Options {
    std::string label;   // "importing"
    std::string unit;    // what is counted: "rows"
    uint64_t total = 0;  // what `done` will be at the end, e.g. bytes of input; 0 = unknown
    bool shown = false;  // StderrIsTerminal() and neither --quiet nor --json
    const Clock* clock = Clock::Real();
  };

  explicit Progress(Options options);
  // Takes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total`, `items` of the unit. Cheap: most calls only look at the clock.
  void Update(uint64_t done, uint64_t items);
  // Takes the bar away, so that results and messages can be printed.
  void Clear();

 private:
  const Options options_;
  const int64_t start_nanos_;
  Mutex mutex_;
  int64_t drawn_nanos_ GUARDED_BY(mutex_) = 0;
  size_t drawn_chars_ GUARDED_BY(mutex_) = 0;
};

}  // namespace firstseen
