#include "ingest/answer_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/status.h"
#include "base/time_text.h"
#include "ingest/decode.h"

namespace firstseen {
namespace {

constexpr size_t kBatchRows = 4'096;

class Answerer {
 public:
  Answerer(Store* store, const AnswerRowsOptions& options, SetOptions set, absl::TimeZone zone,
           RowParser parser, TakeAnswers take)
      : store_(store),
        options_(options),
        set_(std::move(set)),
        zone_(zone),
        parser_(std::move(parser)),
        take_(take),
        has_token_(options.command == RowCommand::kClaim || options.command == RowCommand::kSettle),
        has_member_(options.command != RowCommand::kSettle),
        columns_((has_token_ ? 1 : 0) + (has_member_ ? 1 + set_.fields.size() : 0)),
        views_(kBatchRows * columns_),
        fields_(columns_ + 1) {}

  absl::Status AnswerBlock(const Block& block);
  // For a line that is longer than any row may be.
  absl::Status RejectLong(uint64_t line);
  const AnswerRowsTotals& totals() const { return totals_; }

 private:
  absl::Status ReadRow(const Line& line);
  absl::Status ReadTime(std::string_view text, MemberRequest* request) const;
  absl::Status AnswerBatch();
  absl::Status Ask();
  RowVerdict VerdictOf(Verdict verdict) const;

  Store* store_;
  const AnswerRowsOptions& options_;
  SetOptions set_;
  absl::TimeZone zone_;
  RowParser parser_;
  TakeAnswers take_;
  bool has_token_;
  bool has_member_;
  size_t columns_;
  // The batch: answers_ of all rows; requests_[i] or tokens_[i] is about answers_[asked_[i]].
  std::vector<RowAnswer> answers_;
  std::vector<size_t> asked_;
  std::vector<MemberRequest> requests_;
  std::vector<MemberResult> results_;
  std::vector<std::string_view> tokens_;
  std::vector<std::string_view> views_;  // columns_ for each row
  std::vector<Field> fields_;            // of one row
  AnswerRowsTotals totals_;
};

absl::Status Answerer::AnswerBlock(const Block& block) {
  LineCursor cursor(block);
  Line line;
  while (cursor.Next(&line)) {
    if (parser_.IsBlank(line.text)) continue;
    const absl::Status read = ReadRow(line);
    RowAnswer& answer = answers_.emplace_back();
    answer.line = line.number;
    if (!read.ok()) answer.reason = Message(read);
    if (answers_.size() == kBatchRows) RETURN_IF_ERROR(AnswerBatch());
  }
  return AnswerBatch();
}

absl::Status Answerer::RejectLong(uint64_t line) {
  RowAnswer& answer = answers_.emplace_back();
  answer.line = line;
  answer.reason = fmt::format("the line is longer than {} bytes", kLineBytesMax);
  return AnswerBatch();
}

// On success the row is the last one asked about, and will be the next one answered.
absl::Status Answerer::ReadRow(const Line& line) {
  if (line.too_long) {
    return InvalidArgument("the line is longer than {} bytes", kLineBytesMax);
  }
  ASSIGN_OR_RETURN(const size_t count, parser_.Parse(line.text, fields_));
  if (count != columns_) return InvalidArgument("{} fields instead of {}", count, columns_);
  std::string_view* const row = &views_[asked_.size() * columns_];
  for (size_t i = 0; i < columns_; ++i) {
    row[i] = fields_[i].text;
    const bool is_time = has_member_ && i == (has_token_ ? 1 : 0);
    if (is_time && set_.window == WindowKind::kNone) continue;
    if (fields_[i].null || row[i].empty()) {
      return InvalidArgument("field {} is {}", i + 1, fields_[i].null ? "null" : "empty");
    }
  }
  if (!has_member_) {
    tokens_.push_back(row[0]);
    asked_.push_back(answers_.size());
    return absl::OkStatus();
  }
  MemberRequest request;
  size_t next = 0;
  if (has_token_) request.token = row[next++];
  RETURN_IF_ERROR(ReadTime(row[next++], &request));
  request.fields = {row + next, set_.fields.size()};
  for (size_t i = 0; i < set_.fields.size(); ++i) {
    if (set_.fields[i].normalise != kOpaque && !IsValidUtf8(request.fields[i])) {
      return InvalidArgument("field {} ({}) is not valid text; is --encoding right?", next + i + 1,
                             set_.fields[i].name);
    }
  }
  requests_.push_back(request);
  asked_.push_back(answers_.size());
  return absl::OkStatus();
}

absl::Status Answerer::ReadTime(std::string_view text, MemberRequest* request) const {
  if (set_.window == WindowKind::kNone && text.empty()) {
    request->window = 0;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(request->time, ParseEventTime(text, zone_));
  return absl::OkStatus();
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
  ASSIGN_OR_RETURN(SetOptions set, store->Options(options.set));
  ASSIGN_OR_RETURN(const absl::TimeZone zone, LoadTimeZone(set.time_zone));
  ASSIGN_OR_RETURN(RowParser parser, RowParser::Create(options.format));
  Answerer answerer(store, options, std::move(set), zone, std::move(parser), take);
  const auto buffer = std::make_unique<char[]>(kBlockBytes);
  size_t used = 0;  // bytes of lines that are not whole yet
  Block block;
  bool skipping = false;  // the rest of a line that is too long
  while (true) {
    ASSIGN_OR_RETURN(const size_t got, read(buffer.get() + used, kBlockBytes - used));
    used += got;
    const bool end = got == 0;
    const void* newline = memrchr(buffer.get(), '\n', used);
    const size_t whole = end ? used
                         : newline == nullptr
                             ? 0
                             : static_cast<const char*>(newline) - buffer.get() + 1;
    std::string_view lines(buffer.get(), whole);
    if (skipping && whole > 0) {
      const size_t rest = std::min(lines.find('\n'), whole - 1) + 1;
      lines.remove_prefix(rest);
      block.offset += rest;
      ++block.line;
      skipping = false;
    }
    if (!lines.empty()) {
      block.bytes = lines;
      RETURN_IF_ERROR(answerer.AnswerBlock(block));
      block.offset += lines.size();
      block.line += static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    }
    if (end) return answerer.totals();
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
