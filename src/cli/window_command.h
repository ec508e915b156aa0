// Subcommands that do one thing to one window of a set: drop and reopen.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"
#include "firstseen/types.h"

namespace firstseen::cli {

struct WindowCommand {
  const char* name;
  const char* description;
  const char* footer;
  absl::Status (Store::*action)(std::string_view set, WindowId window);
  const char* state;  // of the window afterwards, for the answer
};

// With SET, --data, --window-of and --json.
void AddWindowCommand(CLI::App& app, Session& session, const WindowCommand& command);

}  // namespace firstseen::cli
