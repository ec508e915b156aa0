#include "base/status.h"
#include "cli/command.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session) {
  bool made = false;
  RETURN_IF_ERROR(InitEmbeddedStore(StoreOptions(session), &made));
  const std::string key = session.key_file.empty() ? session.data + "/key" : session.key_file;
  if (session.json) {
    PrintJson({{"data", session.data}, {"key_file", key}, {"made", made}});
  } else {
    PrintLine(fmt::format("data directory: {}", session.data));
    PrintLine(fmt::format("key file:       {}", key));
  }
  if (!made) {
    Note(session, "it is a data directory already, and the key file fits: nothing was changed");
    return kDone;
  }
  Note(session, fmt::format("back up {} now, apart from the data: without it the sets cannot be "
                            "used, and whoever has it and the data can test for members",
                            key));
  Note(session, "next: firstseen create");
  return kDone;
}

}  // namespace

void RegisterInit(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(
      app, session, "init", "Make a data directory and its key file",
      "Makes DIR (mode 0700) and a key file of 128 random bits (mode 0600). A key file that is\n"
      "there already is used as it is; a data directory that is there already is left as it is.\n"
      "\n"
      "Examples:\n"
      "  firstseen init --data ./data\n"
      "  firstseen init --data /srv/firstseen --key-file /etc/firstseen/key",
      [&session] { return Run(session); });
  AddDataOptions(command, session);
  AddJson(command, session);
}

}  // namespace firstseen::cli
