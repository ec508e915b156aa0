// The options of a set as people and programs read them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "firstseen/types.h"

namespace firstseen::cli {

// The words of the command line for the options of a set.
const std::map<std::string, WindowKind>& WindowKindNames();
const std::map<std::string, MemberEncoding>& MemberEncodingNames();
const std::map<std::string, Durability>& DurabilityNames();
std::string_view WindowKindName(WindowKind kind);
std::string_view MemberEncodingName(MemberEncoding encoding);
std::string_view DurabilityName(Durability durability);

// {"set": ..., "window": ..., "fields": [...], ...}
Json SetJson(std::string_view name, const SetOptions& options);

}  // namespace firstseen::cli
