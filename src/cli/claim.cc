#include "cli/row_command.h"

namespace firstseen::cli {

void RegisterClaim(CLI::App& app, Session& session) {
  AddRowCommand(
      app, session, RowCommand::kClaim, "claim", "Ask and record: is this the first time?",
      "Rows: token|time|fields. The token is the transaction's serial: the same token gets REPEAT\n"
      "when it asks again. Each row's answer is one line, in the order of the input:\n"
      "  FIRST|WINDOW|SEQUENCE       nobody claimed this member in this window before\n"
      "  DUPLICATE|WINDOW|SEQUENCE   somebody else did\n"
      "  REPEAT|WINDOW|SEQUENCE      this token did: a retry, still the first\n"
      "  CLOSED|WINDOW|0             the window was dropped\n"
      "  REJECTED|line N: REASON     the row cannot be used; exit status 1 at the end\n"
      "Rows are answered as they arrive, without waiting for the end of the input.\n"
      "\n"
      "Examples:\n"
      "  firstseen claim --data ./data kyc transactions.txt\n"
      "  echo 'T1|2023-12-31 23:59:59|张三|33010219200403064X' | firstseen claim --data ./data "
      "kyc");
}

}  // namespace firstseen::cli
