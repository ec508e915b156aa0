#include "engine/model.h"

#include <algorithm>

#include "base/status.h"
#include "engine/engine_fixture.h"

namespace firstseen {
namespace {

SetOptions ModelSet() { return YearSet(); }

absl::Status Mismatch(std::string_view what) {
  return Internal("the engine's answer is not the model's: {}", what);
}

// Reads one window of the universe. Claims of members that are there change nothing.
absl::Status ReadWindow(Engine* engine, SetId set, WindowId window, Model::OneWindow* out) {
  std::vector<ClaimRequest> checks;
  for (uint64_t n = 0; n < kModelMembers; ++n) checks.push_back({window, Print(n), 0});
  std::vector<ClaimResult> found(checks.size());
  RETURN_IF_ERROR(engine->Check(set, checks, found));
  std::vector<ClaimRequest> claims;
  std::vector<uint64_t> members;
  for (uint64_t n = 0; n < kModelMembers; ++n) {
    if (out->closed != (found[n].verdict == Verdict::kClosed)) return Mismatch("closed");
    if (found[n].verdict != Verdict::kDuplicate) continue;
    out->members[n] = {};
    for (uint64_t owner = 1; owner <= kModelOwners; ++owner) {
      claims.push_back({window, Print(n), owner});
      members.push_back(n);
    }
  }
  std::vector<ClaimResult> results(claims.size());
  RETURN_IF_ERROR(engine->Claim(set, claims, results));
  for (size_t i = 0; i < claims.size(); ++i) {
    if (results[i].verdict == Verdict::kDuplicate) continue;
    if (results[i].verdict != Verdict::kRepeat) return Mismatch("found, then claimed");
    uint64_t& owner = out->members[members[i]].owner;
    if (owner != 0) return Mismatch("two owners");
    owner = claims[i].owner;
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> ReadEngine(Engine* engine, const Filler* filler, bool aged) {
  Model model;
  std::map<SetId, std::string> names;
  for (const std::string& name : engine->ListSets()) {
    ASSIGN_OR_RETURN(const SetId set, engine->FindSet(name));
    names[set] = name;
  }
  for (const auto& [set, name] : names) {
    model.sets.push_back(name);
    ASSIGN_OR_RETURN(const SetStats stats, engine->Stats(set));
    for (const WindowStats& one : stats.windows) {
      Model::OneWindow& window = model.windows[{set, one.window}];
      window.closed = one.closed;
      RETURN_IF_ERROR(ReadWindow(engine, set, one.window, &window));
      uint64_t members = window.members.size();
      if (filler != nullptr && filler->set == set && filler->window == one.window && !one.closed &&
          one.members > members) {
        members += filler->members;
      }
      if (one.members != members) {
        return Internal("{} members, but only {} are known", one.members, members);
      }
      const auto owned = std::count_if(window.members.begin(), window.members.end(),
                                       [](const auto& m) { return m.second.owner != 0; });
      if (!aged && one.owners != static_cast<uint64_t>(owned)) {
        return Internal("{} owners, but only {} are known", one.owners, owned);
      }
    }
    for (const char* source : {"history/a", "history/b", "other"}) {
      const auto progress = engine->FindImport(set, source);
      if (progress.has_value()) model.imports[{set, source}] = *progress;
    }
  }
  return model;
}

}  // namespace

Verdict Model::Claim(SetId set, WindowId window_id, uint64_t n, uint64_t owner) {
  OneWindow& window = windows[{set, window_id}];
  if (window.closed) return Verdict::kClosed;
  const auto [it, added] = window.members.insert({n, {owner, false}});
  if (added) return Verdict::kFirst;
  return owner != 0 && it->second.owner == owner ? Verdict::kRepeat : Verdict::kDuplicate;
}

Verdict Model::Remove(SetId set, WindowId window_id, uint64_t n, uint64_t owner) {
  OneWindow& window = windows[{set, window_id}];
  if (window.closed) return Verdict::kClosed;
  const auto it = window.members.find(n);
  if (it == window.members.end()) return Verdict::kFirst;
  if (owner != 0 && it->second.owner != owner) return Verdict::kFirst;
  window.members.erase(it);
  return Verdict::kDuplicate;
}

Verdict Model::Check(SetId set, WindowId window_id, uint64_t n) const {
  const auto it = windows.find({set, window_id});
  if (it == windows.end()) return Verdict::kFirst;
  if (it->second.closed) return Verdict::kClosed;
  return it->second.members.contains(n) ? Verdict::kDuplicate : Verdict::kFirst;
}

bool Model::Allows(const Model& found) const {
  Model model = *this;
  for (auto& [place, window] : model.windows) {
    const auto found_window = found.windows.find(place);
    if (place.first != settling.first || found_window == found.windows.end()) continue;
    for (auto& [n, claimed] : window.members) {
      const auto it = found_window->second.members.find(n);
      if (claimed.owner == 0 || claimed.owner != settling.second) continue;
      if (it != found_window->second.members.end() && it->second.settled) claimed.settled = true;
    }
  }
  return model.Normalised().ToString() == found.Normalised().ToString();
}

Model Model::Normalised() const {
  Model model = *this;
  std::erase_if(model.windows, [](const auto& window) {
    return !window.second.closed && window.second.members.empty();
  });
  return model;
}

std::string Model::ToString() const {
  std::string text = fmt::format("{} sets;", sets.size());
  for (const auto& [place, window] : windows) {
    text += fmt::format(" [{} {}{}:", place.first, place.second, window.closed ? " closed" : "");
    for (const auto& [n, claimed] : window.members) {
      text += fmt::format(" {}/{}{}", n, claimed.owner, claimed.settled ? "s" : "");
    }
    text += "]";
  }
  for (const auto& [source, progress] : imports) {
    text += fmt::format(" {} {}={}:{}+{}+{}", source.first, source.second, progress.position,
                        progress.totals.added, progress.totals.duplicates, progress.totals.closed);
  }
  return text;
}

EngineOptions ModelOptions(FileSystem* files, const Clock* clock) {
  EngineOptions options;
  options.directory = "/data/db";
  options.files = files;
  options.clock = clock;
  options.key_check_value = "0123456789abcdef";
  options.holder = "model";
  options.log_segment_bytes = 2048;
  options.snapshot_log_bytes = 0;
  return options;
}

absl::StatusOr<Model> ReadState(const FaultyFileSystem& disk, const Filler* filler) {
  const std::unique_ptr<FaultyFileSystem> copy = disk.AfterPowerLoss(1);
  ManualClock clock;
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(ModelOptions(copy.get(), &clock)));
  ASSIGN_OR_RETURN(Model model, ReadEngine(engine.get(), filler, false));
  // Much later only unsettled owners are known.
  clock.Advance(absl::Hours(49));
  ASSIGN_OR_RETURN(const Model aged, ReadEngine(engine.get(), filler, true));
  RETURN_IF_ERROR(engine->Close());
  for (auto& [place, window] : model.windows) {
    for (auto& [n, claimed] : window.members) {
      claimed.settled = claimed.owner != 0 && aged.windows.at(place).members.at(n).owner == 0;
    }
  }
  return model;
}

absl::Status CheckRecovery(const FaultyFileSystem& disk, const std::vector<Model>& candidates,
                           const Filler* filler) {
  ASSIGN_OR_RETURN(const Model found, ReadState(disk, filler));
  for (const Model& candidate : candidates) {
    if (candidate.Allows(found)) return absl::OkStatus();
  }
  return Internal("found\n  {}\nexpected one of {} states, from\n  {}\nto\n  {}",
                  found.Normalised().ToString(), candidates.size(),
                  candidates.front().Normalised().ToString(),
                  candidates.back().Normalised().ToString());
}

void Driver::Attach(Engine* engine, const Model& model) {
  engine_ = engine;
  MutexLock lock(mutex_);
  candidates_ = {model};
}

std::vector<Model> Driver::candidates() const {
  return Freeze([] {});
}

std::vector<Model> Driver::Freeze(absl::FunctionRef<void()> look) const {
  MutexLock lock(mutex_);
  look();
  return candidates_;
}

Model Driver::Last() const {
  MutexLock lock(mutex_);
  return candidates_.back();
}

void Driver::Push(const Model& model) {
  MutexLock lock(mutex_);
  candidates_.push_back(model);
}

absl::Status Driver::Acknowledge(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  MutexLock lock(mutex_);
  candidates_ = {candidates_.back()};
  return absl::OkStatus();
}

absl::Status Driver::AcknowledgeIf(bool recorded, const absl::Status& status) {
  return recorded ? Acknowledge(status) : status;
}

void Driver::AcknowledgeMembers(SetId set, const std::vector<ClaimRequest>& requests,
                                const std::vector<uint64_t>& members) {
  MutexLock lock(mutex_);
  const Model last = candidates_.back();
  std::erase_if(candidates_, [&](const Model& candidate) {
    for (size_t i = 0; i < members.size(); ++i) {
      const WindowId window = requests[i].window;
      if (candidate.Check(set, window, members[i]) != last.Check(set, window, members[i])) {
        return true;
      }
    }
    return false;
  });
}

absl::Status Driver::CreateSet(const std::string& name, const SetOptions& options) {
  Model model = Last();
  model.sets.push_back(name);
  Push(model);
  return Acknowledge(engine_->CreateSet(name, options).status());
}

absl::Status Driver::Claim(SetId set, const std::vector<ClaimRequest>& requests,
                           const std::vector<uint64_t>& members) {
  Model model = Last();
  std::vector<Verdict> expected;
  for (size_t i = 0; i < requests.size(); ++i) {
    expected.push_back(model.Claim(set, requests[i].window, members[i], requests[i].owner));
    if (expected.back() == Verdict::kFirst) Push(model);
  }
  std::vector<ClaimResult> results(requests.size());
  const bool recorded =
      std::find(expected.begin(), expected.end(), Verdict::kFirst) != expected.end();
  RETURN_IF_ERROR(AcknowledgeIf(recorded, engine_->Claim(set, requests, results)));
  for (size_t i = 0; i < requests.size(); ++i) {
    RETURN_IF_ERROR(results[i].status);
    if (results[i].verdict != expected[i]) return Mismatch("claim");
  }
  if (!recorded) AcknowledgeMembers(set, requests, members);
  return absl::OkStatus();
}

absl::Status Driver::Claim(SetId set, WindowId window, uint64_t n, uint64_t owner) {
  return Claim(set, {{window, Print(n), owner}}, {n});
}

absl::Status Driver::Remove(SetId set, WindowId window, uint64_t n, uint64_t owner) {
  Model model = Last();
  const Verdict expected = model.Remove(set, window, n, owner);
  Push(model);
  const ClaimRequest request{window, Print(n), owner};
  ClaimResult result;
  RETURN_IF_ERROR(AcknowledgeIf(expected == Verdict::kDuplicate,
                                engine_->Remove(set, {&request, 1}, {&result, 1})));
  return result.verdict == expected ? absl::OkStatus() : Mismatch("remove");
}

absl::Status Driver::Check(SetId set, WindowId window, uint64_t n) {
  const Verdict expected = Last().Check(set, window, n);
  const ClaimRequest request{window, Print(n), 0};
  ClaimResult result;
  RETURN_IF_ERROR(engine_->Check(set, {&request, 1}, {&result, 1}));
  AcknowledgeMembers(set, {request}, {n});
  return result.verdict == expected ? absl::OkStatus() : Mismatch("check");
}

absl::Status Driver::Settle(SetId set, uint64_t owner) {
  const Model before = Last();
  std::vector<std::pair<std::pair<SetId, WindowId>, uint64_t>> claims;
  for (const auto& [place, window] : before.windows) {
    if (place.first != set) continue;
    for (const auto& [n, claimed] : window.members) {
      if (claimed.owner == owner && !claimed.settled) claims.emplace_back(place, n);
    }
  }
  // One record each, in an order of the engine's choice.
  Model model = before;
  model.settling = {set, owner};
  Push(model);
  model.settling = {};
  for (const auto& [place, n] : claims) model.windows[place].members[n].settled = true;
  Push(model);
  const absl::StatusOr<uint64_t> settled = engine_->Settle(set, {&owner, 1});
  RETURN_IF_ERROR(AcknowledgeIf(!claims.empty(), settled.status()));
  return *settled == claims.size() ? absl::OkStatus() : Mismatch("settle");
}

absl::Status Driver::Drop(SetId set, WindowId window) {
  Model model = Last();
  Model::OneWindow& dropped = model.windows[{set, window}];
  const bool recorded = !dropped.closed;
  dropped = {.closed = true, .members = {}};
  Push(model);
  return AcknowledgeIf(recorded, engine_->Drop(set, window));
}

absl::Status Driver::Reopen(SetId set, WindowId window) {
  Model model = Last();
  const bool recorded = std::exchange(model.windows[{set, window}].closed, false);
  Push(model);
  return AcknowledgeIf(recorded, engine_->Reopen(set, window));
}

absl::Status Driver::Import(SetId set, const std::string& source, const std::string& position,
                            const std::vector<Row>& rows) {
  Model model = Last();
  ImportBatch batch{.source = source, .position = position, .rows = {}};
  ImportResult counts;
  for (const Row& row : rows) {
    batch.rows.push_back({row.window, Print(row.n), row.owner});
    const Verdict verdict = model.Claim(set, row.window, row.n, row.owner);
    counts.added += verdict == Verdict::kFirst;
    counts.closed += verdict == Verdict::kClosed;
    counts.duplicates += verdict == Verdict::kDuplicate || verdict == Verdict::kRepeat;
  }
  Engine::ImportProgress& progress = model.imports[{set, source}];
  progress.position = position;
  progress.totals.added += counts.added;
  progress.totals.duplicates += counts.duplicates;
  progress.totals.closed += counts.closed;
  Push(model);
  ASSIGN_OR_RETURN(const ImportResult result, engine_->Import(set, batch));
  const bool same = result.added == counts.added && result.duplicates == counts.duplicates &&
                    result.closed == counts.closed;
  return same ? absl::OkStatus() : Mismatch("import");
}

absl::Status Driver::ImportSync() { return Acknowledge(engine_->ImportSync()); }

absl::Status Driver::ForgetImports(SetId set, const std::string& prefix) {
  Model model = Last();
  std::erase_if(model.imports, [&](const auto& import) {
    return import.first.first == set && import.first.second.starts_with(prefix);
  });
  Push(model);
  return Acknowledge(engine_->ForgetImports(set, prefix));
}

absl::Status Driver::Random(firstseen::Random* random) {
  const auto set = static_cast<SetId>(random->Below(2));
  const auto window = static_cast<WindowId>(2022 + random->Below(3));
  const uint64_t n = random->Below(kModelMembers);
  const uint64_t owner = random->Below(kModelOwners + 1);
  const uint64_t dice = random->Below(100);
  if (dice < 30) return Claim(set, window, n, owner);
  if (dice < 45) {
    std::vector<ClaimRequest> requests;
    std::vector<uint64_t> members;
    for (uint64_t i = random->Below(100); i > 0; --i) {
      members.push_back(random->Below(kModelMembers));
      requests.push_back({static_cast<WindowId>(2022 + random->Below(3)), Print(members.back()),
                          random->Below(kModelOwners + 1)});
    }
    return Claim(set, requests, members);
  }
  if (dice < 60) return Remove(set, window, n, random->OneIn(2) ? 0 : owner);
  if (dice < 65) return Check(set, window, n);
  if (dice < 75) return Settle(set, 1 + random->Below(kModelOwners));
  if (dice < 79) return Drop(set, window);
  if (dice < 85) return Reopen(set, window);
  if (dice < 95) {
    std::vector<Row> rows;
    for (uint64_t i = random->Below(20); i > 0; --i) {
      rows.push_back({static_cast<WindowId>(2022 + random->Below(3)), random->Below(kModelMembers),
                      random->Below(kModelOwners + 1)});
    }
    return Import(set, random->OneIn(2) ? "history/a" : "history/b", std::to_string(++imported_),
                  rows);
  }
  if (dice < 98) return ImportSync();
  return ForgetImports(set, "history/");
}

absl::Status RunScript(Engine* engine, Driver* driver, bool strict) {
  RETURN_IF_ERROR(driver->CreateSet("kyc", ModelSet()));
  RETURN_IF_ERROR(driver->Claim(0, 2023, 1, 1));
  RETURN_IF_ERROR(driver->Claim(0, 2023, 2, 0));
  RETURN_IF_ERROR(driver->Claim(0, 2023, 3, 2));
  RETURN_IF_ERROR(driver->CreateSet("other", ModelSet()));
  RETURN_IF_ERROR(driver->Import(0, "history/a", "1", {{2022, 1, 1}, {2022, 1, 2}, {2023, 4, 3}}));
  RETURN_IF_ERROR(driver->Import(1, "other", "1", {{2022, 1, 0}, {2022, 2, 0}}));
  RETURN_IF_ERROR(driver->ImportSync());
  RETURN_IF_ERROR(driver->Settle(0, 1));
  RETURN_IF_ERROR(driver->Drop(0, 2024));
  RETURN_IF_ERROR(driver->Remove(0, 2023, 2, 0));
  if (const absl::Status status = engine->Snapshot(); strict) RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(driver->Claim(0, 2023, 2, 4));
  RETURN_IF_ERROR(driver->Claim(0, 2023, 1, 1));
  RETURN_IF_ERROR(driver->Remove(0, 2023, 3, 2));
  RETURN_IF_ERROR(driver->Check(0, 2023, 3));
  RETURN_IF_ERROR(driver->Import(0, "history/a", "2", {{2023, 5, 0}, {2023, 4, 0}, {2024, 6, 0}}));
  RETURN_IF_ERROR(driver->Drop(0, 2022));
  RETURN_IF_ERROR(driver->Reopen(0, 2024));
  RETURN_IF_ERROR(driver->Claim(0, 2024, 9, 1));
  if (const absl::Status status = engine->Snapshot(); strict) RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(driver->ForgetImports(0, "history/"));
  RETURN_IF_ERROR(driver->Settle(0, 4));
  // Enough for the log to go on in another segment.
  for (WindowId window : {2022, 2023, 2024}) {
    std::vector<ClaimRequest> requests;
    std::vector<uint64_t> members;
    for (uint64_t n = 0; n < kModelMembers; ++n) {
      requests.push_back({window, Print(n), 1 + n % 2});
      members.push_back(n);
    }
    RETURN_IF_ERROR(driver->Claim(1, requests, members));
  }
  return driver->Claim(0, 2023, 11, 3);
}

}  // namespace firstseen
