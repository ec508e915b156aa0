#include "store/embedded_store.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/window.h"
#include "keys/key_file.h"
#include "store/engine_store.h"

namespace firstseen {
namespace {

std::string KeyPath(const EmbeddedStoreOptions& options) {
  return options.key_file.empty() ? options.directory + "/key" : options.key_file;
}

std::string KeyChecksPath(const EmbeddedStoreOptions& options) {
  return options.directory + "/key_checks";
}

EngineOptions ForEngine(const EmbeddedStoreOptions& options, const Keyring& keys) {
  EngineOptions engine;
  engine.directory = options.directory;
  engine.files = options.files;
  engine.clock = options.clock;
  engine.key_check_value = keys.keys().front().hasher.key_check_value();
  engine.holder = options.holder;
  engine.memory_bytes_max = options.memory_bytes_max;
  engine.owner_bytes_max = options.owner_bytes_max;
  engine.log_segment_bytes = options.log_segment_bytes;
  engine.snapshot_log_bytes = options.snapshot_log_bytes;
  return engine;
}

absl::StatusOr<Keyring> ReadKeys(const EmbeddedStoreOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<KeyEntry> entries,
                   ReadKeyFile(options.files, KeyPath(options)));
  return Keyring(entries);
}

absl::Status RequireDirectory(const EmbeddedStoreOptions& options) {
  ASSIGN_OR_RETURN(const bool there, options.files->Exists(options.directory));
  if (there) return absl::OkStatus();
  return NotFound("there is no data directory {}; make it with: firstseen init --data {}",
                  options.directory, options.directory);
}

// One line for each key that the directory has been opened with; see docs/format.md.
std::vector<std::string> KeyCheckLines(const Keyring& keys) {
  std::vector<std::string> lines;
  for (const Keyring::Key& key : keys.keys()) {
    lines.push_back(fmt::format("{} {} {}\n", key.id, key.from_day, key.hasher.key_check_value()));
  }
  return lines;
}

// How many of the keys the directory knows already; FailedPrecondition when it knows others.
absl::StatusOr<size_t> MatchKeyChecks(const EmbeddedStoreOptions& options, const Keyring& keys) {
  const absl::StatusOr<std::string> recorded = ReadFile(options.files, KeyChecksPath(options));
  if (absl::IsNotFound(recorded.status())) return 0;
  RETURN_IF_ERROR(recorded.status());
  std::string_view rest = *recorded;
  size_t known = 0;
  for (const std::string& line : KeyCheckLines(keys)) {
    if (rest.empty()) break;
    if (!rest.starts_with(line)) {
      return FailedPrecondition(
          "key {} of key file {} is not the one that {} is used with; name the right key file or "
          "restore your backup of it",
          keys.keys()[known].id, KeyPath(options), options.directory);
    }
    rest.remove_prefix(line.size());
    ++known;
  }
  if (rest.empty()) return known;
  return FailedPrecondition(
      "key file {} has {} keys and {} is used with more; restore your latest backup of it",
      KeyPath(options), known, options.directory);
}

// A key that is new here must not take over a window that has been filled under an older one.
absl::Status CheckNewKeys(const Keyring& keys, size_t known, const Engine& engine) {
  const size_t first_new = std::max<size_t>(known, 1);  // the engine itself checks the first key
  if (first_new >= keys.keys().size()) return absl::OkStatus();
  const Keyring::Key& key = keys.keys()[first_new];
  for (const std::string& name : engine.ListSets()) {
    ASSIGN_OR_RETURN(const SetId id, engine.FindSet(name));
    ASSIGN_OR_RETURN(const SetStats stats, engine.Stats(id));
    for (const WindowStats& window : stats.windows) {
      if (window.closed || FirstDayOfWindow(stats.options.window, window.window) < key.from_day) {
        continue;
      }
      return FailedPrecondition(
          "key {} would apply to window {} of set {}, which is in use with an older key; let the "
          "new key begin after it",
          key.id, FormatWindow(stats.options.window, window.window), name);
    }
  }
  return absl::OkStatus();
}

// A new key beside existing data would make that data worthless and hide that its key is lost.
absl::Status RequireNoData(const EmbeddedStoreOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, options.files->List(options.directory));
  for (const std::string& name : names) {
    const std::string path = options.directory + "/" + name;
    const bool of_key = path == KeyPath(options) + ".lock" || path == KeyPath(options) + ".tmp";
    if (of_key || name == "lost+found") continue;
    return FailedPrecondition(
        "{} holds files and there is no key file {}; restore your backup of the key file, or "
        "choose "
        "an empty directory",
        options.directory, KeyPath(options));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InitEmbeddedStore(const EmbeddedStoreOptions& options, bool* made) {
  RETURN_IF_ERROR(options.files->CreateDirectory(options.directory));
  ASSIGN_OR_RETURN(const bool has_key, options.files->Exists(KeyPath(options)));
  if (!has_key) {
    RETURN_IF_ERROR(RequireNoData(options));
    absl::Status created = CreateKeyFile(options.files, KeyPath(options));
    // Somebody else's `init` at the same time is welcome to have made it.
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  }
  ASSIGN_OR_RETURN(const Keyring keys, ReadKeys(options));
  RETURN_IF_ERROR(MatchKeyChecks(options, keys).status());
  const absl::Status status = Engine::Create(ForEngine(options, keys));
  if (made != nullptr) *made = status.ok();
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::unique_ptr<Store>> OpenEmbeddedStore(const EmbeddedStoreOptions& options) {
  RETURN_IF_ERROR(RequireDirectory(options));
  ASSIGN_OR_RETURN(Keyring keys, ReadKeys(options));
  ASSIGN_OR_RETURN(const size_t known, MatchKeyChecks(options, keys));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Open(ForEngine(options, keys)));
  if (known < keys.keys().size()) {
    RETURN_IF_ERROR(CheckNewKeys(keys, known, *engine));
    std::string checks;
    for (const std::string& line : KeyCheckLines(keys)) checks += line;
    RETURN_IF_ERROR(WriteFileAtomically(options.files, KeyChecksPath(options), checks));
  }
  return NewEngineStore(std::move(engine), std::move(keys), options.clock, options.future_max);
}

absl::StatusOr<std::vector<std::string>> RepairEmbeddedStore(const EmbeddedStoreOptions& options,
                                                             bool apply) {
  RETURN_IF_ERROR(RequireDirectory(options));
  ASSIGN_OR_RETURN(const Keyring keys, ReadKeys(options));
  RETURN_IF_ERROR(MatchKeyChecks(options, keys).status());
  ASSIGN_OR_RETURN(std::vector<std::string> losses,
                   Engine::Repair(ForEngine(options, keys), apply));
  if (apply || losses.empty()) {
    // What repair calls good opens, or says why it does not: the two must not disagree.
    ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenEmbeddedStore(options));
    RETURN_IF_ERROR(store->Close());
  }
  return losses;
}

}  // namespace firstseen
