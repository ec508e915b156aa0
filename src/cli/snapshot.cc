#include <memory>

#include "base/status.h"
#include "cli/command.h"

namespace firstseen::cli {
namespace {

absl::StatusOr<int> Run(const Session& session) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  RETURN_IF_ERROR(store->Snapshot());
  const StoreStats stats = store->Stats();
  RETURN_IF_ERROR(store->Close());
  if (session.json) {
    PrintJson({{"snapshot_bytes", stats.snapshot_bytes}, {"log_bytes", stats.log_bytes}});
  } else {
    PrintLine(
        fmt::format("snapshot: {} bytes, log: {} bytes", stats.snapshot_bytes, stats.log_bytes));
  }
  return kDone;
}

}  // namespace

void RegisterSnapshot(CLI::App& app, Session& session) {
  CLI::App* command =
      AddCommand(app, session, "snapshot", "Write a snapshot now and drop the log it replaces",
                 "Useful before copying the data directory, and to make the next start quick.\n"
                 "\n"
                 "Example:\n"
                 "  firstseen snapshot --data ./data",
                 [&session] { return Run(session); });
  AddDataOptions(command, session);
  AddJson(command, session);
}

}  // namespace firstseen::cli
