#include "base/status.h"
#include "cli/window_command.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session, Store* store, const WindowTarget& window) {
  if (!window.known) return window.unknown;
  if (!window.before.closed) {
    Note(session, "it is open; nothing was changed");
    return FinishWindow(session, store, window, "open", {{"state", "open"}});
  }
  RETURN_IF_ERROR(store->Reopen(session.set, window.id));
  Note(session,
       "warning: it is empty, its members were forgotten when it was dropped; until they are "
       "imported again, each one's next claim is FIRST");
  return FinishWindow(session, store, window, "open, and empty", {{"state", "open"}});
}

}  // namespace

void RegisterReopen(CLI::App& app, Session& session) {
  AddWindowCommand(app, session, "reopen", "Open a dropped window again, empty",
                   "What was dropped does not come back: the next claim of each of its members is\n"
                   "FIRST again, and billed again, unless they are imported before.\n"
                   "\n"
                   "Example:\n"
                   "  firstseen reopen --data ./data kyc --window-of 2022",
                   Run);
}

}  // namespace firstseen::cli
