#include "cli/row_command.h"

namespace firstseen::cli {

void RegisterSettle(CLI::App& app, Session& session) {
  AddRowCommand(app, session, RowCommand::kSettle, "settle",
                "Say that claims are safely recorded elsewhere",
                "Rows: token. A claim's token is kept, so that a retry gets REPEAT, until it is\n"
                "settled and 48 hours of open time after that. Settle what your own records hold\n"
                "for good; tokens that are never settled keep their memory. Each row's answer is\n"
                "  SETTLED (also when the token owned nothing) or REJECTED|line N: REASON\n"
                "\n"
                "Example:\n"
                "  cut -d '|' -f 1 transactions.txt | firstseen settle --data ./data kyc");
}

}  // namespace firstseen::cli
