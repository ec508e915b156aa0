#include "cli/row_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "base/human.h"
#include "base/status.h"
#include "engine/window.h"
#include "ingest/decompress.h"
#include "ingest/source.h"

namespace firstseen::cli {
namespace {

struct Flags {
  RowCommand command = RowCommand::kClaim;
  std::string file = "-";
  FormatFlags format;
};

absl::StatusOr<size_t> ReadStandardInput(char* out, size_t size) {
  while (true) {
    const ssize_t got = read(STDIN_FILENO, out, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return Unavailable("standard input: {}", std::strerror(errno));
  }
}

// Prints answers as they come: lines, or the elements of a JSON object's array.
class Printer {
 public:
  Printer(const Session& session, const SetOptions& set, char delimiter, bool claim)
      : json_(session.json), kind_(set.window), delimiter_(delimiter), claim_(claim) {
    if (json_) text_ = "{\n  \"answers\": [";
  }

  absl::Status Print(std::span<const RowAnswer> answers) {
    for (const RowAnswer& answer : answers) json_ ? AppendJson(answer) : AppendText(answer);
    return Flush();
  }

  absl::Status Finish(const AnswerRowsTotals& totals) {
    if (!json_) return absl::OkStatus();
    text_ += any_ ? "\n  ],\n" : "],\n";
    text_ += fmt::format("  \"rows\": {}", totals.rows);
    for (size_t i = 0; i < kRowVerdicts; ++i) {
      text_ += fmt::format(",\n  \"{}\": {}", RowVerdictName(static_cast<RowVerdict>(i)),
                           totals.verdicts[i]);
    }
    text_ += fmt::format(",\n  \"claims_settled\": {}\n}}\n", totals.settled);
    return Flush();
  }

 private:
  bool HasWindow(const RowAnswer& answer) const {
    return answer.verdict != RowVerdict::kSettled && answer.verdict != RowVerdict::kRejected;
  }

  void AppendText(const RowAnswer& answer) {
    text_ += RowVerdictName(answer.verdict);
    if (HasWindow(answer)) (text_ += delimiter_) += FormatWindow(kind_, answer.window);
    if (HasWindow(answer) && claim_) (text_ += delimiter_) += std::to_string(answer.sequence);
    if (answer.verdict == RowVerdict::kRejected) {
      text_ += fmt::format("{}line {}: {}", delimiter_, answer.line, answer.reason);
    }
    text_ += '\n';
  }

  void AppendJson(const RowAnswer& answer) {
    Json json = {{"line", answer.line}, {"verdict", RowVerdictName(answer.verdict)}};
    if (HasWindow(answer)) json["window"] = FormatWindow(kind_, answer.window);
    if (HasWindow(answer) && claim_) json["sequence"] = answer.sequence;
    if (answer.verdict == RowVerdict::kRejected) json["reason"] = answer.reason;
    text_ += any_ ? ",\n    " : "\n    ";
    text_ += json.dump();
    any_ = true;
  }

  absl::Status Flush() {
    const bool written = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() &&
                         std::fflush(stdout) == 0;
    text_.clear();
    if (written) return absl::OkStatus();
    return Unavailable("cannot write to standard output: {}", std::strerror(errno));
  }

  bool json_;
  WindowKind kind_;
  char delimiter_;
  bool claim_;
  bool any_ = false;
  std::string text_;
};

absl::StatusOr<AnswerRowsTotals> Answer(Store* store, const AnswerRowsOptions& options,
                                        const std::string& file, TakeAnswers take) {
  if (file == kStandardInput) return AnswerRows(store, options, ReadStandardInput, take);
  const std::string paths[] = {file};
  ASSIGN_OR_RETURN(const InputListing listing, ListInputs(FileSystem::Posix(), paths));
  if (listing.files.size() != 1 || listing.files[0].path != file) {
    return InvalidArgument("{} is a directory; give one file", file);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream,
                   OpenByteStream(FileSystem::Posix(), listing.files[0]));
  return AnswerRows(
      store, options, [&](char* out, size_t size) { return stream->Read(out, size); }, take);
}

void NoteTotals(const Session& session, const AnswerRowsTotals& totals) {
  std::string text = FormatCount(totals.rows, "row");
  for (size_t i = 0; i < kRowVerdicts; ++i) {
    if (totals.verdicts[i] == 0) continue;
    text += fmt::format(", {} {}", FormatCount(totals.verdicts[i]),
                        RowVerdictName(static_cast<RowVerdict>(i)));
  }
  Note(session, text);
}

absl::StatusOr<int> Run(const Session& session, const Flags& flags) {
  AnswerRowsOptions options;
  options.set = session.set;
  options.command = flags.command;
  ASSIGN_OR_RETURN(options.format, ParseFormat(flags.format));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenStore(session));
  ASSIGN_OR_RETURN(const SetOptions set, FindSet(*store, session));
  Printer printer(session, set, options.format.delimiter, flags.command == RowCommand::kClaim);
  ASSIGN_OR_RETURN(const AnswerRowsTotals totals, Answer(store.get(), options, flags.file,
                                                         [&](std::span<const RowAnswer> answers) {
                                                           return printer.Print(answers);
                                                         }));
  RETURN_IF_ERROR(store->Close());
  RETURN_IF_ERROR(printer.Finish(totals));
  NoteTotals(session, totals);
  return totals.verdicts[static_cast<size_t>(RowVerdict::kRejected)] == 0 ? kDone : kFailed;
}

}  // namespace

void AddRowCommand(CLI::App& app, Session& session, RowCommand row_command, const char* name,
                   const char* description, const char* footer) {
  const auto flags = std::make_shared<Flags>();
  flags->command = row_command;
  CLI::App* command = AddCommand(app, session, name, description, footer,
                                 [&session, flags] { return Run(session, *flags); });
  AddSet(command, session)->required();
  command->add_option("file", flags->file, "Rows to answer; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  AddDataOptions(command, session);
  AddFormatOptions(command, &flags->format);
  AddJson(command, session);
}

}  // namespace firstseen::cli
