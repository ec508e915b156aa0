#include "ingest/block_mapper.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "ingest/rejects.h"

namespace firstseen {
namespace {

constexpr size_t kAcceptedMax = 64;

}  // namespace

absl::Status BlockMapper::Map(const ImportWork& work) {
  if (!mapper_.has_value() || mapper_file_ != work.file) {
    ASSIGN_OR_RETURN(mapper_, RowMapper::Create(set_options_, options_, files_[work.file]));
    mapper_file_ = work.file;
  }
  mapper_->Reset();
  row_count_ = 0;
  rejected_ = 0;
  blank_ = 0;
  rejects_.clear();
  const size_t lines_max = work.block.end_line - work.block.line + 1;
  const size_t width = mapper_->field_count();
  if (rows_.size() < lines_max) {
    rows_.resize(lines_max);
    lines_.resize(lines_max);
  }
  if (fields_.size() < lines_max * width) fields_.resize(lines_max * width);

  LineCursor cursor(work.block);
  Line line;
  RejectReason reason;
  while (cursor.Next(&line)) {
    std::string_view* fields = &fields_[row_count_ * width];
    ImportRow& row = rows_[row_count_];
    RowKind kind = mapper_->Map(line, fields, &row.window, &row.token, &reason);
    if (kind == RowKind::kRow && !Accepts(row.window, &reason)) kind = RowKind::kRejected;
    switch (kind) {
      case RowKind::kRow:
        row.fields = {fields, width};
        lines_[row_count_++] = line.number;
        break;
      case RowKind::kBlank:
        ++blank_;
        break;
      case RowKind::kRejected:
        ++rejected_;
        if (line.too_long) {
          line.raw = line.raw.substr(0, kLineBytesMax);
          reason.remedy +=
              fmt::format("; only its first {} bytes are in the rejects file", kLineBytesMax);
        }
        AppendRejectFrame(work.file, line.number, reason, line.raw, &rejects_);
        break;
    }
  }
  return absl::OkStatus();
}

bool BlockMapper::Accepts(WindowId window, RejectReason* reason) {
  if (!accepted_.empty() && accepted_.front() == window) return true;
  const auto found = std::find(accepted_.begin(), accepted_.end(), window);
  if (found != accepted_.end()) {
    std::iter_swap(accepted_.begin(), found);
    return true;
  }
  const absl::Status status = store_->AcceptsWindow(set_, window);
  if (!status.ok()) {
    *reason = {options_.time_column, std::string(Message(status)), "correct the time of the row"};
    return false;
  }
  if (accepted_.size() == kAcceptedMax) accepted_.pop_back();
  accepted_.insert(accepted_.begin(), window);
  return true;
}

}  // namespace firstseen
