#include "cli/row_command.h"

namespace firstseen::cli {

void RegisterCheck(CLI::App& app, Session& session) {
  AddRowCommand(app, session, RowCommand::kCheck, "check", "Ask without recording",
                "Rows: time|fields. Each row's answer is one line, in the order of the input:\n"
                "  PRESENT|WINDOW, ABSENT|WINDOW, CLOSED|WINDOW or REJECTED|line N: REASON\n"
                "\n"
                "Examples:\n"
                "  firstseen check --data ./data kyc people.txt\n"
                "  echo '2023-12-31|张三|33010219200403064X' | firstseen check --data ./data kyc");
}

}  // namespace firstseen::cli
