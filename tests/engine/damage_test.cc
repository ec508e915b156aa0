// Every cut and every flipped byte, and what repair makes of them.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine_fixture.h"
#include "engine/model.h"

namespace firstseen {
namespace {

using testing::HasSubstr;

std::vector<std::string> ListPaths(FileSystem& disk) {
  std::vector<std::string> paths = disk.List("/data/db").value();
  for (std::string& path : paths) path = "/data/db/" + path;
  return paths;
}

// What the script leaves after closing, or after a crash right before.
struct Image {
  std::unique_ptr<FaultyFileSystem> disk;
  std::vector<Model> candidates;

  std::vector<std::string> Files() const { return ListPaths(*disk); }
  std::unique_ptr<FaultyFileSystem> With(const std::string& path,
                                         const std::string& content) const {
    std::unique_ptr<FaultyFileSystem> copy = disk->AfterPowerLoss(1);
    copy->SetContent(path, content);
    return copy;
  }
};

Image MakeImage(bool close) {
  FaultyFileSystem disk;
  ManualClock clock;
  EXPECT_TRUE(Engine::Create(ModelOptions(&disk, &clock)).ok());
  auto engine = Engine::Open(ModelOptions(&disk, &clock)).value();
  Driver driver(engine.get());
  EXPECT_TRUE(RunScript(engine.get(), &driver, true).ok());
  Image image;
  if (!close) image.disk = disk.AfterProcessCrash();
  EXPECT_TRUE(engine->Close().ok());
  if (close) image.disk = disk.AfterProcessCrash();
  image.candidates = driver.candidates();
  if (!close) {
    // Nothing behind the last record shows that it was on disk: damaged, it counts as unsynced.
    Model without = image.candidates.back();
    without.windows[{0, 2023}].members.erase(11);
    image.candidates.push_back(without);
  }
  return image;
}

bool Refused(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

// Either refused, or all that was acknowledged is there and nothing else.
void ExpectRefusedOrWhole(const Image& image, const FaultyFileSystem& damaged,
                          const std::string& what, int* refused) {
  const absl::Status status = CheckRecovery(damaged, image.candidates);
  ASSERT_TRUE(status.ok() || Refused(status)) << what << ": " << status;
  *refused += !status.ok();
  // Repair always leads back to an engine that opens.
  std::unique_ptr<FaultyFileSystem> copy = damaged.AfterPowerLoss(1);
  ManualClock clock;
  const EngineOptions options = ModelOptions(copy.get(), &clock);
  const auto listed = Engine::Repair(options, false);
  if (absl::IsFailedPrecondition(listed.status()) || absl::IsDataLoss(listed.status())) return;
  ASSERT_TRUE(listed.ok()) << what << ": " << listed.status();
  EXPECT_EQ(listed->empty(), status.ok()) << what << ": " << status;
  ASSERT_TRUE(Engine::Repair(options, true).ok()) << what;
  const auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << what << ": " << engine.status() << " after " << status;
}

void FlipBytes(const Image& image, size_t stride, uint8_t mask) {
  for (const std::string& path : image.Files()) {
    int refused = 0;
    const std::string content = image.disk->Content(path);
    for (size_t at = 0; at < content.size(); at += stride) {
      std::string flipped = content;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrWhole(image, *image.With(path, flipped),
                                                   fmt::format("{} byte {}", path, at), &refused));
    }
    EXPECT_GT(refused, 0) << path;
  }
}

void CutFiles(const Image& image, size_t stride) {
  for (const std::string& path : image.Files()) {
    int refused = 0;
    const std::string content = image.disk->Content(path);
    for (size_t size = 0; size < content.size(); size += stride) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectRefusedOrWhole(image, *image.With(path, content.substr(0, size)),
                               fmt::format("{} cut to {}", path, size), &refused));
    }
    EXPECT_GT(refused, 0) << path;
  }
}

TEST(DamageTest, AFlippedByteIsRefusedOrDoesNotMatter) {
  FlipBytes(MakeImage(true), 7, 0x10);
  FlipBytes(MakeImage(false), 7, 0x01);
}

TEST(DamageTest, ACutFileIsRefusedOrDoesNotMatter) {
  CutFiles(MakeImage(true), 13);
  CutFiles(MakeImage(false), 13);
}

TEST(DamageTestLong, EveryFlippedByteIsRefusedOrDoesNotMatter) {
  for (const bool close : {false, true}) {
    for (const uint8_t mask : {0x01, 0x80, 0xff}) FlipBytes(MakeImage(close), 1, mask);
  }
}

TEST(DamageTestLong, EveryCutFileIsRefusedOrDoesNotMatter) {
  CutFiles(MakeImage(true), 1);
  CutFiles(MakeImage(false), 1);
}

TEST(DamageTest, AMissingFileIsRefused) {
  const Image image = MakeImage(true);
  for (const std::string& path : image.Files()) {
    std::unique_ptr<FaultyFileSystem> disk = image.disk->AfterPowerLoss(1);
    ASSERT_TRUE(disk->Remove(path).ok());
    const absl::Status status = CheckRecovery(*disk, image.candidates);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_FALSE(absl::IsInternal(status)) << path << ": " << status;
  }
}

TEST(DamageTest, AllLogFilesMissingIsRefusedAndRepairGoesOnAboveThem) {
  const Image image = MakeImage(true);
  std::unique_ptr<FaultyFileSystem> disk = image.disk->AfterPowerLoss(1);
  for (const std::string& path : image.Files()) {
    if (!path.ends_with(".log")) continue;
    ASSERT_TRUE(disk->Remove(path).ok());
  }
  ManualClock clock;
  const EngineOptions options = ModelOptions(disk.get(), &clock);
  EXPECT_TRUE(absl::IsDataLoss(Engine::Open(options).status()));
  EXPECT_EQ(Engine::Repair(options, true)->size(), 1u);
  EXPECT_TRUE(Engine::Repair(options, false)->empty());
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(CheckVerdict(**engine, 0, 2023, 1), Verdict::kDuplicate);  // the snapshot has it
}

// Without a snapshot nothing is left that knows how far the log went.
TEST(DamageTest, WithoutAnyLogAndSnapshotOpeningRefusesAndRepairListsTheLoss) {
  FaultyFileSystem disk;
  ManualClock clock;
  const EngineOptions options = ModelOptions(&disk, &clock);
  ASSERT_TRUE(Engine::Create(options).ok());
  {
    const auto engine = Engine::Open(options).value();
    ASSERT_TRUE(engine->CreateSet("kyc", YearSet()).ok());
  }
  for (const std::string& path : ListPaths(disk)) {
    if (!path.ends_with(".log")) continue;
    ASSERT_TRUE(disk.Remove(path).ok());
  }
  disk.SetContent(options.directory + "/notes.log", "no segment");
  for (int round = 0; round < 2; ++round) {  // listing changes nothing
    EXPECT_TRUE(absl::IsDataLoss(Engine::Open(options).status()));
    const std::vector<std::string> listed = Engine::Repair(options, false).value();
    ASSERT_EQ(listed.size(), 2u);
    EXPECT_THAT(listed[0], HasSubstr("no log segment"));
    EXPECT_THAT(listed[1], HasSubstr("every set and all its members are lost"));
  }
  EXPECT_EQ(Engine::Repair(options, true)->size(), 2u);
  EXPECT_TRUE(Engine::Repair(options, false)->empty());
  const auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_TRUE((*engine)->ListSets().empty());
}

TEST(DamageTest, NothingIsListedForAGoodDirectory) {
  for (const bool close : {false, true}) {
    const Image image = MakeImage(close);
    ManualClock clock;
    const auto listed = Engine::Repair(ModelOptions(image.disk.get(), &clock), true);
    ASSERT_TRUE(listed.ok()) << listed.status();
    EXPECT_TRUE(listed->empty());
    EXPECT_TRUE(CheckRecovery(*image.disk, image.candidates).ok());
  }
}

TEST(DamageTest, RepairOfASnapshotLosesOnlyTheDamagedSections) {
  TestDirectory directory;
  ManualClock clock;
  EngineOptions options;
  options.directory = directory.path() + "/data";
  options.key_check_value = "k";
  options.snapshot_log_bytes = 0;
  ASSERT_TRUE(Engine::Create(options).ok());
  auto engine = Engine::Open(options).value();
  const SetId set = engine->CreateSet("kyc", YearSet()).value();
  ImportBatch batch{.source = "a", .position = "1", .rows = {}};
  for (uint64_t n = 0; n < 50'000; ++n) batch.rows.push_back({2023, Print(n), 0});
  ASSERT_TRUE(engine->Import(set, batch).ok());
  ASSERT_TRUE(engine->Snapshot().ok());
  EXPECT_EQ(ClaimVerdict(*engine, set, 2023, 50'000), Verdict::kFirst);
  ASSERT_TRUE(engine->Close().ok());
  engine.reset();

  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
    if (entry.path().string().find("snapshot-") != std::string::npos) path = entry.path();
  }
  std::string content = ReadFile(FileSystem::Posix(), path).value();
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(FileSystem::Posix(), path, content).ok());
  const absl::Status refused = Engine::Open(options).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("snapshot-"));
  const std::vector<std::string> listed = Engine::Repair(options, false).value();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_THAT(listed[0], HasSubstr("is damaged"));
  EXPECT_THAT(listed[1], HasSubstr("of 50000 members"));
  EXPECT_TRUE(absl::IsDataLoss(Engine::Open(options).status()));  // listing changes nothing
  EXPECT_EQ(Engine::Repair(options, true).value(), listed);
  EXPECT_TRUE(Engine::Repair(options, false)->empty());
  engine = Engine::Open(options).value();
  const uint64_t left = engine->Stats(set)->windows[0].members;
  EXPECT_GT(left, 10'000u);
  EXPECT_LT(left, 50'001u);
  EXPECT_EQ(CheckVerdict(*engine, set, 2023, 50'000), Verdict::kDuplicate);
}

TEST(DamageTest, ADamagedSnapshotThatTheLogReplacesCostsNothing) {
  FaultyFileSystem disk;
  ManualClock clock;
  const EngineOptions options = ModelOptions(&disk, &clock);
  ASSERT_TRUE(Engine::Create(options).ok());
  auto engine = Engine::Open(options).value();
  const SetId set = engine->CreateSet("kyc", YearSet()).value();
  for (uint64_t n = 0; n < 100; ++n) ClaimVerdict(*engine, set, 2023, n, n + 1);
  const std::unique_ptr<FaultyFileSystem> before = disk.AfterProcessCrash();
  ASSERT_TRUE(engine->Snapshot().ok());
  ASSERT_TRUE(engine->Close().ok());
  engine.reset();
  // The log's old segments are back, as after a power loss before their removal was on disk.
  std::string snapshot;
  for (const std::string& path : ListPaths(*before)) {
    const bool removed = !disk.Exists(path).value() && path.ends_with(".log");
    if (removed) disk.SetContent(path, before->Content(path));
  }
  for (const std::string& path : ListPaths(disk)) {
    if (path.find("snapshot-") != std::string::npos) snapshot = path;
  }
  std::string content = disk.Content(snapshot);
  content[100] = static_cast<char>(content[100] ^ 1);
  disk.SetContent(snapshot, content);
  EXPECT_TRUE(absl::IsDataLoss(Engine::Open(options).status()));
  const std::vector<std::string> listed = Engine::Repair(options, true).value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_THAT(listed[0], HasSubstr("nothing is lost"));
  engine = Engine::Open(options).value();
  EXPECT_EQ(engine->Stats(set)->windows[0].members, 100u);
  EXPECT_EQ(ClaimVerdict(*engine, set, 2023, 7, 8), Verdict::kRepeat);
}

}  // namespace
}  // namespace firstseen
