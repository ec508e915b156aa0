#include "cli/window_command.h"

#include <memory>

#include "base/status.h"
#include "engine/window.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session, const std::string& text,
                        const WindowCommand& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  ASSIGN_OR_RETURN(const SetOptions options, store->Options(session.set));
  const absl::StatusOr<WindowId> window = ParseWindow(options.window, text);
  if (!window.ok()) return UsageError(window.status());
  RETURN_IF_ERROR(((*store).*command.action)(session.set, *window));
  RETURN_IF_ERROR(store->Close());
  const std::string name = FormatWindow(options.window, *window);
  if (session.json) {
    PrintJson({{"set", session.set}, {"window", name}, {"state", command.state}});
  } else {
    PrintLine(fmt::format("{} {}: {}", session.set, name, command.state));
  }
  return kDone;
}

}  // namespace

void AddWindowCommand(CLI::App& app, Session& session, const WindowCommand& command) {
  const auto window = std::make_shared<std::string>();
  CLI::App* added =
      AddCommand(app, session, command.name, command.description, command.footer,
                 [&session, window, command] { return Run(session, *window, command); });
  AddSet(added, session)->required();
  AddDataOptions(added, session);
  added->add_option("--window-of", *window, "The window: 2022, 2022-12, 2022-12-31 or all")
      ->type_name("WINDOW")
      ->required();
  AddJson(added, session);
}

}  // namespace firstseen::cli
