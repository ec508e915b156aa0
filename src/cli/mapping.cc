#include "cli/mapping.h"

#include "base/status.h"
#include "engine/window.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<WindowId> ParseWindowFlag(WindowKind kind, std::string_view flag,
                                         std::string_view text) {
  const absl::StatusOr<WindowId> window = ParseWindow(kind, text);
  if (!window.ok()) return UsageError(Annotate(window.status(), flag));
  return *window;
}

}  // namespace

CLI::Option* AddMappingOptions(CLI::App* command, MappingFlags* flags) {
  MappingOptions& mapping = flags->mapping;
  CLI::Option* columns =
      command->add_option("--columns", mapping.columns, "Names of the columns, in their order")
          ->type_name("NAME,...")
          ->delimiter(',');
  CLI::Option* window_of =
      command->add_option("--window-of", flags->window_of, "The window of all rows: 2023, 2023-12")
          ->type_name("WINDOW");
  command->add_option("--time-column", mapping.time_column, "Column that decides each row's window")
      ->type_name("NAME")
      ->excludes(window_of);
  command->add_option("--accept-windows", flags->accept_windows, "Reject rows of all others")
      ->type_name("WINDOW,...")
      ->delimiter(',');
  command
      ->add_option("--token-column", mapping.token_column,
                   "Column of the transaction's serial: met again later, it is a REPEAT")
      ->type_name("NAME");
  AddFormatOptions(command, &flags->format);
  return columns;
}

absl::StatusOr<MappingOptions> ParseMapping(const MappingFlags& flags, WindowKind kind) {
  MappingOptions mapping = flags.mapping;
  ASSIGN_OR_RETURN(mapping.format, ParseFormat(flags.format));
  if (!flags.window_of.empty()) {
    ASSIGN_OR_RETURN(mapping.window_of, ParseWindowFlag(kind, "--window-of", flags.window_of));
  }
  for (const std::string& text : flags.accept_windows) {
    ASSIGN_OR_RETURN(const WindowId window, ParseWindowFlag(kind, "--accept-windows", text));
    mapping.accept_windows.push_back(window);
  }
  return mapping;
}

}  // namespace firstseen::cli
