#include <string>

#include "billing/bill_run.h"
#include "cli/bill.h"

namespace firstseen::cli {
namespace {

struct Flags {
  ConfigFlags config;
  ResendOptions resend;
};

absl::StatusOr<int> Run(const Session& session, const Flags& flags) {
  ASSIGN_OR_RETURN(const BillingConfig config, LoadConfig(flags.config));
  const absl::StatusOr<ResendReport> resent = ResendBill(config, flags.resend);
  if (!resent.ok()) return BillError(resent.status());
  const ResendReport& report = *resent;
  if (session.json) {
    PrintJson({{"file", report.file},
               {"serial", report.serial},
               {"original_serial", report.original_serial},
               {"rows", report.rows},
               {"total", report.total}});
  } else {
    PrintLine(fmt::format("{}: {} rows, total {}, serial {} instead of {}", report.file,
                          report.rows, report.total, report.serial, report.original_serial));
  }
  return kDone;
}

}  // namespace

void RegisterBillResend(CLI::App& bill, Session& session) {
  const auto [command, flags] = AddBillCommand(
      bill, session, "resend", "Write a period's bill file again under a new serial",
      "The rows are those of the archived bill file. May run while the service runs.\n"
      "\n"
      "Example:\n"
      "  firstseen bill resend --config firstseen.toml --partner acme --period 202312312355",
      Run);
  command->add_option("--partner", flags->resend.partner, "Whose file")
      ->type_name("NAME")
      ->required();
  command
      ->add_option("--period", flags->resend.period,
                   "Start of the period: yyyyMMddHHmm or any event time")
      ->type_name("TIME")
      ->required();
}

}  // namespace firstseen::cli
