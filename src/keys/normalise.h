// Normalisation of one field: the named switches of firstseen::Normalisation.
//
// Whatever the order in which they are named, switches act in this order:
//   zero-width     U+200B, U+200C, U+200D, U+2060 and U+FEFF are removed, wherever they stand.
//   width          U+FF01 to U+FF5E become ASCII 0x21 to 0x7E; U+3000 becomes a space.
//   name-dot       One of  . U+2022 U+2024 U+2027 U+2219 U+22C5 U+25CF U+30FB U+FF0E U+FF65 becomes
//                  U+00B7 where the characters on both its sides are letters (so after a
//                  conversion by `width`, and never in "Jr.", "3.14" or at an end).
//   trim           Space, \t, \n, \v, \f, \r and U+3000 are removed at both ends.
//   x-check-digit  17 digits and a final x: the x becomes X. Nothing else is looked at.
//   id-15-to-18    15 ASCII digits whose digits 7 to 12 are a date 19YY-MM-DD of the calendar:
//                  "19" is put in after digit 6 and the check digit of GB 11643 is appended.
//                  Anything else stays (a 2017 foreign residence card has 15 characters too, but
//                  3 of them are letters).
// A field that is not valid UTF-8 is left as it is, byte for byte, as is every field under kOpaque.
// Normalising twice changes nothing: N(N(x)) = N(x).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "firstseen/types.h"

namespace firstseen {

// Appends the normalised `field` to `out`. `mask` is of Normalisation. O(bytes); allocates only
// when `out` must grow, by at most one byte for each '.' or three for an id. Thread-safe.
void AppendNormalised(uint32_t mask, std::string_view field, std::string* out);

// The check digit of GB 11643 (ISO 7064 MOD 11-2) for 17 ASCII digits: '0' to '9' or 'X'.
char IdCheckDigit(std::string_view digits17);

}  // namespace firstseen
