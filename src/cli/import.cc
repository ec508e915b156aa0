#include "ingest/import.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "base/human.h"
#include "base/status.h"
#include "cli/mapping.h"

namespace firstseen::cli {
namespace {

struct Flags {
  ImportOptions import;
  MappingFlags mapping;
};

// The only way from a signal handler into the program; lock-free.
std::atomic<bool> stop_requested = false;

void RequestStop(int) { stop_requested = true; }

absl::StatusOr<ImportOptions> Options(const Session& session, const Flags& flags,
                                      const SetOptions& set) {
  ImportOptions options = flags.import;
  options.set = session.set;
  options.rejects_directory = session.data + "/rejects";
  options.stop = &stop_requested;
  ASSIGN_OR_RETURN(options.mapping, ParseMapping(flags.mapping, set.window));
  return options;
}

void PrintReport(const Session& session, const ImportReport& report) {
  if (session.json) {
    PrintJson({{"rows", report.rows},
               {"added", report.added},
               {"duplicates", report.duplicates},
               {"closed", report.closed},
               {"rejected", report.rejected},
               {"blank", report.blank},
               {"files", report.files},
               {"skipped_files", report.skipped_files},
               {"resumed", report.resumed},
               {"seconds", report.seconds},
               {"rows_per_second", report.rows_per_second},
               {"rejects", report.rejects},
               {"common_reject",
                {{"reason", report.common_reject.reason}, {"rows", report.common_reject.rows}}},
               {"notes", report.notes}});
    return;
  }
  PrintLine(fmt::format("{} of {}: {} added, {}, {} rejected", FormatCount(report.rows, "row"),
                        FormatCount(report.files, "file"), FormatCount(report.added),
                        FormatCount(report.duplicates, "duplicate"), FormatCount(report.rejected)));
  if (report.closed > 0) {
    PrintLine(fmt::format("{} of windows that were dropped", FormatCount(report.closed, "row")));
  }
  PrintLine(fmt::format("{:.1f} s, {} rows a second", report.seconds,
                        FormatCount(static_cast<uint64_t>(report.rows_per_second))));
}

absl::StatusOr<int> Run(const Session& session, const Flags& flags) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  ASSIGN_OR_RETURN(const SetOptions set, FindSet(*store, session));
  ASSIGN_OR_RETURN(ImportOptions options, Options(session, flags, set));
  std::signal(SIGTERM, RequestStop);
  std::signal(SIGINT, RequestStop);
  std::optional<Progress> bar;
  options.progress = [&](const ImportStatus& status) {
    if (!bar.has_value()) bar.emplace(Bar(session, "importing", "rows", status.bytes_total));
    bar->Update(status.bytes_done, status.rows);
  };
  const absl::StatusOr<ImportReport> imported = RunImport(store.get(), options);
  bar.reset();
  if (absl::IsInvalidArgument(imported.status())) return UsageError(imported.status());
  RETURN_IF_ERROR(imported.status());
  const ImportReport& report = *imported;
  RETURN_IF_ERROR(store->Close());
  PrintReport(session, report);
  for (const std::string& note : report.notes) Note(session, note);
  if (report.rejected > 0) {
    Note(session,
         fmt::format("{} set aside in {}, reasons in {}.reasons; mend that file and import it",
                     FormatCount(report.rejected, "row"), report.rejects, report.rejects));
    Note(session,
         fmt::format("the commonest reason ({}): {}", FormatCount(report.common_reject.rows, "row"),
                     report.common_reject.reason));
  }
  return kDone;
}

constexpr char kFooter[] =
    "PATH is a file, a directory as Hive or Spark writes it, or - for standard input. Hidden "
    "files\n"
    "are skipped, ds=... folders supply that column, .gz .zst .bz2 .deflate are decompressed.\n"
    "Interrupted, the same command goes on where it was; run again, it adds nothing. Rows that\n"
    "cannot be used go to the rejects file as they were, with the reasons in a second file; they\n"
    "are no failure (exit status 0), a file that cannot be read is.\n"
    "With --token-column each imported row owns its member, as a claim does: that very\n"
    "transaction, met again, is a REPEAT. Owners take about 70 bytes each until they are settled\n"
    "(firstseen settle) and 48 hours of open time after that; --settle settles them at once.\n"
    "\n"
    "Examples:\n"
    "  firstseen import --data ./data kyc ./history --columns name,id_no --window-of 2023\n"
    "  firstseen import --data ./data kyc ./export --columns name,id_no,biz_seq_no \\\n"
    "      --time-column ds --accept-windows 2023,2024 --token-column biz_seq_no\n"
    "  zcat old.gz | firstseen import --data ./data kyc - --columns name,id_no \\\n"
    "      --window-of 2023 --delimiter tab --encoding gb18030 --rejects ./old.rejects";

void AddOptions(CLI::App* command, Flags* flags) {
  ImportOptions& import = flags->import;
  command->add_option("path", import.paths, "Files, directories, or -")
      ->type_name("PATH")
      ->required();
  AddMappingOptions(command, &flags->mapping)->required();
  command
      ->add_option("--rejects", import.rejects, "Where rejected rows go; default DIR/rejects/...")
      ->type_name("FILE");
  command->add_flag("--settle", import.settle,
                    "Settle the owners of --token-column: kept for 48 hours of open time only");
  command->add_option("--jobs", import.jobs, "Threads; 0 = one for each core")
      ->type_name("N")
      ->check(CLI::Range(0, ImportOptions::kJobsMax).description(""))
      ->capture_default_str();
}

}  // namespace

void RegisterImport(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = AddCommand(app, session, "import", "Import exported files into a set",
                                 kFooter, [&session, flags] { return Run(session, *flags); });
  AddSet(command, session)->required();
  AddDataOptions(command, session);
  AddOptions(command, flags.get());
  AddJson(command, session);
}

}  // namespace firstseen::cli
