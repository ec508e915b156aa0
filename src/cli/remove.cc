#include "cli/row_command.h"

namespace firstseen::cli {

void RegisterRemove(CLI::App& app, Session& session) {
  AddRowCommand(app, session, RowCommand::kRemove, "remove", "Take members out of a set",
                "Rows: time|fields. Each row's answer is one line, in the order of the input:\n"
                "  REMOVED|WINDOW, ABSENT|WINDOW, CLOSED|WINDOW or REJECTED|line N: REASON\n"
                "\n"
                "Examples:\n"
                "  firstseen remove --data ./data kyc people.txt\n"
                "  echo '2023-12-31|张三|33010219200403064X' | firstseen remove --data ./data kyc");
}

}  // namespace firstseen::cli
