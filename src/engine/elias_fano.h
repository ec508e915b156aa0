// Sorted fingerprints of one shard in Elias-Fano form: what a snapshot stores.
//
// Layout (n values of w = bits - depth bits each, ascending; l = max(0, w - ceil(log2 n))):
//
//   low bits   n x l bits, packed from the least significant bit of the first byte on
//   high bits  value i sets bit (value_i >> l) + i; all other bits are clear
//
// n * (2 + w - log2 n) bits at the most, 0.44 to 0.56 bits a value above the information bound of
// w - log2 n + 1.44: less than 1 % for 96-bit fingerprints. Elias 1974, Fano 1971; Vigna,
// "Quasi-succinct indices", WSDM 2013.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "keys/fingerprint.h"

namespace firstseen {

// Appends the fingerprints' bits after the first `depth`, which all of them share, up to `bits`.
void EncodeEliasFano(std::span<const Fingerprint> ascending, int bits, int depth, std::string* out);

// `prefix`: the shared leading bits. DataLoss when `bytes` is not what n values encode to.
absl::StatusOr<std::vector<Fingerprint>> DecodeEliasFano(std::string_view bytes, size_t n, int bits,
                                                         int depth, const Fingerprint& prefix);

}  // namespace firstseen
