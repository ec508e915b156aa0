#include "store/set_options.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "base/time_text.h"
#include "keys/normalise_spec.h"
#include "keys/utf8.h"

namespace firstseen {
namespace {

constexpr size_t kNameBytesMax = 64;
constexpr size_t kFieldsMax = 16;
constexpr uint64_t kExpectedMax = 1'000'000'000'000;
constexpr std::array kBits = {80, 88, 96, 112, 128};
constexpr uint32_t kAllNormalisations =
    kTrim | kWidth | kXCheckDigit | kId15To18 | kNameDot | kZeroWidth;

constexpr std::string_view kWindowKinds[] = {"none", "year", "month", "day"};
constexpr std::string_view kEncodings[] = {"fields", "concat"};
constexpr std::string_view kDurabilities[] = {"fsync", "interval", "none"};

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

absl::Status ValidateName(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kNameBytesMax && IsLetterOrDigit(name[0]) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.';
                    });
  if (good) return absl::OkStatus();
  return InvalidArgument(
      "a set's name has 1 to {} letters, digits, '_', '-' and '.', the first a letter or digit",
      kNameBytesMax);
}

absl::Status ValidateBits(int bits) {
  if (std::find(kBits.begin(), kBits.end(), bits) != kBits.end()) return absl::OkStatus();
  if (bits == 64) {
    return InvalidArgument(
        "64 bits are too few for an exact set: among a billion members two would share a "
        "fingerprint with a chance of 2.7 %, and a member would wrongly be a duplicate; "
        "choose 80, 88, 96 (default), 112 or 128");
  }
  return InvalidArgument("{} bits are not to be had; choose 80, 88, 96 (default), 112 or 128",
                         bits);
}

absl::Status ValidateFields(const std::vector<FieldOptions>& fields) {
  if (fields.empty() || fields.size() > kFieldsMax) {
    return InvalidArgument("a member has 1 to {} fields, not {}", kFieldsMax, fields.size());
  }
  for (auto field = fields.begin(); field != fields.end(); ++field) {
    const std::string& name = field->name;
    const bool good = !name.empty() && name.size() <= kNameBytesMax && name.front() != ' ' &&
                      name.back() != ' ' && IsUtf8(name) &&
                      std::none_of(name.begin(), name.end(), [](unsigned char c) {
                        return c < 0x20 || c == 0x7F || c == ',' || c == ';' || c == ':';
                      });
    if (!good) {
      return InvalidArgument(
          "the name of field {} must be 1 to {} bytes of UTF-8 without ',', ';', ':', control "
          "characters and spaces at the ends",
          field - fields.begin() + 1, kNameBytesMax);
    }
    if ((field->normalise & ~kAllNormalisations) != 0) {
      return InvalidArgument("field {} has a normalisation that this version does not know", name);
    }
    if (std::any_of(fields.begin(), field, [&](const auto& f) { return f.name == name; })) {
      return InvalidArgument("two fields have the name {}", name);
    }
  }
  return absl::OkStatus();
}

template <size_t size, typename Enum>
bool IsOneOf(const std::string_view (&)[size], Enum value) {
  return static_cast<size_t>(value) < size;
}

std::string FieldNames(const SetOptions& options) {
  std::string names;
  for (const FieldOptions& field : options.fields) {
    if (!names.empty()) names += ",";
    names += field.name;
  }
  return names;
}

// Collects "option is A and not B" clauses.
class Differences {
 public:
  template <typename Value>
  void Compare(std::string_view option, const Value& is, const Value& asked) {
    if (is == asked) return;
    text_ += fmt::format("{}{} is {} and not {}", text_.empty() ? "" : ", ", option, is, asked);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::Status ValidateSet(std::string_view name, const SetOptions& options) {
  RETURN_IF_ERROR(ValidateName(name));
  RETURN_IF_ERROR(ValidateBits(options.bits));
  RETURN_IF_ERROR(ValidateFields(options.fields));
  RETURN_IF_ERROR(LoadTimeZone(options.time_zone).status());
  if (!IsOneOf(kWindowKinds, options.window) || !IsOneOf(kEncodings, options.member_encoding) ||
      !IsOneOf(kDurabilities, options.durability)) {
    return InvalidArgument(
        "the kind of window, the member encoding or the durability is none that this version "
        "knows");
  }
  if (options.expected > kExpectedMax) {
    return InvalidArgument("{} members expected; the limit is {}", options.expected, kExpectedMax);
  }
  return absl::OkStatus();
}

std::string DescribeDifference(const SetOptions& is, const SetOptions& asked) {
  Differences differences;
  differences.Compare("window", kWindowKinds[static_cast<size_t>(is.window)],
                      kWindowKinds[static_cast<size_t>(asked.window)]);
  differences.Compare("time zone", is.time_zone, asked.time_zone);
  const std::string fields = FieldNames(is);
  differences.Compare("fields", fields, FieldNames(asked));
  for (size_t i = 0; fields == FieldNames(asked) && i < is.fields.size(); ++i) {
    differences.Compare(fmt::format("normalisation of {}", is.fields[i].name),
                        FormatNormalisation(is.fields[i].normalise),
                        FormatNormalisation(asked.fields[i].normalise));
  }
  differences.Compare("member encoding", kEncodings[static_cast<size_t>(is.member_encoding)],
                      kEncodings[static_cast<size_t>(asked.member_encoding)]);
  differences.Compare("bits", is.bits, asked.bits);
  differences.Compare("durability", kDurabilities[static_cast<size_t>(is.durability)],
                      kDurabilities[static_cast<size_t>(asked.durability)]);
  return differences.text();
}

}  // namespace firstseen
