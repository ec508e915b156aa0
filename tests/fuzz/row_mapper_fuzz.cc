// From bytes to rows: any bytes are cut into lines that make up all of them, and a row that is
// mapped is one that a set takes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "ingest/row_mapper.h"
#include "keys/member.h"

namespace firstseen {
namespace {

class FuzzStream : public ByteStream {
 public:
  explicit FuzzStream(std::string_view bytes) : bytes_(bytes) {}
  absl::StatusOr<size_t> Read(char* out, size_t size) override {
    const size_t n = std::min(size, bytes_.size() - offset_);
    std::memcpy(out, bytes_.data() + offset_, n);
    offset_ += n;
    return n;
  }
  uint64_t consumed_bytes() const override { return offset_; }

 private:
  std::string_view bytes_;
  size_t offset_ = 0;
};

void Run(uint8_t choice, std::string_view bytes) {
  SetOptions set;
  set.window = WindowKind::kMonth;
  set.fields = {{"name", (choice & 4) != 0 ? uint32_t{kOpaque} : kTrim | kWidth | kZeroWidth},
                {"id_no", kTrim | kId15To18}};
  MappingOptions options;
  options.format.delimiter = '|';
  if ((choice & 1) != 0) options.format.encoding = TextEncoding::kGb18030;
  if ((choice & 2) != 0) options.format.escape = '\\';
  options.columns = {"name", "id_no", "time", "serial"};
  options.time_column = "time";
  options.token_column = "serial";
  const InputFile file = {.path = "fuzz"};
  absl::StatusOr<RowMapper> mapper = RowMapper::Create(set, options, file);
  FIRSTSEEN_CHECK(mapper.ok());
  const MemberEncoder encoder(set.fields, MemberEncoding::kFields);

  BlockReader reader(std::make_unique<FuzzStream>(bytes), "fuzz");
  static char buffer[kBlockBytes];
  std::string member;
  LineBlock block;
  uint64_t number = 1;
  uint64_t offset = 0;
  while (*reader.Next(buffer, &block)) {
    FIRSTSEEN_CHECK(block.offset == offset && block.line == number);
    offset = block.end_offset;
    LineCursor cursor(block);
    Line line;
    while (cursor.Next(&line)) {
      FIRSTSEEN_CHECK(line.number == number);
      ++number;
      std::string_view fields[2];
      std::string_view token;
      WindowId window = 0;
      RejectReason reason;
      const RowKind kind = mapper->Map(line, fields, &window, &token, &reason);
      if (kind == RowKind::kRejected) FIRSTSEEN_CHECK(!reason.reason.empty());
      if (kind != RowKind::kRow) continue;
      FIRSTSEEN_CHECK(encoder.Encode(fields, &member).ok());
      FIRSTSEEN_CHECK(window >= 197001 && window <= 299912 && !token.empty());
    }
    mapper->Reset();
  }
  FIRSTSEEN_CHECK(offset == bytes.size());
}

}  // namespace
}  // namespace firstseen

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  firstseen::Run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
