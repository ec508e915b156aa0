// What `bill run`, `bill resend` and `bill verify` share.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time_text.h"
#include "billing/config.h"
#include "cli/command.h"

namespace firstseen::cli {

struct ConfigFlags {
  std::string path = "firstseen.toml";
  std::vector<std::string> overrides;
  std::string data;
};

// --config FILE, --set KEY=VALUE, --data DIR, --json
void AddConfigOptions(CLI::App* command, Session& session, ConfigFlags* flags);
// Adds `bill NAME` with options of its own on top of these; `run` gets what was given. The flags
// live as long as the command.
template <typename Flags>
std::pair<CLI::App*, Flags*> AddBillCommand(
    CLI::App& bill, Session& session, const std::string& name, const std::string& description,
    const std::string& footer, absl::StatusOr<int> (*run)(const Session&, const Flags&)) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = AddCommand(bill, session, "bill " + name, description, footer,
                                 [&session, flags, run] { return run(session, *flags); });
  AddConfigOptions(command, session, &flags->config);
  return {command, flags.get()};
}
// Also starts the log, on standard error. Call it once. Any error is one of usage.
absl::StatusOr<BillingConfig> LoadConfig(const ConfigFlags& flags);
// Errors of options and configuration are those of usage.
absl::Status BillError(const absl::Status& status);
// Of --now; nothing when it was not given.
absl::StatusOr<std::optional<absl::Time>> NowOption(const std::string& text,
                                                    const BillingConfig& config);

void RegisterBillRun(CLI::App& bill, Session& session);
void RegisterBillResend(CLI::App& bill, Session& session);
void RegisterBillVerify(CLI::App& bill, Session& session);

}  // namespace firstseen::cli
