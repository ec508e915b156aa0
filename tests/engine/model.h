// A model of the engine as plain maps, and a driver that does the same things to both.
//
// The driver works with one thread, so the log's records come in the order of the model's steps.
// That gives a sharp oracle for crashes: what is recovered must be the model after some step, and
// not before the last one that was acknowledged: `Driver::candidates`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "support/faulty_file_system.h"
#include "support/random.h"

namespace firstseen {

// Members are Print(0) to Print(kModelMembers - 1), owners 1 to kModelOwners.
inline constexpr uint64_t kModelMembers = 24;
inline constexpr uint64_t kModelOwners = 4;

struct Model {
  struct Claimed {
    uint64_t owner = 0;
    bool settled = false;
    friend bool operator==(const Claimed&, const Claimed&) = default;
  };
  struct OneWindow {
    bool closed = false;
    std::map<uint64_t, Claimed> members;
    friend bool operator==(const OneWindow&, const OneWindow&) = default;
  };
  std::vector<std::string> sets;
  std::map<std::pair<SetId, WindowId>, OneWindow> windows;
  std::map<std::pair<SetId, std::string>, Engine::ImportProgress> imports;  // by source
  // The owner whose claims in this set were being settled: any of them may be. 0 = none.
  std::pair<SetId, uint64_t> settling;

  Verdict Claim(SetId set, WindowId window, uint64_t n, uint64_t owner);
  Verdict Remove(SetId set, WindowId window, uint64_t n, uint64_t owner);
  Verdict Check(SetId set, WindowId window, uint64_t n) const;

  // Whether an engine in state `found` may be this one.
  bool Allows(const Model& found) const;
  // Without windows that are as if they had never been.
  Model Normalised() const;
  std::string ToString() const;
};

// Members that are in a window from the start, so that it is larger than the model.
struct Filler {
  SetId set = 0;
  WindowId window = 0;
  uint64_t members = 0;  // Print(kFillerBegin) and on
};
inline constexpr uint64_t kFillerBegin = 1'000'000;

// Options for an engine on `files`, with small segments and no threads that touch the disk.
EngineOptions ModelOptions(FileSystem* files, const Clock* clock);

// The engine's state read through its front door. Errors say what contradicts itself.
absl::StatusOr<Model> ReadState(const FaultyFileSystem& disk, const Filler* filler = nullptr);

// Opens `disk` and compares what is there with the candidates: OK when it is one of them.
absl::Status CheckRecovery(const FaultyFileSystem& disk, const std::vector<Model>& candidates,
                           const Filler* filler = nullptr);

// Does things to an engine and a model of it.
class Driver {
 public:
  explicit Driver(Engine* engine) : engine_(engine) {}
  // Goes on with another engine, whose state is that of `model`.
  void Attach(Engine* engine, const Model& model);

  // Each returns the engine's error, or Internal when an answer was not the model's.
  absl::Status CreateSet(const std::string& name, const SetOptions& options);
  absl::Status Claim(SetId set, const std::vector<ClaimRequest>& requests,
                     const std::vector<uint64_t>& members);
  absl::Status Claim(SetId set, WindowId window, uint64_t n, uint64_t owner);
  absl::Status Remove(SetId set, WindowId window, uint64_t n, uint64_t owner);
  absl::Status Check(SetId set, WindowId window, uint64_t n);
  absl::Status Settle(SetId set, uint64_t owner);
  absl::Status Drop(SetId set, WindowId window);
  absl::Status Reopen(SetId set, WindowId window);
  struct Row {
    WindowId window = 0;
    uint64_t n = 0;
    uint64_t owner = 0;
  };
  absl::Status Import(SetId set, const std::string& source, const std::string& position,
                      const std::vector<Row>& rows);
  absl::Status ImportSync();
  absl::Status ForgetImports(SetId set, const std::string& prefix);

  // One of the above, with random arguments, on set 0 or 1.
  absl::Status Random(firstseen::Random* random);

  // States that may be found after a crash now: the last acknowledged one, and those after it.
  std::vector<Model> candidates() const;
  // The same, of the moment at which `look` runs: no step begins or is acknowledged meanwhile.
  std::vector<Model> Freeze(absl::FunctionRef<void()> look) const;

 private:
  Model Last() const;
  void Push(const Model& model);
  // `status` is the engine's: when it is good, all steps so far are on disk. Not for answers that
  // come without a record of their own: those rest on the records of their shard alone.
  absl::Status Acknowledge(const absl::Status& status);
  absl::Status AcknowledgeIf(bool recorded, const absl::Status& status);
  // An answer without a record: what it says of these members is on disk.
  void AcknowledgeMembers(SetId set, const std::vector<ClaimRequest>& requests,
                          const std::vector<uint64_t>& members);

  Engine* engine_;
  uint64_t imported_ = 0;
  mutable Mutex mutex_;  // candidates are read from the log's thread
  std::vector<Model> candidates_ GUARDED_BY(mutex_) = {Model()};
};

// A script that uses every kind of record and takes a snapshot in the middle; stops at the first
// error, which it returns. Snapshot errors only count when `strict`.
absl::Status RunScript(Engine* engine, Driver* driver, bool strict);

}  // namespace firstseen
