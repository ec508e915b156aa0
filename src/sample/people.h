// Invented people: names and valid id numbers, and the ways in which real files write them.
//
// Nobody here exists on purpose, but an id number made of a real area code, a date and a serial may
// be somebody's by chance: treat generated files as you would real ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sample/random.h"

namespace firstseen::sample {

struct Person {
  std::string name;       // UTF-8, parts joined by U+00B7
  std::string id_number;  // 18 characters, check digit by GB 11643 (ISO 7064 MOD 11-2)
};

// Person number i, for every i below count(): always the same for the same seed, no two with the
// same id number. Thread-safe. O(1).
class People {
 public:
  explicit People(uint64_t seed);

  uint64_t count() const;
  // Fills `person`, reusing its memory.
  void Get(uint64_t index, Person* person) const;

 private:
  void MakeName(uint64_t index, std::string* name) const;

  uint64_t seed_;
  uint64_t offset_;
  std::vector<std::string> birth_dates_;  // yyyyMMdd
};

// Appends a field as it is, or now and then in another notation of the same value: full-width
// digits and X, lower-case x, the 15-digit form, other name separators, spaces around, a zero-width
// space within. Normalisations trim, width, x-check-digit, id-15-to-18, name-dot and zero-width
// undo all of them.
void AppendName(std::string_view name, Random& random, std::string* out);
void AppendIdNumber(std::string_view id_number, Random& random, std::string* out);

}  // namespace firstseen::sample
