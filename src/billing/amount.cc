#include "billing/amount.h"

#include <algorithm>

#include "base/status.h"

namespace firstseen {
namespace {

constexpr int kDigitsMax = 30;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<AmountUnits> ParseAmount(std::string_view text, int decimals) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.empty() || !std::ranges::all_of(whole, IsDigit) ||
      !std::ranges::all_of(fraction, IsDigit) ||
      (point != std::string_view::npos && fraction.empty())) {
    return InvalidArgument("not a decimal number such as 12.30");
  }
  while (fraction.size() > static_cast<size_t>(decimals) && fraction.ends_with('0')) {
    fraction.remove_suffix(1);
  }
  if (fraction.size() > static_cast<size_t>(decimals)) {
    return InvalidArgument("more than {} decimals (bills.amount_decimals)", decimals);
  }
  AmountUnits units = 0;
  int digits = 0;
  const auto append = [&](char c) {
    if (units != 0 || c != '0') ++digits;
    if (digits <= kDigitsMax) units = units * 10 + (c - '0');
  };
  for (const char c : whole) append(c);
  for (int i = 0; i < decimals; ++i) {
    append(static_cast<size_t>(i) < fraction.size() ? fraction[i] : '0');
  }
  if (digits > kDigitsMax) return InvalidArgument("more than {} digits", kDigitsMax);
  return negative ? -units : units;
}

std::string FormatAmount(AmountUnits units, int decimals) {
  const bool negative = units < 0;
  std::string reversed;
  for (int digit = 0; units != 0 || digit <= decimals; ++digit) {
    if (digit == decimals && decimals > 0) reversed += '.';
    const int last = static_cast<int>(units % 10);
    reversed += static_cast<char>('0' + (negative ? -last : last));
    units /= 10;
  }
  if (negative) reversed += '-';
  std::ranges::reverse(reversed);
  return reversed;
}

absl::Status AddAmount(AmountUnits units, AmountUnits* total) {
  if (__builtin_add_overflow(*total, units, total)) {
    return ResourceExhausted("the total amount does not fit into 128 bits");
  }
  return absl::OkStatus();
}

}  // namespace firstseen
