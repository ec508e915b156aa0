// How the columns of exported files map to a set: flags that `import` and `bill verify` share.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "ingest/row_mapper.h"

namespace firstseen::cli {

struct MappingFlags {
  MappingOptions mapping;
  FormatFlags format;
  std::string window_of;
  std::vector<std::string> accept_windows;
};

// --columns, --window-of, --time-column, --accept-windows, --token-column and those of
// AddFormatOptions. Returns --columns.
CLI::Option* AddMappingOptions(CLI::App* command, MappingFlags* flags);
absl::StatusOr<MappingOptions> ParseMapping(const MappingFlags& flags, WindowKind kind);

}  // namespace firstseen::cli
