#include "cli/window_command.h"

namespace firstseen::cli {

void RegisterReopen(CLI::App& app, Session& session) {
  AddWindowCommand(app, session,
                   {.name = "reopen",
                    .description = "Open a dropped window again, empty",
                    .footer = "What was dropped does not come back; import it again if needed.\n"
                              "\n"
                              "Example:\n"
                              "  firstseen reopen --data ./data kyc --window-of 2022",
                    .action = &Store::Reopen,
                    .state = "open"});
}

}  // namespace firstseen::cli
