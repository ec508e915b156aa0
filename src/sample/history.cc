#include "sample/history.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "base/status.h"
#include "sample/output.h"

namespace firstseen::sample {
namespace {

constexpr uint64_t kDays = 364;  // 2023-01-01 to 2023-12-30
constexpr uint64_t kGapDays = 7;
constexpr uint64_t kProgressRows = 1 << 16;
constexpr uint32_t kRepeatedPerMillion = 4'000;

enum class Oddity { kNone, kProse, kTooFew, kTooMany, kBlank };

// Every fourth file carries oddities, at fixed places so that small samples have them too.
Oddity OddityOf(int file, uint64_t row, uint64_t rows) {
  if (file % 4 != 3) return Oddity::kNone;
  if (row == 0) return Oddity::kProse;
  if (row == rows / 4) return Oddity::kTooFew;
  if (row == rows / 2) return Oddity::kTooMany;
  if (row == rows / 4 * 3) return Oddity::kBlank;
  return Oddity::kNone;
}

// One row a call: name|id_no|ds|biz_seq_no.
class RowWriter {
 public:
  RowWriter(const People& people, uint64_t seed, uint64_t random_seed)
      : people_(people), seed_(seed), random_(random_seed) {
    for (absl::CivilDay day(2023, 1, 1); dates_.size() < kDays; ++day) {
      dates_.push_back(fmt::format("{:04}-{:02}-{:02}", day.year(), day.month(), day.day()));
    }
  }

  Random& random() { return random_; }

  // The day of the year on which somebody in history/ came first.
  uint64_t FirstDay(uint64_t person) const { return Mix(seed_ ^ Mix(person)) % kDays; }

  // A first occurrence: the same row, but for notation, whenever it is exported.
  void AppendFirst(uint64_t person, uint64_t day, std::string* out) {
    Append(person, day, '1', person, out);
  }
  // Another transaction of somebody who came before.
  void AppendRepeat(uint64_t person, std::string* out) {
    const uint64_t first = FirstDay(person);
    Append(person, first + random_.Below(kDays - first), '2', repeats_++, out);
  }

 private:
  void Append(uint64_t person, uint64_t day, char kind, uint64_t number, std::string* out) {
    people_.Get(person, &person_);
    AppendName(person_.name, random_, out);
    *out += '|';
    AppendIdNumber(person_.id_number, random_, out);
    const std::string_view date = dates_[day];
    fmt::format_to(std::back_inserter(*out), "|{}|{}{}{}{}{:011}", date, date.substr(0, 4),
                   date.substr(5, 2), date.substr(8, 2), kind, number);
  }

  const People& people_;
  uint64_t seed_;
  Random random_;
  Person person_;
  std::vector<std::string> dates_;
  uint64_t repeats_ = 0;
};

void AppendOddity(Oddity oddity, std::string* out) {
  if (oddity == Oddity::kProse) *out += "Exported by the data warehouse, do not edit";
  if (oddity == Oddity::kTooFew) *out += "\\N|2023-07-01";
  if (oddity == Oddity::kTooMany) *out += "a|b|2023-07-01|1|left over";
}

absl::Status WriteHistoryFile(const GenerateOptions& options, int number, uint64_t rows,
                              RowWriter* writer, GenerateProgress progress,
                              GenerateTotals* totals) {
  const std::string path = fmt::format("{}/history/{:06}_0", options.out, number);
  ASSIGN_OR_RETURN(Output output, Output::Create(options.files, path, options.encoding));
  const std::string_view line_end = number == 2 ? "\r\n" : "\n";
  std::string& text = output.text();
  if (number == 1 && options.encoding == "utf-8") text += "\ufeff";
  for (uint64_t row = 0; row < rows; ++row) {
    const Oddity oddity = OddityOf(number, row, rows);
    if (oddity != Oddity::kNone) {
      AppendOddity(oddity, &text);
      text += line_end;
      if (oddity != Oddity::kBlank) {
        ++totals->history_rows;
        ++totals->history_rejected;
      }
    }
    const bool repeated =
        totals->history_members > 0 && writer->random().Chance(kRepeatedPerMillion);
    if (repeated) {
      writer->AppendRepeat(writer->random().Below(totals->history_members), &text);
    } else {
      const uint64_t person = totals->history_members++;
      writer->AppendFirst(person, writer->FirstDay(person), &text);
    }
    text += line_end;
    ++totals->history_rows;
    RETURN_IF_ERROR(output.FlushIfFull());
    if (totals->history_rows % kProgressRows == 0) {
      progress(totals->history_rows, options.history_rows + options.transactions);
    }
  }
  return output.Flush();
}

absl::Status WriteTextFile(FileSystem* files, const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(Output output, Output::Create(files, path));
  output.text() = text;
  return output.Flush();
}

// One in fifty came then; a thousand tries miss all of them once in 10^8.
uint64_t SomebodyOfLastWeek(RowWriter* writer, uint64_t members) {
  uint64_t person = 0;
  for (int tries = 0; tries < 1'000; ++tries) {
    person = writer->random().Below(members);
    if (writer->FirstDay(person) >= kDays - kGapDays) break;
  }
  return person;
}

}  // namespace

absl::Status WriteHistory(const GenerateOptions& options, const People& people,
                          GenerateProgress progress, GenerateTotals* totals) {
  const std::string directory = options.out + "/history";
  RETURN_IF_ERROR(options.files->CreateDirectory(directory));
  RowWriter writer(people, options.seed, options.seed ^ 0x686973746f7279ull);
  const uint64_t files = options.history_files;
  for (uint64_t i = 0; i < files; ++i) {
    const uint64_t rows = options.history_rows / files + (i < options.history_rows % files);
    RETURN_IF_ERROR(
        WriteHistoryFile(options, static_cast<int>(i), rows, &writer, progress, totals));
  }
  RETURN_IF_ERROR(WriteTextFile(options.files, directory + "/_SUCCESS", ""));
  return WriteTextFile(options.files, directory + "/.000000_0.crc", "crc\n");
}

absl::Status WriteGap(const GenerateOptions& options, const People& people,
                      GenerateTotals* totals) {
  RETURN_IF_ERROR(options.files->CreateDirectory(options.out + "/gap"));
  RowWriter writer(people, options.seed, options.seed ^ 0x676170ull);
  ASSIGN_OR_RETURN(Output output,
                   Output::Create(options.files, options.out + "/gap/000000_0", options.encoding));
  const uint64_t rows = std::max<uint64_t>(options.history_rows / 500, 10);
  std::string& text = output.text();
  for (; totals->gap_rows < rows; ++totals->gap_rows) {
    if (writer.random().Below(4) == 0) {
      const uint64_t person = totals->history_members + totals->gap_new_members++;
      writer.AppendFirst(person, kDays - 1 - writer.random().Below(kGapDays), &text);
    } else {
      const uint64_t person = SomebodyOfLastWeek(&writer, totals->history_members);
      writer.AppendFirst(person, writer.FirstDay(person), &text);
    }
    text += '\n';
    RETURN_IF_ERROR(output.FlushIfFull());
  }
  return output.Flush();
}

}  // namespace firstseen::sample
