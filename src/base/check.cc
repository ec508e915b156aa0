#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace firstseen {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "firstseen: %s:%d: invariant broken: %s\n", file, line, condition);
  std::abort();
}

}  // namespace firstseen
