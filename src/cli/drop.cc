#include "cli/window_command.h"

namespace firstseen::cli {

void RegisterDrop(CLI::App& app, Session& session) {
  AddWindowCommand(
      app, session,
      {.name = "drop",
       .description = "Drop a window: its members are forgotten and it answers CLOSED",
       .footer = "Immediate, whatever the size; memory and files follow in the background. Later\n"
                 "events of the window are answered CLOSED until `firstseen reopen`.\n"
                 "\n"
                 "Examples:\n"
                 "  firstseen drop --data ./data kyc --window-of 2022\n"
                 "  firstseen drop --data ./data logins --window-of 2023-12-31",
       .action = &Store::Drop,
       .state = "dropped"});
}

}  // namespace firstseen::cli
