// Which normalisations apply to which field of a set, as text.
//
// Two forms are read:
//   trim,width,id-15-to-18           each switch goes to the fields that it makes sense for: trim,
//                                    width and zero-width to all; x-check-digit and id-15-to-18 to
//                                    the fields whose name says id number; name-dot to those whose
//                                    name says person's name
//   name:trim,name-dot;id_no:trim    every field by name
// and the word `opaque` stands for no normalisation at all (encrypted fields). Words of a field
// name are parted by anything that is not a letter or digit; case does not matter. A name says id
// number when it ends in the words id no, id num, id number, id card (no, ...), cert no,
// certificate no, identity (no, card, ...), national id, citizen id, or is `id` itself; person's
// name when it ends in the word name, or in fullname, realname, username. The Chinese names in
// common use are known too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "firstseen/types.h"

namespace firstseen {

// "trim" to kTrim, ...; InvalidArgument lists the switches there are.
absl::StatusOr<Normalisation> ParseNormalisation(std::string_view name);

// "trim,width" or "opaque", in the order of the bits.
std::string FormatNormalisation(uint32_t mask);

// The fields `names` with what `spec` (either form) says of each. InvalidArgument: unknown switch
// or field, a field left out or named twice in the second form, a switch that finds no field in
// the first; the message shows the form to write.
absl::StatusOr<std::vector<FieldOptions>> ParseNormaliseSpec(std::string_view spec,
                                                             std::span<const std::string> names);

// The second form, which ParseNormaliseSpec reads back: "name:trim,name-dot;id_no:opaque".
std::string FormatNormaliseSpec(std::span<const FieldOptions> fields);

}  // namespace firstseen
