// Names and numbers as people and programs read them.
#pragma once

#include <cstdint>
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

// "1 234 567"
std::string Grouped(uint64_t number);
// "10.5 MiB"; below 1 KiB "512 B".
std::string HumanBytes(uint64_t bytes);
// "3 s", "5 min", "2 h", "4 d"; "none" for a negative number, which stands for never.
std::string HumanSeconds(int64_t seconds);

}  // namespace firstseen::cli
