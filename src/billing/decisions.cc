#include "billing/decisions.h"

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "ingest/row_reader.h"
#include "ingest/source.h"

namespace firstseen {
namespace {

constexpr std::string_view kMagic = "firstseen-decisions 1\t";
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

}  // namespace

std::string_view DecisionName(DecisionKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::string FormatDecisionsHeader(int64_t inbox_id) {
  return fmt::format("{}{}\n{}\n", kMagic, inbox_id, kColumns);
}

std::string FormatDecision(const Decision& d) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", d.line, d.serial,
                     DecisionName(d.kind), NumberOrNothing(d.origin != kOriginNone, d.origin),
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

absl::Status ReadDecisions(
    FileSystem* files, const std::string& path,
    const std::function<absl::Status(int64_t inbox_id, const Decision&)>& decision) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> lines, LineReader::Open(files, path));
  Line line;
  ASSIGN_OR_RETURN(bool more, lines->Next(&line));
  const absl::StatusOr<int64_t> id = ParseDecisionsHeader(more ? line.text : std::string_view());
  if (!id.ok()) return DataLoss("{}: {}", path, Message(id.status()));
  ASSIGN_OR_RETURN(more, lines->Next(&line));
  if (!more || line.text != kColumns) return DataLoss("{}:2: not a decision file", path);
  while (true) {
    ASSIGN_OR_RETURN(more, lines->Next(&line));
    if (!more) return DataLoss("{}: cut: the last line is missing", path);
    if (line.text == kDecisionsEnd) return absl::OkStatus();
    const absl::StatusOr<Decision> parsed = ParseDecision(line.text);
    if (!parsed.ok()) return DataLoss("{}:{}: {}", path, line.number, Message(parsed.status()));
    RETURN_IF_ERROR(decision(*id, *parsed));
  }
}

absl::StatusOr<absl::flat_hash_map<std::string, Decision>> FindDecisions(
    FileSystem* files, const std::string& directory,
    const absl::flat_hash_set<std::string>& serials) {
  struct Found {
    int64_t inbox_id;
    Decision decision;
  };
  absl::flat_hash_map<std::string, Found> latest;
  if (serials.empty()) return absl::flat_hash_map<std::string, Decision>();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(directory));
  for (const std::string& name : names) {
    if (!name.ends_with(kDecisionsSuffix)) continue;
    RETURN_IF_ERROR(ReadDecisions(
        files, directory + "/" + name, [&](int64_t inbox_id, const Decision& d) -> absl::Status {
          const bool wanted = d.kind == DecisionKind::kBill || d.kind == DecisionKind::kDuplicate ||
                              d.kind == DecisionKind::kHeld || d.kind == DecisionKind::kRelease;
          if (!wanted || !serials.contains(d.serial)) return absl::OkStatus();
          Found& found = latest.try_emplace(d.serial, Found{-1, d}).first->second;
          if (inbox_id >= found.inbox_id) found = {inbox_id, d};
          return absl::OkStatus();
        }));
  }
  absl::flat_hash_map<std::string, Decision> decisions;
  for (auto& [serial, found] : latest) decisions.emplace(serial, std::move(found.decision));
  return decisions;
}

}  // namespace firstseen
