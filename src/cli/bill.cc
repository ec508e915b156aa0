#include "cli/bill.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace firstseen::cli {
namespace {

// Results go to standard output, so the log must not: the default logger would write there.
void LogToStandardError(const BillingConfig& config) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("firstseen"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  spdlog::set_level(spdlog::level::from_str(config.log_level));
}

}  // namespace

void AddConfigOptions(CLI::App* command, Session& session, ConfigFlags* flags) {
  command->add_option("--config", flags->path, "Configuration, see firstseen.example.toml")
      ->type_name("FILE")
      ->envname("FIRSTSEEN_CONFIG")
      ->capture_default_str();
  command
      ->add_option("--set", flags->overrides,
                   "Override a key of the configuration: ledger.keep_days=20")
      ->type_name("KEY=VALUE");
  command->add_option("--data", flags->data, "The same as --set store.data=DIR")
      ->type_name("DIR")
      ->envname("FIRSTSEEN_DATA");
  AddJson(command, session);
}

absl::StatusOr<BillingConfig> LoadConfig(const ConfigFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (!flags.data.empty()) {
    // Relative to where the command runs, not to the configuration's directory.
    overrides.push_back("store.data=" + std::filesystem::absolute(flags.data).string());
  }
  absl::StatusOr<BillingConfig> config =
      LoadBillingConfig(FileSystem::Posix(), flags.path, overrides);
  if (absl::IsInvalidArgument(config.status()) || absl::IsNotFound(config.status())) {
    return UsageError(config.status());
  }
  if (config.ok()) LogToStandardError(*config);
  return config;
}

absl::StatusOr<std::optional<absl::Time>> NowOption(const std::string& text,
                                                    const BillingConfig& config) {
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<absl::Time> now = ParseEventTime(text, config.zone);
  if (!now.ok()) return UsageError(Annotate(now.status(), "--now"));
  return *now;
}

void RegisterBill(CLI::App& app, Session& session) {
  CLI::App* bill = app.add_subcommand("bill", "Transactions in, bill files out");
  bill->footer("See `firstseen bill run --help`, `bill resend --help` and `bill verify --help`.");
  bill->require_subcommand(1);
  RegisterBillRun(*bill, session);
  RegisterBillResend(*bill, session);
  RegisterBillVerify(*bill, session);
}

}  // namespace firstseen::cli
