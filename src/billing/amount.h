// Exact decimal amounts: 128-bit integers that count units of 10^-decimals. Never a double.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace firstseen {

__extension__ typedef __int128 AmountUnits;

// Reads [-]digits[.digits] and nothing else: no exponent, no '+', no separators of thousands.
// Zeros beyond `decimals` are accepted ("1.500" with 2). InvalidArgument: malformed, more decimals
// than that, or more than 30 digits; never repeats the text. O(length).
absl::StatusOr<AmountUnits> ParseAmount(std::string_view text, int decimals);

// "-0.05", "12.30"; always `decimals` digits after the point, none and no point when 0.
std::string FormatAmount(AmountUnits units, int decimals);

// *total += units; ResourceExhausted when it does not fit into 128 bits.
absl::Status AddAmount(AmountUnits units, AmountUnits* total);

}  // namespace firstseen
