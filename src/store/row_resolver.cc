#include "store/row_resolver.h"

#include "base/status.h"
#include "engine/window.h"

namespace firstseen {

absl::Status ValidateWindow(WindowKind kind, WindowId window) {
  const absl::StatusOr<WindowId> parsed = ParseWindow(kind, FormatWindow(kind, window));
  if (!parsed.ok()) return Annotate(parsed.status(), fmt::format("window {}", window));
  if (*parsed != window) {
    return InvalidArgument("window {}: the set has one window, number {}", window, *parsed);
  }
  return absl::OkStatus();
}

absl::Status RowResolver::UseWindow(WindowId window) {
  if (hasher_ != nullptr && window == window_) return absl::OkStatus();
  const WindowKind kind = set_.options.window;
  RETURN_IF_ERROR(ValidateWindow(kind, window));
  const absl::Time start = WindowStart(kind, window, set_.zone);
  if (start > latest_start_) {
    return InvalidArgument(
        "window {} begins too far in the future (later than {}); check the time of the event and "
        "this machine's clock",
        FormatWindow(kind, window),
        absl::FormatTime("%Y-%m-%dT%H:%M:%S%Ez", latest_start_, set_.zone));
  }
  window_ = window;
  window_start_ = start;
  window_end_ = WindowEnd(kind, window, set_.zone);
  hasher_ = &keys_.ForWindow(kind, window);
  return absl::OkStatus();
}

absl::Status RowResolver::UseWindowOf(absl::Time time) {
  if (hasher_ != nullptr && time >= window_start_ && time < window_end_) return absl::OkStatus();
  const absl::Status status = UseWindow(WindowOf(set_.options.window, time, set_.zone));
  return Annotate(status, "time");
}

absl::StatusOr<ClaimRequest> RowResolver::Resolve(std::span<const std::string_view> fields,
                                                  std::optional<WindowId> window, absl::Time time,
                                                  std::string_view token) {
  RETURN_IF_ERROR(window.has_value() ? UseWindow(*window) : UseWindowOf(time));
  RETURN_IF_ERROR(set_.encoder.Encode(fields, &member_));
  if (token.size() > MemberEncoder::kFieldBytesMax) {
    return InvalidArgument("the token is {} bytes long; the limit is {}", token.size(),
                           MemberEncoder::kFieldBytesMax);
  }
  return ClaimRequest{window_, hasher_->MemberFingerprint(member_).Truncated(set_.options.bits),
                      hasher_->Owner(token)};
}

}  // namespace firstseen
