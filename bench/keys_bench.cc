// Normalise, encode and fingerprint members of a name and an id number: one core, no memory
// effects.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "keys/keyring.h"
#include "keys/member.h"

namespace firstseen {
namespace {

constexpr size_t kRows = 1024;

void Run(benchmark::State& state, const std::vector<FieldOptions>& fields,
         const std::string& name) {
  const MemberEncoder encoder(fields, MemberEncoding::kFields);
  const MemberHasher hasher(SecretKey(SipKey{1}));
  std::vector<std::string> ids;
  for (size_t i = 0; i < kRows; ++i) ids.push_back("33010219900101" + std::to_string(1000 + i));
  std::string member;
  Fingerprint sum;
  for (auto _ : state) {
    for (const std::string& id : ids) {
      const std::string_view row[] = {name, id};
      FIRSTSEEN_CHECK(encoder.Encode(row, &member).ok());
      sum.hi ^= hasher.MemberFingerprint(member).hi;
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kRows));
}

constexpr uint32_t kName = kTrim | kWidth | kNameDot | kZeroWidth;
constexpr uint32_t kId = kTrim | kWidth | kXCheckDigit | kId15To18 | kZeroWidth;

void ChineseName(benchmark::State& state) {
  Run(state, {{"name", kName}, {"id_no", kId}}, "张三丰");
}
void LongNameWithDot(benchmark::State& state) {
  Run(state, {{"name", kName}, {"id_no", kId}}, "阿卜杜拉.买买提");
}
void AsciiName(benchmark::State& state) {
  Run(state, {{"name", kName}, {"id_no", kId}}, "Zhang Sanfeng");
}
void Opaque(benchmark::State& state) {
  Run(state, {{"name", kOpaque}, {"id_no", kOpaque}}, "kGx0ZJ5vXwq7mJ2s3tYb1Q==");
}

BENCHMARK(ChineseName);
BENCHMARK(LongNameWithDot);
BENCHMARK(AsciiName);
BENCHMARK(Opaque);

}  // namespace
}  // namespace firstseen

BENCHMARK_MAIN();
