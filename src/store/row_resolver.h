// From a row as applications have it (fields, time, token) to what an engine takes (window,
// fingerprint, owner).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/engine.h"
#include "firstseen/types.h"
#include "keys/keyring.h"
#include "keys/member.h"

namespace firstseen {

// Of one set; fixed and shared between threads.
struct SetContext {
  SetContext(SetId set_id, SetOptions set_options, absl::TimeZone set_zone)
      : id(set_id),
        options(std::move(set_options)),
        zone(set_zone),
        encoder(options.fields, options.member_encoding) {}

  const SetId id;
  const SetOptions options;
  const absl::TimeZone zone;
  const MemberEncoder encoder;
};

// Of one call: remembers the last window, as most rows of a batch fall into the same. Not
// thread-safe. O(bytes of the row).
class RowResolver {
 public:
  // Windows that begin after `latest_start` are refused. Both references must outlive it.
  RowResolver(const SetContext& set, const Keyring& keys, absl::Time latest_start)
      : set_(set), keys_(keys), latest_start_(latest_start) {}

  // InvalidArgument of the row names its field or window, the limit and the remedy, never a value.
  // `window` decides when it is given, else `time`.
  absl::StatusOr<ClaimRequest> Resolve(std::span<const std::string_view> fields,
                                       std::optional<WindowId> window, absl::Time time,
                                       std::string_view token);

  // Makes `window` the one in use; InvalidArgument when the set can have no such window or it
  // begins after `latest_start`.
  absl::Status UseWindow(WindowId window);

 private:
  absl::Status UseWindowOf(absl::Time time);

  const SetContext& set_;
  const Keyring& keys_;
  const absl::Time latest_start_;

  // The window in use, once there is one.
  const MemberHasher* hasher_ = nullptr;
  WindowId window_ = 0;
  absl::Time window_start_;
  absl::Time window_end_;
  std::string member_;
};

// InvalidArgument when the set of this kind can have no such window.
absl::Status ValidateWindow(WindowKind kind, WindowId window);

}  // namespace firstseen
