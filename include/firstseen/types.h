// The words of firstseen as types: what a set is, what a claim answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firstseen {

// The period in which a member counts once. A window is chosen by the event's own time in the
// set's time zone.
enum class WindowKind : uint8_t { kNone = 0, kYear = 1, kMonth = 2, kDay = 3 };

// One window of a set as a decimal number: 0 (kind none), 2023, 202312 or 20231231.
using WindowId = int32_t;

// What a claim answers.
enum class Verdict : uint8_t {
  kFirst = 0,      // nobody claimed this member in this window before
  kDuplicate = 1,  // somebody else did
  kRepeat = 2,     // this same token did: a retry, still the first
  kClosed = 3,     // the window was dropped and not reopened
};

// How the fields of a member are joined before they are fingerprinted.
enum class MemberEncoding : uint8_t {
  kFields = 0,  // each field preceded by its length: ("ab","c") differs from ("a","bc")
  kConcat = 1,  // plain concatenation, to match members that an existing system concatenated
};

// When an answer that rests on a record may leave.
enum class Durability : uint8_t {
  kFsync = 0,     // after the record is on disk
  kInterval = 1,  // at once; records reach the disk within a second
  kNone = 2,      // at once; records reach the disk when the operating system pleases
};

// Normalisations of one field, as a bit mask. Which of them apply is a matter of the contract:
// they are recorded with the set, and a set opened with others is refused.
enum Normalisation : uint32_t {
  kOpaque = 0,           // bytes as they are (encrypted fields)
  kTrim = 1u << 0,       // ASCII white space and U+3000 at both ends
  kWidth = 1u << 1,      // full-width ASCII to ASCII
  kXCheckDigit = 1u << 2,  // a final x of an 18-character id number to X
  kId15To18 = 1u << 3,   // 15-digit id numbers to 18 digits (GB 11643)
  kNameDot = 1u << 4,    // name separators between letters to U+00B7
  kZeroWidth = 1u << 5,  // U+200B, U+200C, U+200D, U+2060, U+FEFF removed
};

struct FieldOptions {
  std::string name;
  uint32_t normalise = kOpaque;  // mask of Normalisation
  friend bool operator==(const FieldOptions&, const FieldOptions&) = default;
};

// What a set is, fixed at its creation.
struct SetOptions {
  WindowKind window = WindowKind::kNone;
  std::string time_zone = "Asia/Shanghai";
  std::vector<FieldOptions> fields;
  MemberEncoding member_encoding = MemberEncoding::kFields;
  int bits = 96;               // fingerprint width: 80, 88, 96, 112 or 128
  uint64_t expected = 0;       // members expected in a window; 0 = unknown
  Durability durability = Durability::kFsync;
  friend bool operator==(const SetOptions&, const SetOptions&) = default;
};

}  // namespace firstseen
