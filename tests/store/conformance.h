// What every store must do, whatever is behind it. A store is put under these tests by
//   INSTANTIATE_TEST_SUITE_P(Name, StoreConformanceTest, testing::Values(StoreKind{...}));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/status.h"
#include "store/store.h"
#include "support/fixed_clock.h"

namespace firstseen {

// One store's data. Opened again, it gives the same data.
class StoreHome {
 public:
  virtual ~StoreHome() = default;
  virtual absl::StatusOr<std::unique_ptr<Store>> Open() = 0;
};

struct StoreKind {
  std::string name;
  // `clock` decides what is too far in the future: 48 hours after it.
  std::function<std::unique_ptr<StoreHome>(const Clock* clock)> make_home;
};

// A row with storage of its own.
struct Row {
  std::vector<std::string> fields;
  std::string time;  // as ParseEventTime takes it, in Asia/Shanghai; or
  std::optional<WindowId> window;
  std::string token;
};

SetOptions YearOfNamesAndIds();

inline constexpr char kId[] = "33010219200403064X";
inline constexpr char kOtherId[] = "110105194912310021";

inline Row In(WindowId window, std::string name, std::string id, std::string token = "") {
  return {{std::move(name), std::move(id)}, "", window, std::move(token)};
}
inline Row At(std::string time, std::string name, std::string id, std::string token = "") {
  return {{std::move(name), std::move(id)}, std::move(time), std::nullopt, std::move(token)};
}

inline std::vector<Verdict> Verdicts(const std::vector<MemberResult>& results) {
  std::vector<Verdict> verdicts;
  for (const MemberResult& result : results) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    verdicts.push_back(result.verdict);
  }
  return verdicts;
}

inline constexpr Verdict kFirst = Verdict::kFirst;
inline constexpr Verdict kDuplicate = Verdict::kDuplicate;
inline constexpr Verdict kRepeat = Verdict::kRepeat;
inline constexpr Verdict kClosed = Verdict::kClosed;

class StoreConformanceTest : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override;

  Store& store() { return *store_; }
  // Closes the store and opens it again.
  void OpenAgain();
  void Create(std::string_view name, const SetOptions& options);

  using Method = absl::Status (Store::*)(std::string_view, std::span<const MemberRequest>,
                                         std::span<MemberResult>);
  std::vector<MemberResult> Run(Method method, std::string_view set, const std::vector<Row>& rows);
  std::vector<MemberResult> Claim(const std::vector<Row>& rows) {
    return Run(&Store::Claim, "kyc", rows);
  }
  // Of one row of the set kyc, which must be a good one.
  MemberResult ClaimOne(const Row& row) { return One(&Store::Claim, row); }
  Verdict CheckOne(const Row& row) { return One(&Store::Check, row).verdict; }
  Verdict RemoveOne(const Row& row) { return One(&Store::Remove, row).verdict; }
  uint64_t Settle(const std::vector<std::string>& tokens);
  ImportTotals Import(std::string_view source, std::string_view position,
                      const std::vector<Row>& rows, std::vector<absl::Status>* statuses = nullptr,
                      ImportOwners owners = ImportOwners::kUnsettled);

  FixedClock clock_{absl::FromUnixSeconds(1'704'067'200)};  // 2024-01-01T08:00:00+08:00

 private:
  MemberResult One(Method method, const Row& row);

  std::unique_ptr<StoreHome> home_;
  std::unique_ptr<Store> store_;
};

}  // namespace firstseen
