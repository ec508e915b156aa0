// Windows: which one an event belongs to, and their names.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "firstseen/types.h"

namespace firstseen {

// The window of an event at `time` in `zone`. Pure, O(1).
WindowId WindowOf(WindowKind kind, absl::Time time, absl::TimeZone zone);
// First instant of a window / of the next one. Kind none: InfinitePast / InfiniteFuture.
absl::Time WindowStart(WindowKind kind, WindowId window, absl::TimeZone zone);
absl::Time WindowEnd(WindowKind kind, WindowId window, absl::TimeZone zone);
// "2023", "2023-12", "2023-12-31", "all"; ParseWindow also takes 202312 and 20231231.
std::string FormatWindow(WindowKind kind, WindowId window);
absl::StatusOr<WindowId> ParseWindow(WindowKind kind, std::string_view text);

}  // namespace firstseen
