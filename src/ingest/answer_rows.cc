#include "ingest/answer_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "ingest/row_mapper.h"

namespace firstseen {
namespace {

constexpr size_t kBatchRows = 4'096;

// In the columns of the input, and in reasons.
constexpr std::string_view kTokenColumn = "(token)";
constexpr std::string_view kTimeColumn = "(time)";

// The columns that the command's rows have.
MappingOptions Mapping(const AnswerRowsOptions& options, const SetOptions& set) {
  MappingOptions mapping;
  mapping.format = options.format;
  if (options.command == RowCommand::kClaim) {
    mapping.token_column = kTokenColumn;
    mapping.columns.emplace_back(kTokenColumn);
  }
  mapping.columns.emplace_back(kTimeColumn);
  if (set.window != WindowKind::kNone) mapping.time_column = kTimeColumn;
  for (const FieldOptions& field : set.fields) mapping.columns.push_back(field.name);
  return mapping;
}

class Answerer {
 public:
  // `mapper` of the set for all commands but settle, which takes `parser`.
  Answerer(Store* store, const AnswerRowsOptions& options, RowMapper mapper, RowParser parser,
           TakeAnswers take)
      : store_(store),
        options_(options),
        mapper_(std::move(mapper)),
        parser_(std::move(parser)),
        take_(take),
        views_(kBatchRows * mapper_.field_count()) {}

  absl::Status AnswerBlock(const LineBlock& block);
  // For a line that is longer than any row may be.
  absl::Status RejectLong(uint64_t line);
  const AnswerRowsTotals& totals() const { return totals_; }

 private:
  RowKind ReadRow(const Line& line, RejectReason* reason);
  RowKind ReadToken(const Line& line, RejectReason* reason);
  absl::Status AnswerBatch();
  absl::Status Ask();
  RowVerdict VerdictOf(Verdict verdict) const;

  Store* store_;
  const AnswerRowsOptions& options_;
  RowMapper mapper_;
  RowParser parser_;
  TakeAnswers take_;
  // The batch: answers_ of all rows; requests_[i] or tokens_[i] is about answers_[asked_[i]].
  std::vector<RowAnswer> answers_;
  std::vector<size_t> asked_;
  std::vector<MemberRequest> requests_;
  std::vector<MemberResult> results_;
  std::vector<std::string_view> tokens_;
  std::vector<std::string_view> views_;  // the fields of requests_
  AnswerRowsTotals totals_;
};

absl::Status Answerer::AnswerBlock(const LineBlock& block) {
  const bool settle = options_.command == RowCommand::kSettle;
  LineCursor cursor(block);
  Line line;
  RejectReason reason;
  while (cursor.Next(&line)) {
    const RowKind kind = settle ? ReadToken(line, &reason) : ReadRow(line, &reason);
    if (kind == RowKind::kBlank) continue;
    if (kind == RowKind::kRow) asked_.push_back(answers_.size());
    RowAnswer& answer = answers_.emplace_back();
    answer.line = line.number;
    if (kind == RowKind::kRejected) answer.reason = DescribeReject(reason);
    if (answers_.size() == kBatchRows) RETURN_IF_ERROR(AnswerBatch());
  }
  return AnswerBatch();
}

absl::Status Answerer::RejectLong(uint64_t line) {
  RowAnswer& answer = answers_.emplace_back();
  answer.line = line;
  answer.reason = fmt::format("the line has more than {} bytes; shorten it", kLineBytesMax);
  return AnswerBatch();
}

RowKind Answerer::ReadRow(const Line& line, RejectReason* reason) {
  std::string_view* const fields = &views_[requests_.size() * mapper_.field_count()];
  MemberRequest request;
  WindowId window = 0;
  const RowKind kind = mapper_.Map(line, fields, &window, &request.token, reason);
  if (kind != RowKind::kRow) return kind;
  request.fields = {fields, mapper_.field_count()};
  request.window = window;
  requests_.push_back(request);
  return kind;
}

RowKind Answerer::ReadToken(const Line& line, RejectReason* reason) {
  if (parser_.IsBlank(line.text)) return RowKind::kBlank;
  Field token;
  const absl::StatusOr<size_t> count = parser_.Parse(line.text, {&token, 1});
  *reason = {.field = {}, .reason = {}, .remedy = "write one token a line"};
  if (!count.ok()) {
    reason->reason = Message(count.status());
  } else if (line.too_long || *count != 1) {
    reason->reason = line.too_long ? "the line is too long" : fmt::format("{} fields", *count);
  } else if (token.null || token.text.empty()) {
    reason->reason = "the token is null or empty";
  } else {
    tokens_.push_back(token.text);
    return RowKind::kRow;
  }
  return RowKind::kRejected;
}

absl::Status Answerer::AnswerBatch() {
  if (answers_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Ask());
  totals_.rows += answers_.size();
  for (const RowAnswer& answer : answers_) {
    ++totals_.verdicts[static_cast<size_t>(answer.verdict)];
  }
  RETURN_IF_ERROR(take_(answers_));
  answers_.clear();
  asked_.clear();
  requests_.clear();
  tokens_.clear();
  mapper_.Reset();
  parser_.Reset();
  return absl::OkStatus();
}

absl::Status Answerer::Ask() {
  if (asked_.empty()) return absl::OkStatus();
  if (options_.command == RowCommand::kSettle) {
    ASSIGN_OR_RETURN(const uint64_t settled, store_->Settle(options_.set, tokens_));
    totals_.settled += settled;
    for (const size_t index : asked_) answers_[index].verdict = RowVerdict::kSettled;
    return absl::OkStatus();
  }
  results_.assign(requests_.size(), MemberResult());
  if (options_.command == RowCommand::kClaim) {
    RETURN_IF_ERROR(store_->Claim(options_.set, requests_, results_));
  } else if (options_.command == RowCommand::kCheck) {
    RETURN_IF_ERROR(store_->Check(options_.set, requests_, results_));
  } else {
    RETURN_IF_ERROR(store_->Remove(options_.set, requests_, results_));
  }
  for (size_t i = 0; i < asked_.size(); ++i) {
    RowAnswer& answer = answers_[asked_[i]];
    if (!results_[i].status.ok()) {
      answer.reason = Message(results_[i].status);
      continue;
    }
    answer.verdict = VerdictOf(results_[i].verdict);
    answer.window = results_[i].window;
    answer.sequence = results_[i].sequence;
  }
  return absl::OkStatus();
}

RowVerdict Answerer::VerdictOf(Verdict verdict) const {
  const bool claim = options_.command == RowCommand::kClaim;
  switch (verdict) {
    case Verdict::kFirst:
      return claim ? RowVerdict::kFirst : RowVerdict::kAbsent;
    case Verdict::kDuplicate:
      if (claim) return RowVerdict::kDuplicate;
      return options_.command == RowCommand::kCheck ? RowVerdict::kPresent : RowVerdict::kRemoved;
    case Verdict::kRepeat:
      return RowVerdict::kRepeat;
    case Verdict::kClosed:
      return RowVerdict::kClosed;
  }
  FIRSTSEEN_CHECK(false);
  return RowVerdict::kRejected;
}

}  // namespace

std::string_view RowVerdictName(RowVerdict verdict) {
  constexpr std::string_view kNames[kRowVerdicts] = {"FIRST",   "DUPLICATE", "REPEAT",
                                                     "CLOSED",  "PRESENT",   "ABSENT",
                                                     "REMOVED", "SETTLED",   "REJECTED"};
  return kNames[static_cast<size_t>(verdict)];
}

absl::StatusOr<AnswerRowsTotals> AnswerRows(Store* store, const AnswerRowsOptions& options,
                                            ReadRows read, TakeAnswers take) {
  ASSIGN_OR_RETURN(const SetOptions set, store->Options(options.set));
  ASSIGN_OR_RETURN(RowMapper mapper, RowMapper::Create(set, Mapping(options, set), InputFile()));
  ASSIGN_OR_RETURN(RowParser parser, RowParser::Create(options.format));
  Answerer answerer(store, options, std::move(mapper), std::move(parser), take);
  const auto buffer = std::make_unique<char[]>(kBlockBytes);
  size_t used = 0;  // bytes of lines that are not whole yet
  LineBlock block;
  bool skipping = false;  // the rest of a line that is too long
  while (true) {
    ASSIGN_OR_RETURN(const size_t got, read(buffer.get() + used, kBlockBytes - used));
    used += got;
    std::string_view lines(buffer.get(), used);
    // At the end of the input the last line is whole without a line end.
    if (got > 0) lines = lines.substr(0, lines.rfind('\n') + 1);
    const size_t whole = lines.size();
    if (skipping && whole > 0) {
      lines.remove_prefix(std::min(lines.find('\n'), whole - 1) + 1);
      block.offset += whole - lines.size();
      ++block.line;
      skipping = false;
    }
    block.bytes = lines;
    RETURN_IF_ERROR(answerer.AnswerBlock(block));
    if (got == 0) return answerer.totals();
    block.offset += lines.size();
    block.line += static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    used -= whole;
    std::memmove(buffer.get(), buffer.get() + whole, used);
    if (used > kLineBytesMax) {
      if (!skipping) RETURN_IF_ERROR(answerer.RejectLong(block.line));
      skipping = true;
      block.offset += used;
      used = 0;
    }
  }
}

}  // namespace firstseen
