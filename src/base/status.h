// Errors: absl::Status everywhere, made here from fmt format strings.
//
// An error text names the file, line and field it is about and says what to do next. It never
// carries a name, an id number, a device id or a token.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace firstseen {

template <typename... Args>
absl::Status Error(absl::StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return absl::Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// The caller asked for something that can never work: bad option, bad row, bad time.
template <typename... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kNotFound, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status AlreadyExists(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kAlreadyExists, format, std::forward<Args>(args)...);
}
// The state of the system forbids it now: held lock, wrong key, other switches, failed disk.
template <typename... Args>
absl::Status FailedPrecondition(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kFailedPrecondition, format, std::forward<Args>(args)...);
}
// A configured limit or the disk is full.
template <typename... Args>
absl::Status ResourceExhausted(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kResourceExhausted, format, std::forward<Args>(args)...);
}
// Bytes on disk are not what was written.
template <typename... Args>
absl::Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kDataLoss, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kUnavailable, format, std::forward<Args>(args)...);
}
template <typename... Args>
absl::Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return Error(absl::StatusCode::kInternal, format, std::forward<Args>(args)...);
}

// The message as std::string_view (Debian's Abseil has a string_view type of its own).
inline std::string_view Message(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// The same code, with "context: " before the message.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), fmt::format("{}: {}", context, Message(status)));
}

}  // namespace firstseen

#define FIRSTSEEN_CONCAT_INNER(a, b) a##b
#define FIRSTSEEN_CONCAT(a, b) FIRSTSEEN_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expression` is an error Status.
#define RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                     \
    if (absl::Status status_macro = (expression); !status_macro.ok()) return status_macro; \
  } while (false)

// ASSIGN_OR_RETURN(auto x, StatusOrExpression());
#define ASSIGN_OR_RETURN(left, expression) \
  ASSIGN_OR_RETURN_IMPL(FIRSTSEEN_CONCAT(status_or_, __LINE__), left, expression)
#define ASSIGN_OR_RETURN_IMPL(temporary, left, expression)   \
  auto temporary = (expression);                             \
  if (!temporary.ok()) return std::move(temporary).status(); \
  left = std::move(temporary).value()
