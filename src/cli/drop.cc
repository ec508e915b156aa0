#include <memory>

#include "base/human.h"
#include "base/status.h"
#include "cli/window_command.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session, bool unseen, Store* store,
                        const WindowTarget& window) {
  if (window.before.closed) {
    Note(session, "it was dropped before; nothing was changed");
    return FinishWindow(session, store, window, "dropped", {{"state", "dropped"}, {"members", 0}});
  }
  if (!window.known && !unseen) {
    Note(session, "to close a window that never had a member to late events, add --unseen");
    return window.unknown;
  }
  if (!window.known) {
    // A typo must not close a window that is yet to come.
    const absl::Status accepted = store->AcceptsWindow(session.set, window.id);
    if (!accepted.ok()) return UsageError(accepted);
  }
  RETURN_IF_ERROR(store->Drop(session.set, window.id));
  const uint64_t members = window.before.members;
  return FinishWindow(session, store, window,
                      fmt::format("dropped, {} forgotten", FormatCount(members, "member")),
                      {{"state", "dropped"}, {"members", members}});
}

}  // namespace

void RegisterDrop(CLI::App& app, Session& session) {
  const auto unseen = std::make_shared<bool>(false);
  CLI::App* command = AddWindowCommand(
      app, session, "drop", "Drop a window: its members are forgotten and it answers CLOSED",
      "Immediate, whatever the size; memory and files follow in the background. Later events of\n"
      "the window are answered CLOSED until `firstseen reopen`. A window that the set never had "
      "is\n"
      "wrong usage (exit status 2), one that was dropped before is not.\n"
      "\n"
      "Examples:\n"
      "  firstseen drop --data ./data kyc --window-of 2022\n"
      "  firstseen drop --data ./data logins --window-of 2023-12-31",
      [unseen](const Session& running, Store* store, const WindowTarget& window) {
        return Run(running, *unseen, store, window);
      });
  command->add_flag("--unseen", *unseen, "Also a window that never had a member");
}

}  // namespace firstseen::cli
