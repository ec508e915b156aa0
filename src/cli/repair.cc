#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session, bool apply) {
  ASSIGN_OR_RETURN(const std::vector<std::string> losses,
                   RepairEmbeddedStore(StoreOptions(session), apply));
  if (session.json) {
    PrintJson({{"losses", losses}, {"applied", apply && !losses.empty()}});
  } else {
    for (const std::string& loss : losses) PrintLine(loss);
    if (losses.empty()) PrintLine("nothing to repair");
  }
  if (losses.empty()) return kDone;
  if (apply) {
    Note(session, "done; import the time since the last good record again, imports are idempotent");
    return kDone;
  }
  Note(session, "nothing was changed; copy the data directory away, then run again with --apply");
  return kFailed;
}

}  // namespace

void RegisterRepair(CLI::App& app, Session& session) {
  const auto apply = std::make_shared<bool>(false);
  CLI::App* command = AddCommand(
      app, session, "repair", "List what damaged files cost, and cut the damage away",
      "For a data directory that does not open because bytes on disk are not what was written.\n"
      "Without --apply it only lists what would be lost, and exits 1 when there is anything.\n"
      "\n"
      "Examples:\n"
      "  firstseen repair --data ./data\n"
      "  firstseen repair --data ./data --apply",
      [&session, apply] { return Run(session, *apply); });
  AddDataOptions(command, session);
  command->add_flag("--apply", *apply, "Do it; what is listed is lost");
  AddJson(command, session);
}

}  // namespace firstseen::cli
