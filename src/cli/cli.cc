#include "cli/cli.h"

#include <csignal>
#include <cstdio>
#include <exception>

#include "base/status.h"
#include "cli/command.h"

namespace firstseen::cli {
namespace {

constexpr char kFooter[] =
    "Exit status: 0 done, 1 the work failed, 2 wrong usage.\n"
    "Results go to standard output, progress and messages to standard error.\n"
    "\n"
    "First steps:\n"
    "  firstseen init --data ./data\n"
    "  firstseen create --data ./data kyc --window year --fields name,id_no \\\n"
    "      --normalise trim,width,zero-width,x-check-digit,id-15-to-18,name-dot\n"
    "  firstseen import --data ./data kyc ./history --columns name,id_no --window-of 2023\n"
    "  firstseen stats --data ./data";

void Register(CLI::App& app, Session& session) {
  RegisterInit(app, session);
  RegisterCreate(app, session);
  RegisterImport(app, session);
  RegisterClaim(app, session);
  RegisterCheck(app, session);
  RegisterRemove(app, session);
  RegisterSettle(app, session);
  RegisterStats(app, session);
  RegisterDrop(app, session);
  RegisterReopen(app, session);
  RegisterSnapshot(app, session);
  RegisterRepair(app, session);
  RegisterBill(app, session);
  RegisterGenerate(app, session);
  RegisterVersion(app, session);
}

int Parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return kDone;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
}

}  // namespace

int RunCli(int argc, const char* const* argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is a write error, told as such
  CLI::App app("\"Is this the first time we see this key?\" Answered exactly.", "firstseen");
  app.footer(kFooter);
  app.require_subcommand(1);
  Session session;
  Register(app, session);
  const int parsed = Parse(app, argc, argv);
  if (parsed != kDone || !session.run) return parsed;
  const absl::StatusOr<int> status = session.run();
  const int code = status.ok() ? *status : Fail(session, status.status());
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    Note(session, "cannot write to standard output");
    return kFailed;
  }
  return code;
}

}  // namespace firstseen::cli
