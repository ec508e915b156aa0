#include "billing/decisions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "base/status.h"
#include "ingest/row_reader.h"
#include "ingest/source.h"

namespace firstseen {
namespace {

constexpr std::string_view kMagic = "firstseen-decisions 2\t";
constexpr std::string_view kEnd = "end\t";
constexpr std::string_view kNoInput = "-";
constexpr std::string_view kRemedy = "restore it from your backup of done/";
constexpr std::string_view kColumns =
    "line\tbiz_seq_no\tdecision\torigin\tverdict\tclaim_sequence\tset\twindow\tbill_serial\t"
    "bill_period";
constexpr std::array<std::string_view, 10> kKinds = {
    "bill",    "duplicate", "held",   "not-counting", "reversed",
    "release", "unbilled",  "adjust", "note",         "failed"};
constexpr std::array<std::string_view, 6> kVerdicts = {"first",  "duplicate", "repeat",
                                                       "closed", "no-set",    "none"};

std::string NumberOrNothing(bool there, int64_t number) {
  return there ? fmt::format("{}", number) : std::string();
}

// Empty reads as `missing`.
bool ReadNumber(std::string_view text, int64_t missing, int64_t* number) {
  if (text.empty()) {
    *number = missing;
    return true;
  }
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size();
}

template <size_t N>
std::optional<int> IndexOf(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::string_view KindName(DecisionKind kind) { return kKinds[static_cast<size_t>(kind)]; }

absl::Status Damaged(std::string_view place, std::string_view what) {
  return DataLoss("{}: {}; {}", place, what, kRemedy);
}

// One decision file, line by line, with what its last line must say.
class DecisionsReader {
 public:
  DecisionsReader(std::unique_ptr<LineReader> lines, std::string path)
      : lines_(std::move(lines)), path_(std::move(path)) {}

  absl::StatusOr<FileDigest> Read(
      const std::function<absl::Status(int64_t inbox_id, const Decision&)>& decision) {
    RETURN_IF_ERROR(Next());
    const absl::StatusOr<int64_t> id = ParseDecisionsHeader(line_.text);
    if (!id.ok()) return DamagedHere(Message(id.status()));
    RETURN_IF_ERROR(Next());
    if (line_.text != kColumns) return DamagedHere("not a decision file");
    while (true) {
      RETURN_IF_ERROR(Next());
      if (line_.text.starts_with(kEnd)) break;
      const absl::StatusOr<Decision> parsed = ParseDecision(line_.text);
      if (!parsed.ok()) return DamagedHere(Message(parsed.status()));
      ++rows_;
      RETURN_IF_ERROR(decision(*id, *parsed));
    }
    ASSIGN_OR_RETURN(FileDigest input, ReadEnd());
    Line beyond;
    ASSIGN_OR_RETURN(const bool more, lines_->Next(&beyond));
    if (more) return Damaged(path_, "something follows its last line");
    return input;
  }

 private:
  absl::Status DamagedHere(std::string_view what) const {
    return Damaged(fmt::format("{}:{}", path_, line_.number), what);
  }

  // Hashes the line in hand and goes to the next; there must be one.
  absl::Status Next() {
    if (line_.number > 0) {
      sha256_.Add(line_.raw);
      sha256_.Add("\n");
    }
    ASSIGN_OR_RETURN(const bool more, lines_->Next(&line_));
    return more ? absl::OkStatus() : Damaged(path_, "cut: the last line is missing");
  }

  // The end line: "end", rows, bytes and hash of the input, hash of all before.
  absl::StatusOr<FileDigest> ReadEnd() {
    const size_t own = line_.raw.rfind('\t') + 1;
    sha256_.Add(line_.raw.substr(0, own));
    if (line_.raw.substr(own) != sha256_.Finish()) {
      return Damaged(path_, "its content is not what was written (sha256)");
    }
    FileDigest input;
    std::string_view rest = line_.raw.substr(kEnd.size(), own - kEnd.size());
    std::array<std::string_view, 3> values;
    for (std::string_view& value : values) {
      value = rest.substr(0, rest.find('\t'));
      rest.remove_prefix(std::min(rest.size(), value.size() + 1));
    }
    int64_t rows = 0;
    int64_t bytes = 0;
    if (!ReadNumber(values[0], -1, &rows) || !ReadNumber(values[1], -1, &bytes) || bytes < 0 ||
        static_cast<uint64_t>(rows) != rows_ || values[2].empty()) {
      return DamagedHere("the last line is malformed");
    }
    input.bytes = static_cast<uint64_t>(bytes);
    if (values[2] != kNoInput) input.sha256 = values[2];
    return input;
  }

  std::unique_ptr<LineReader> lines_;
  const std::string path_;
  Line line_;
  Sha256 sha256_;
  uint64_t rows_ = 0;
};

}  // namespace

std::string FormatDecision(const Decision& d) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", d.line, d.serial, KindName(d.kind),
                     NumberOrNothing(d.origin != kOriginNone, d.origin),
                     kVerdicts[static_cast<size_t>(d.verdict)], d.claim_sequence, d.set, d.window,
                     NumberOrNothing(d.bill_serial != 0, d.bill_serial),
                     NumberOrNothing(d.bill_serial != 0, d.bill_period_ms));
}

absl::StatusOr<int64_t> ParseDecisionsHeader(std::string_view line) {
  int64_t id = 0;
  if (!line.starts_with(kMagic) || !ReadNumber(line.substr(kMagic.size()), -1, &id) || id < 0) {
    return InvalidArgument("not a decision file");
  }
  return id;
}

absl::StatusOr<Decision> ParseDecision(std::string_view line) {
  std::array<std::string_view, 10> values;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t tab = line.find('\t');
    if ((tab == std::string_view::npos) != (i + 1 == values.size())) {
      return InvalidArgument("not {} values", values.size());
    }
    values[i] = line.substr(0, tab);
    line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
  }
  Decision d;
  int64_t number = 0;
  int64_t origin = 0;
  const std::optional<int> kind = IndexOf(kKinds, values[2]);
  const std::optional<int> verdict = IndexOf(kVerdicts, values[4]);
  if (!kind || !verdict || !ReadNumber(values[0], -1, &number) || number < 0 ||
      !ReadNumber(values[3], kOriginNone, &origin) ||
      !ReadNumber(values[5], 0, &d.claim_sequence) || !ReadNumber(values[7], 0, &d.window) ||
      !ReadNumber(values[8], 0, &d.bill_serial) || !ReadNumber(values[9], 0, &d.bill_period_ms)) {
    return InvalidArgument("a value is malformed");
  }
  d.line = static_cast<uint64_t>(number);
  d.serial = values[1];
  d.kind = static_cast<DecisionKind>(*kind);
  d.origin = static_cast<int>(origin);
  d.verdict = static_cast<LedgerVerdict>(*verdict);
  d.set = values[6];
  return d;
}

absl::StatusOr<std::unique_ptr<DecisionsWriter>> DecisionsWriter::Create(FileSystem* files,
                                                                         const std::string& path,
                                                                         int64_t inbox_id) {
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file,
                   OutputFile::Create(files, path + std::string(kDecisionsSuffix)));
  auto writer = std::unique_ptr<DecisionsWriter>(new DecisionsWriter(std::move(file)));
  RETURN_IF_ERROR(writer->Put(fmt::format("{}{}\n{}\n", kMagic, inbox_id, kColumns)));
  return writer;
}

absl::Status DecisionsWriter::Put(std::string_view text) {
  sha256_.Add(text);
  return file_->Append(text);
}

absl::Status DecisionsWriter::Append(const Decision& decision) {
  ++rows_;
  return Put(FormatDecision(decision));
}

absl::Status DecisionsWriter::Commit(const FileDigest& input) {
  RETURN_IF_ERROR(Put(fmt::format("{}{}\t{}\t{}\t", kEnd, rows_, input.bytes,
                                  input.sha256.empty() ? kNoInput : input.sha256)));
  RETURN_IF_ERROR(file_->Append(sha256_.Finish() + "\n"));
  return file_->Commit();
}

absl::StatusOr<FileDigest> ReadDecisions(
    FileSystem* files, const std::string& path,
    const std::function<absl::Status(int64_t inbox_id, const Decision&)>& decision) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(files, path));
  return DecisionsReader(std::move(lines), path).Read(decision);
}

absl::StatusOr<std::vector<std::string>> FilesWithoutDecisions(
    FileSystem* files, const std::string& directory, std::span<const std::string> expected) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  absl::flat_hash_set<std::string_view> there;
  std::set<std::string> without(expected.begin(), expected.end());
  for (const std::string_view name : names) {
    if (name.ends_with(kDecisionsSuffix)) {
      there.insert(name.substr(0, name.size() - kDecisionsSuffix.size()));
    } else if (!name.starts_with('.') && !name.ends_with(".tmp")) {
      without.emplace(name);
    }
  }
  std::erase_if(without, [&](const std::string& name) { return there.contains(name); });
  return std::vector<std::string>(without.begin(), without.end());
}

absl::StatusOr<absl::flat_hash_map<std::string, Decision>> FindDecisions(
    FileSystem* files, const std::string& directory, std::span<const std::string> expected,
    const absl::flat_hash_set<std::string>& serials) {
  struct Found {
    int64_t inbox_id;
    Decision decision;
  };
  absl::flat_hash_map<std::string, Found> latest;
  if (serials.empty()) return absl::flat_hash_map<std::string, Decision>();
  ASSIGN_OR_RETURN(const std::vector<std::string> without,
                   FilesWithoutDecisions(files, directory, expected));
  if (!without.empty()) {
    return Damaged(fmt::format("{}/{}{}", directory, without.front(), kDecisionsSuffix), "missing");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(kDecisionsSuffix)) continue;
    const absl::StatusOr<FileDigest> read = ReadDecisions(
        files, directory + "/" + name, [&](int64_t inbox_id, const Decision& d) -> absl::Status {
          const bool wanted = d.kind == DecisionKind::kBill || d.kind == DecisionKind::kDuplicate ||
                              d.kind == DecisionKind::kHeld || d.kind == DecisionKind::kRelease;
          if (!wanted || !serials.contains(d.serial)) return absl::OkStatus();
          Found& found = latest.try_emplace(d.serial, Found{-1, d}).first->second;
          if (inbox_id >= found.inbox_id) found = {inbox_id, d};
          return absl::OkStatus();
        });
    RETURN_IF_ERROR(read.status());
  }
  absl::flat_hash_map<std::string, Decision> decisions;
  for (auto& [serial, found] : latest) decisions.emplace(serial, std::move(found.decision));
  return decisions;
}

}  // namespace firstseen
