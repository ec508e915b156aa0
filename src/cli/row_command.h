// Subcommands that answer rows: claim, check, remove and settle.
#pragma once

#include "cli/command.h"
#include "ingest/answer_rows.h"

namespace firstseen::cli {

// With SET, [FILE], --data, --delimiter, --escape, --encoding and --json.
void AddRowCommand(CLI::App& app, Session& session, RowCommand row_command, const char* name,
                   const char* description, const char* footer);

}  // namespace firstseen::cli
