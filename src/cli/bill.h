// What `bill run`, `bill resend` and `bill verify` share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
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
// Also starts the log, on standard error. Call it once.
absl::StatusOr<BillingConfig> LoadConfig(const ConfigFlags& flags);
// Of --now; nothing when it was not given.
absl::StatusOr<std::optional<absl::Time>> NowOption(const std::string& text,
                                                    const BillingConfig& config);

void RegisterBillRun(CLI::App& bill, Session& session);
void RegisterBillResend(CLI::App& bill, Session& session);
void RegisterBillVerify(CLI::App& bill, Session& session);

}  // namespace firstseen::cli
