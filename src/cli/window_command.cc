#include "cli/window_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/window.h"

namespace firstseen::cli {
namespace {

constexpr size_t kListedMax = 12;

absl::Status Unknown(const StoreSetStats& set, const std::string& name) {
  const std::vector<StoreWindowStats>& windows = set.windows;
  if (windows.empty()) {
    return UsageError(NotFound("set {} has no window {}, and no other yet", set.name, name));
  }
  std::string list;
  // The latest ones: a typo is mostly about these.
  for (size_t i = windows.size() - std::min(windows.size(), kListedMax); i < windows.size(); ++i) {
    list += (list.empty() ? "" : ", ") + FormatWindow(set.options.window, windows[i].window);
  }
  return UsageError(NotFound("set {} has no window {}; it has {}{}", set.name, name,
                             windows.size() > kListedMax ? "..., " : "", list));
}

absl::StatusOr<int> Run(const Session& session, const std::string& text,
                        const WindowAction& action) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  ASSIGN_OR_RETURN(const SetOptions options, FindSet(*store, session));
  const absl::StatusOr<WindowId> id = ParseWindow(options.window, text);
  if (!id.ok()) return UsageError(Annotate(id.status(), "--window-of"));
  ASSIGN_OR_RETURN(const StoreSetStats set, store->SetStats(session.set));
  WindowTarget window;
  window.id = *id;
  window.name = FormatWindow(options.window, *id);
  for (const StoreWindowStats& one : set.windows) {
    if (one.window != *id) continue;
    window.known = true;
    window.before = one;
  }
  if (!window.known) window.unknown = Unknown(set, window.name);
  return action(session, store.get(), window);
}

}  // namespace

CLI::App* AddWindowCommand(CLI::App& app, Session& session, const std::string& name,
                           const std::string& description, const std::string& footer,
                           WindowAction action) {
  const auto window = std::make_shared<std::string>();
  CLI::App* command = AddCommand(
      app, session, name, description, footer,
      [&session, window, action = std::move(action)] { return Run(session, *window, action); });
  AddSet(command, session)->required();
  AddDataOptions(command, session);
  command->add_option("--window-of", *window, "The window: 2022, 2022-12, 2022-12-31 or all")
      ->type_name("WINDOW")
      ->required();
  AddJson(command, session);
  return command;
}

absl::StatusOr<int> FinishWindow(const Session& session, Store* store, const WindowTarget& window,
                                 const std::string& text, const Json& json) {
  RETURN_IF_ERROR(store->Close());
  if (session.json) {
    Json answer = {{"set", session.set}, {"window", window.name}};
    answer.update(json);
    PrintJson(answer);
  } else {
    PrintLine(fmt::format("{} {}: {}", session.set, window.name, text));
  }
  return kDone;
}

}  // namespace firstseen::cli
