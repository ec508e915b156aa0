// Subcommands that do one thing to one window of a set: drop and reopen.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "firstseen/types.h"

namespace firstseen::cli {

// The window that the command line names.
struct WindowTarget {
  WindowId id = 0;
  std::string name;         // "2022"
  bool known = false;       // it has, or once had, a member, or was dropped
  StoreWindowStats before;  // of a known one
  absl::Status unknown;     // else: wrong usage, lists the windows that are known
};

using WindowAction =
    std::function<absl::StatusOr<int>(const Session&, Store* store, const WindowTarget&)>;

// With SET, --data, --window-of and --json. `action` ends with FinishWindow.
CLI::App* AddWindowCommand(CLI::App& app, Session& session, const std::string& name,
                           const std::string& description, const std::string& footer,
                           WindowAction action);
// Closes the store and prints the answer: `text` behind the names, or `json` behind them.
absl::StatusOr<int> FinishWindow(const Session& session, Store* store, const WindowTarget& window,
                                 const std::string& text, const Json& json);

}  // namespace firstseen::cli
