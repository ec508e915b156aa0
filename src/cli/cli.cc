#include "cli/cli.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

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

// Names a subcommand that does not exist, which the parser does not.
std::optional<std::string> UnknownSubcommand(CLI::App* app, int argc, const char* const* argv) {
  std::string path = "firstseen";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::vector<CLI::App*> subcommands = app->get_subcommands({});
    if (subcommands.empty() || word.starts_with('-')) return std::nullopt;
    std::vector<std::string> names;
    for (const CLI::App* subcommand : subcommands) names.push_back(subcommand->get_name());
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      const std::string meant = NearestOf(word, names);
      const std::string advice = meant.empty() ? fmt::format("see {} --help", path)
                                               : fmt::format("did you mean {}?", meant);
      return fmt::format("{}: there is no subcommand {}; {}", path, word, advice);
    }
    app = subcommands[static_cast<size_t>(found - names.begin())];
    path += " " + word;
  }
  return std::nullopt;
}

int Parse(CLI::App& app, int argc, const char* const* argv) {
  if (const auto unknown = UnknownSubcommand(&app, argc, argv)) {
    std::fprintf(stderr, "%s\n", unknown->c_str());
    return kUsage;
  }
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
  app.set_version_flag("--version", fmt::format("firstseen {}", FIRSTSEEN_VERSION));
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
