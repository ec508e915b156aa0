// Assertions that stay on in production: a wrong answer costs more than a stopped process.
#pragma once

namespace firstseen {

// Prints the condition and its place on stderr and aborts. Never prints data.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace firstseen

#define FIRSTSEEN_CHECK(condition)                   \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::firstseen::CheckFailed(#condition, __FILE__, __LINE__))
