#include "keys/key_file.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr std::string_view kMagicLine = "firstseen-key-file 1";
constexpr size_t kFileBytesMax = 64 << 10;
constexpr size_t kKeysMax = 100;

// Takes the next word off *line; empty at its end.
std::string_view NextWord(std::string_view* line) {
  constexpr std::string_view kBlank = " \t";
  line->remove_prefix(std::min(line->find_first_not_of(kBlank), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlank));
  line->remove_prefix(word.size());
  return word;
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// "2027-01-01" to 20270101; 0 when it is no date of the calendar from 1970 to 2999.
int32_t ParseDay(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return 0;
  unsigned year = 0;
  unsigned month = 0;
  unsigned day = 0;
  if (!ParseNumber(text.substr(0, 4), &year) || !ParseNumber(text.substr(5, 2), &month) ||
      !ParseNumber(text.substr(8, 2), &day)) {
    return 0;
  }
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || year < 1970 || year > 2999) return 0;
  return static_cast<int32_t>(year * 10000 + month * 100 + day);
}

// "key ID HEX [from DAY]", the word `key` already taken.
absl::StatusOr<KeyEntry> ParseKeyLine(std::string_view line, size_t number,
                                      const std::vector<KeyEntry>& before) {
  uint32_t id = 0;
  if (!ParseNumber(NextWord(&line), &id) || id == 0) {
    return InvalidArgument("line {}: the id after 'key' must be a number from 1", number);
  }
  const std::string_view hex = NextWord(&line);
  SipKey bytes;
  size_t size = 0;
  const char* end = nullptr;
  if (hex.size() != 2 * bytes.size() ||
      sodium_hex2bin(bytes.data(), bytes.size(), hex.data(), hex.size(), nullptr, &size, &end) !=
          0 ||
      size != bytes.size()) {
    return InvalidArgument("line {}: a key must be {} hexadecimal digits", number,
                           2 * bytes.size());
  }
  KeyEntry entry{id, 0, SecretKey(bytes)};
  sodium_memzero(bytes.data(), bytes.size());
  const std::string_view from = NextWord(&line);
  if (before.empty() != from.empty() || (!from.empty() && from != "from")) {
    return InvalidArgument("line {}: {}", number,
                           before.empty() ? "the first key must have nothing after its digits"
                                          : "a further key needs 'from yyyy-MM-dd'");
  }
  if (!from.empty()) {
    entry.from_day = ParseDay(NextWord(&line));
    if (entry.from_day == 0) {
      return InvalidArgument("line {}: 'from' needs a day as yyyy-MM-dd", number);
    }
  }
  if (!NextWord(&line).empty()) return InvalidArgument("line {}: too many words", number);
  for (const KeyEntry& other : before) {
    if (other.id >= id || other.from_day >= entry.from_day) {
      return InvalidArgument("line {}: ids and days must grow from key to key", number);
    }
    if (other.key == entry.key) {
      return InvalidArgument("line {}: the same key as that of id {}", number, other.id);
    }
  }
  return entry;
}

// Text that held a key, wiped.
class Wipe {
 public:
  explicit Wipe(std::string* text) : text_(text) {}
  ~Wipe() { sodium_memzero(text_->data(), text_->size()); }
  Wipe(const Wipe&) = delete;
  Wipe& operator=(const Wipe&) = delete;

 private:
  std::string* const text_;
};

absl::StatusOr<std::vector<KeyEntry>> ReadChecked(FileSystem* files, const std::string& path) {
  ASSIGN_OR_RETURN(const uint32_t mode, files->Permissions(path));
  if ((mode & 077) != 0) {
    return FailedPrecondition(
        "others than its owner may read or write it (mode {:04o}); "
        "run: chmod 600 {}",
        mode, path);
  }
  // Opening a pipe waits for a writer.
  ASSIGN_OR_RETURN(const bool regular, files->IsRegularFile(path));
  if (!regular) return FailedPrecondition("it is no regular file; is the path right?");
  ASSIGN_OR_RETURN(const auto file, files->Open(path, OpenMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size > kFileBytesMax) {
    return FailedPrecondition("it has {} bytes, which no key file has; is the path right?", size);
  }
  std::string text(size, '\0');
  const Wipe wipe(&text);
  ASSIGN_OR_RETURN(const size_t read, file->Read(0, text.data(), text.size()));
  auto entries = ParseKeyFile(std::string_view{text}.substr(0, read));
  if (!entries.ok()) {
    return FailedPrecondition("{}; mend that line or restore your backup of the file",
                              Message(entries.status()));
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<KeyEntry>> ParseKeyFile(std::string_view text) {
  std::vector<KeyEntry> entries;
  bool magic = false;
  size_t number = 0;
  // The last line must have its end, so that a file cut short is noticed.
  if (!text.ends_with('\n')) {
    return InvalidArgument("the file is empty or its last line is not complete");
  }
  while (!text.empty()) {
    ++number;
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::string_view rest = line;
    const std::string_view word = NextWord(&rest);
    if (word.empty() || word.front() == '#') continue;
    if (!magic) {
      if (line != kMagicLine) {
        return InvalidArgument("line {}: a key file begins with '{}'", number, kMagicLine);
      }
      magic = true;
      continue;
    }
    if (word != "key") {
      return InvalidArgument("line {}: only 'key ID DIGITS [from DAY]' may stand here", number);
    }
    if (entries.size() == kKeysMax) {
      return InvalidArgument("line {}: more than {} keys", number, kKeysMax);
    }
    ASSIGN_OR_RETURN(KeyEntry entry, ParseKeyLine(rest, number, entries));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) return InvalidArgument("line {}: no key before the end", number);
  return entries;
}

std::string FormatKeyFile(const std::vector<KeyEntry>& entries) {
  std::string text =
      "# The secret key of a firstseen data directory. Keep a copy in a safe place: without it "
      "the\n"
      "# data is worthless, and whoever has both can test who is in it.\n";
  text += kMagicLine;
  text += '\n';
  for (const KeyEntry& entry : entries) {
    char hex[2 * SecretKey::kBytes + 1];
    sodium_bin2hex(hex, sizeof(hex), entry.key.bytes().data(), entry.key.bytes().size());
    text += fmt::format("key {} {}", entry.id, hex);
    sodium_memzero(hex, sizeof(hex));
    if (entry.from_day != 0) {
      text += fmt::format(" from {:04}-{:02}-{:02}", entry.from_day / 10000,
                          entry.from_day / 100 % 100, entry.from_day % 100);
    }
    text += '\n';
  }
  return text;
}

absl::StatusOr<std::vector<KeyEntry>> ReadKeyFile(FileSystem* files, const std::string& path) {
  auto entries = ReadChecked(files, path);
  if (entries.ok()) return entries;
  if (absl::IsNotFound(entries.status())) {
    return NotFound("there is no key file {}; restore your backup of it, or say where it is", path);
  }
  return Annotate(entries.status(), fmt::format("key file {}", path));
}

absl::Status CreateKeyFile(FileSystem* files, const std::string& path) {
  // Renamed into place whole, so that a crash leaves no part of a key; locked, so that of two at
  // once the later does not rename over the key of the earlier.
  ASSIGN_OR_RETURN(const auto lock, files->Lock(path + ".lock", "somebody making a key file"));
  ASSIGN_OR_RETURN(const bool exists, files->Exists(path));
  if (exists) return AlreadyExists("there is a key file {}", path);
  std::string text = FormatKeyFile({{1, 0, SecretKey::Random()}});
  const Wipe wipe(&text);
  return WriteFileAtomically(files, path, text);
}

}  // namespace firstseen
