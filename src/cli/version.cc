#include "cli/command.h"
#include "fmt/format.h"

namespace firstseen::cli {

void RegisterVersion(CLI::App& app, Session& session) {
  CLI::App* command =
      AddCommand(app, session, "version", "Print the version",
                 "Example:\n"
                 "  firstseen version --json",
                 [&session]() -> absl::StatusOr<int> {
                   if (session.json) {
                     PrintJson({{"version", FIRSTSEEN_VERSION}, {"compiler", __VERSION__}});
                   } else {
                     PrintLine(fmt::format("firstseen {}", FIRSTSEEN_VERSION));
                   }
                   return kDone;
                 });
  AddJson(command, session);
}

}  // namespace firstseen::cli
