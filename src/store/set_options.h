// What a set may be, and how two descriptions of one differ: the same for every kind of store.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "firstseen/types.h"

namespace firstseen {

// InvalidArgument names the option, its limit and what to choose instead.
absl::Status ValidateSet(std::string_view name, const SetOptions& options);

// The options in which a set `is` and is `asked` to be differ, as a clause for people ("bits is 96
// and not 128, ..."); empty when they agree. `expected` is a hint and no difference.
std::string DescribeDifference(const SetOptions& is, const SetOptions& asked);

}  // namespace firstseen
