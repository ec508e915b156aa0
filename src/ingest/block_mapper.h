// Makes an import batch of a block of lines. One for each thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "firstseen/types.h"
#include "ingest/import_stream.h"
#include "ingest/row_mapper.h"
#include "store/store.h"

namespace firstseen {

class BlockMapper {
 public:
  // All must outlive it.
  BlockMapper(const Store* store, std::string_view set, const SetOptions& set_options,
              const MappingOptions& options, std::span<const InputFile> files)
      : store_(store), set_(set), set_options_(set_options), options_(options), files_(files) {}

  // Replaces what is below; everything is valid until the next call and as long as the block.
  absl::Status Map(const ImportWork& work);

  std::span<const ImportRow> rows() const { return {rows_.data(), row_count_}; }
  // The line of rows()[i], for errors.
  uint64_t line(size_t i) const { return lines_[i]; }
  const std::string& reject_frames() const { return rejects_; }
  uint64_t rejected() const { return rejected_; }
  uint64_t blank() const { return blank_; }

 private:
  bool Accepts(WindowId window, RejectReason* reason);

  const Store* store_;
  std::string set_;
  const SetOptions& set_options_;
  const MappingOptions& options_;
  std::span<const InputFile> files_;

  std::optional<RowMapper> mapper_;  // of file mapper_file_
  size_t mapper_file_ = 0;
  std::vector<WindowId> accepted_;  // windows that the store takes, the last one used first

  // The first row_count_ are in use; vectors only grow, as blocks are all of about one size.
  std::vector<ImportRow> rows_;
  std::vector<uint64_t> lines_;
  std::vector<std::string_view> fields_;
  size_t row_count_ = 0;
  std::string rejects_;
  uint64_t rejected_ = 0;
  uint64_t blank_ = 0;
};

}  // namespace firstseen
