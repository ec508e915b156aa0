#include "support/faulty_file_system.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/check.h"
#include "base/mutex.h"
#include "base/status.h"
#include "support/faulty_inode.h"

namespace firstseen {
namespace {

using Names = std::map<std::string, std::shared_ptr<Inode>>;  // null = a directory

// A change of directory entries that is not on disk yet; atomic.
struct NameChange {
  std::set<std::string> directories;                                  // that have to be synced
  std::vector<std::pair<std::string, std::shared_ptr<Inode>>> added;  // null = a directory
  std::vector<std::string> removed;

  void ApplyTo(Names* names) const {
    for (const std::string& path : removed) names->erase(path);
    for (const auto& [path, inode] : added) (*names)[path] = inode;
  }
};

absl::Status MakeError(FaultyFileSystem::Error error, std::string_view what,
                       const std::string& path) {
  if (error == FaultyFileSystem::Error::kNoSpace) {
    return ResourceExhausted("cannot {} {}: no space left (injected)", what, path);
  }
  return Unavailable("cannot {} {}: input/output error (injected)", what, path);
}

}  // namespace

struct FaultyFileSystem::State {
  mutable Mutex mutex;
  Names cached GUARDED_BY(mutex);  // what the program sees
  Names on_disk GUARDED_BY(mutex);
  std::vector<NameChange> pending GUARDED_BY(mutex);
  std::map<std::string, std::string> holders GUARDED_BY(mutex);  // by path of the lock

  uint64_t operations GUARDED_BY(mutex) = 0;
  Fault fault GUARDED_BY(mutex);
  uint64_t capacity GUARDED_BY(mutex) = std::numeric_limits<uint64_t>::max();
  std::function<bool(const SyncCall&)> ignore GUARDED_BY(mutex);
  std::vector<SyncCall> sync_calls GUARDED_BY(mutex);

  Mutex after_mutex;
  CondVar after_done;
  std::shared_ptr<const std::function<void(uint64_t)>> after_operation GUARDED_BY(after_mutex);
  int after_running GUARDED_BY(after_mutex) = 0;

  void RunAfterOperation(uint64_t number) {
    std::shared_ptr<const std::function<void(uint64_t)>> function;
    {
      MutexLock lock(after_mutex);
      function = after_operation;
      if (function == nullptr) return;
      ++after_running;
    }
    (*function)(number);
    MutexLock lock(after_mutex);
    --after_running;
    after_done.NotifyAll();
  }

  // Does one operation: counts it and runs `act`, or `fail` if it is to fail. `fail` is told
  // whether it is torn: half done.
  template <typename Act, typename Fail>
  absl::Status Do(std::string_view what, const std::string& path, Act act, Fail fail) {
    uint64_t number = 0;
    absl::Status status;
    {
      MutexLock lock(mutex);
      number = ++operations;
      const bool fails =
          fault.at != 0 && (number == fault.at || (fault.for_good && number > fault.at));
      if (fails) {
        fail(fault.tear && number == fault.at);
        status = MakeError(fault.error, what, path);
      } else {
        status = act();
      }
    }
    RunAfterOperation(number);
    return status;
  }

  // A change of directory entries, whole also when it is torn.
  template <typename Act>
  absl::Status DoNames(std::string_view what, const std::string& path, Act act) {
    return Do(what, path, act, [&](bool torn) {
      if (torn) act().IgnoreError();
    });
  }

  void Change(NameChange change) REQUIRES(mutex) {
    change.ApplyTo(&cached);
    pending.push_back(std::move(change));
  }

  bool IsDirectory(const std::string& path) const REQUIRES(mutex) {
    const auto found = cached.find(path);
    return found != cached.end() && found->second == nullptr;
  }

  std::shared_ptr<Inode> Find(const std::string& path) const REQUIRES(mutex) {
    const auto found = cached.find(path);
    return found == cached.end() ? nullptr : found->second;
  }

  uint64_t TotalBytes() const REQUIRES(mutex) {
    uint64_t sum = 0;
    for (const auto& [path, inode] : cached) {
      if (inode != nullptr) sum += inode->cache.size;
    }
    return sum;
  }

  absl::Status CheckRoom(const Inode& inode, uint64_t size, std::string_view what,
                         const std::string& path) const REQUIRES(mutex) {
    if (size <= inode.cache.size || capacity == std::numeric_limits<uint64_t>::max() ||
        TotalBytes() + (size - inode.cache.size) <= capacity) {
      return absl::OkStatus();
    }
    return MakeError(Error::kNoSpace, what, path);
  }

  // Whether this call is to be left out; notes it.
  bool NoteSync(Operation operation, const std::string& path, const void* site) REQUIRES(mutex) {
    sync_calls.push_back({operation, path, sync_calls.size() + 1, site});
    return ignore && ignore(sync_calls.back());
  }
};

class FaultyFileSystem::FaultyFile : public File {
 public:
  FaultyFile(std::shared_ptr<State> state, std::shared_ptr<Inode> inode, std::string path,
             bool writable)
      : state_(std::move(state)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        writable_(writable) {}

  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t size) const override {
    MutexLock lock(state_->mutex);
    const std::string bytes = inode_->cache.Read(offset, size);
    std::memcpy(out, bytes.data(), bytes.size());
    return bytes.size();
  }

  absl::Status Write(uint64_t offset, std::string_view bytes) override {
    if (!writable_) return Unavailable("cannot write {}: it is open for reading", path_);
    return state_->Do(
        "write", path_,
        [&] {
          RETURN_IF_ERROR(state_->CheckRoom(*inode_, offset + bytes.size(), "write", path_));
          inode_->Write(offset, bytes);
          return absl::OkStatus();
        },
        [&](bool torn) {
          if (torn) inode_->Write(offset, bytes.substr(0, TornSize(bytes.size())));
        });
  }

  __attribute__((noinline)) absl::Status Sync() override {
    const void* const site = __builtin_return_address(0);
    return state_->Do(
        "sync", path_,
        [&] {
          if (!state_->NoteSync(Operation::kSync, path_, site)) inode_->Sync();
          return absl::OkStatus();
        },
        [&](bool torn) { inode_->FailSync(torn); });
  }

  absl::Status Allocate(uint64_t size) override {
    return state_->Do(
        "reserve space for", path_,
        [&] {
          RETURN_IF_ERROR(state_->CheckRoom(*inode_, size, "reserve space for", path_));
          if (size > inode_->cache.size) inode_->Resize(size);
          return absl::OkStatus();
        },
        [&](bool torn) {
          const uint64_t torn_size = torn ? TornSize(size) : 0;
          if (torn_size > inode_->cache.size) inode_->Resize(torn_size);
        });
  }

  absl::Status Truncate(uint64_t size) override {
    return state_->Do(
        "truncate", path_,
        [&] {
          RETURN_IF_ERROR(state_->CheckRoom(*inode_, size, "truncate", path_));
          inode_->Resize(size);
          return absl::OkStatus();
        },
        [&](bool torn) {
          if (torn) inode_->Resize(size);
        });
  }

  absl::StatusOr<uint64_t> Size() const override {
    MutexLock lock(state_->mutex);
    return inode_->cache.size;
  }

 private:
  // How much of `size` bytes a torn operation does.
  uint64_t TornSize(uint64_t size) const {
    std::mt19937_64 random(state_->fault.at);
    return size == 0 ? 0 : random() % size;
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Inode> inode_;
  const std::string path_;
  const bool writable_;
};

class FaultyFileSystem::FaultyFileLock : public FileLock {
 public:
  FaultyFileLock(std::shared_ptr<State> state, std::string path)
      : state_(std::move(state)), path_(std::move(path)) {}
  ~FaultyFileLock() override {
    MutexLock lock(state_->mutex);
    state_->holders.erase(path_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
};

FaultyFileSystem::FaultyFileSystem(std::vector<std::string> directories)
    : state_(std::make_shared<State>()) {
  MutexLock lock(state_->mutex);
  state_->cached["/"] = nullptr;
  for (std::string& path : directories) state_->cached[std::move(path)] = nullptr;
  state_->on_disk = state_->cached;
}

FaultyFileSystem::FaultyFileSystem(std::shared_ptr<State> state) : state_(std::move(state)) {}
FaultyFileSystem::~FaultyFileSystem() = default;

absl::StatusOr<std::unique_ptr<File>> FaultyFileSystem::Open(const std::string& path,
                                                             OpenMode mode) {
  std::shared_ptr<Inode> inode;
  const bool creates = mode == OpenMode::kCreate || mode == OpenMode::kCreateNew;
  {
    MutexLock lock(state_->mutex);
    inode = state_->Find(path);
    if (state_->IsDirectory(path)) return Unavailable("cannot open {}: it is a directory", path);
    if (inode == nullptr && (!creates || !state_->IsDirectory(ParentDirectory(path)))) {
      return NotFound("cannot open {}: no such file or directory", path);
    }
    if (inode != nullptr && mode == OpenMode::kCreateNew) {
      return AlreadyExists("cannot create {}: it exists", path);
    }
  }
  if (creates) {
    RETURN_IF_ERROR(state_->DoNames("create", path, [&] {
      if (inode != nullptr) {
        inode->Resize(0);
      } else {
        inode = std::make_shared<Inode>();
        state_->Change({{ParentDirectory(path)}, {{path, inode}}, {}});
      }
      return absl::OkStatus();
    }));
  }
  return std::make_unique<FaultyFile>(state_, inode, path, mode != OpenMode::kRead);
}

absl::Status FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  return state_->DoNames("rename", from, [&]() -> absl::Status {
    const std::shared_ptr<Inode> inode = state_->Find(from);
    if (inode == nullptr) return NotFound("cannot rename {}: no such file", from);
    if (!state_->IsDirectory(ParentDirectory(to)) || state_->IsDirectory(to)) {
      return NotFound("cannot rename {} to {}: no such directory", from, to);
    }
    state_->Change({{ParentDirectory(from), ParentDirectory(to)}, {{to, inode}}, {from}});
    return absl::OkStatus();
  });
}

absl::Status FaultyFileSystem::Remove(const std::string& path) {
  return state_->DoNames("remove", path, [&]() -> absl::Status {
    if (state_->Find(path) == nullptr) return NotFound("cannot remove {}: no such file", path);
    state_->Change({{ParentDirectory(path)}, {}, {path}});
    return absl::OkStatus();
  });
}

__attribute__((noinline)) absl::Status FaultyFileSystem::SyncDirectory(const std::string& path) {
  const void* const site = __builtin_return_address(0);
  return state_->DoNames("sync directory", path, [&]() -> absl::Status {
    if (!state_->IsDirectory(path)) {
      return NotFound("cannot sync directory {}: no such directory", path);
    }
    if (state_->NoteSync(Operation::kSyncDirectory, path, site)) return absl::OkStatus();
    std::vector<NameChange> rest;
    for (NameChange& change : state_->pending) {
      if (change.directories.contains(path)) {
        change.ApplyTo(&state_->on_disk);
      } else {
        rest.push_back(std::move(change));
      }
    }
    state_->pending = std::move(rest);
    return absl::OkStatus();
  });
}

absl::Status FaultyFileSystem::CreateDirectory(const std::string& path) {
  return state_->DoNames("create directory", path, [&]() -> absl::Status {
    if (state_->IsDirectory(path)) return absl::OkStatus();
    if (state_->Find(path) != nullptr) {
      return AlreadyExists("cannot create directory {}: a file has that name", path);
    }
    if (!state_->IsDirectory(ParentDirectory(path))) {
      return NotFound("cannot create directory {}: no such directory", ParentDirectory(path));
    }
    state_->Change({{ParentDirectory(path)}, {{path, nullptr}}, {}});
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<std::string>> FaultyFileSystem::List(const std::string& path) {
  MutexLock lock(state_->mutex);
  if (!state_->IsDirectory(path)) {
    return NotFound("cannot list directory {}: no such directory", path);
  }
  std::vector<std::string> names;
  for (const auto& [name, inode] : state_->cached) {
    if (name != "/" && ParentDirectory(name) == path) names.push_back(name.substr(path.size()));
  }
  for (std::string& name : names) {
    if (name.front() == '/') name.erase(0, 1);
  }
  return names;
}

absl::StatusOr<bool> FaultyFileSystem::Exists(const std::string& path) {
  MutexLock lock(state_->mutex);
  return state_->cached.contains(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultyFileSystem::Lock(const std::string& path,
                                                                 std::string_view holder) {
  MutexLock lock(state_->mutex);
  const auto [other, locked] = state_->holders.emplace(path, holder);
  if (!locked) {
    return FailedPrecondition("{} is locked by: {}; stop that process first", path, other->second);
  }
  return std::make_unique<FaultyFileLock>(state_, path);
}

uint64_t FaultyFileSystem::operations() const {
  MutexLock lock(state_->mutex);
  return state_->operations;
}

void FaultyFileSystem::FailAt(Fault fault) {
  MutexLock lock(state_->mutex);
  state_->fault = fault;
}

void FaultyFileSystem::SetCapacity(uint64_t bytes) {
  MutexLock lock(state_->mutex);
  state_->capacity = bytes;
}

void FaultyFileSystem::set_after_operation(std::function<void(uint64_t number)> function) {
  State& state = *state_;
  MutexLock lock(state.after_mutex);
  state.after_operation.reset();
  if (function) state.after_operation = std::make_shared<const decltype(function)>(function);
  state.after_done.Wait(
      lock, [&state]() REQUIRES(state.after_mutex) { return state.after_running == 0; });
}

void FaultyFileSystem::IgnoreSyncs(std::function<bool(const SyncCall&)> ignore) {
  MutexLock lock(state_->mutex);
  state_->ignore = std::move(ignore);
}

std::vector<FaultyFileSystem::SyncCall> FaultyFileSystem::sync_calls() const {
  MutexLock lock(state_->mutex);
  return state_->sync_calls;
}

std::unique_ptr<FaultyFileSystem> FaultyFileSystem::AfterPowerLoss(uint64_t seed) const {
  MutexLock lock(state_->mutex);
  std::mt19937_64 random(seed);
  const uint64_t keep = seed == 0 ? 0 : seed == 1 ? 256 : random() % 255 + 1;
  Names names = state_->on_disk;
  for (const NameChange& change : state_->pending) {
    if (random() % 256 < keep) change.ApplyTo(&names);
  }
  auto state = std::make_shared<State>();
  MutexLock new_lock(state->mutex);
  for (const auto& [path, inode] : names) {
    // What is in a directory that is not there any more cannot be reached.
    if (path != "/" && !state->cached.contains(ParentDirectory(path))) continue;
    std::shared_ptr<Inode> survivor;
    if (inode != nullptr) {
      survivor = std::make_shared<Inode>();
      survivor->disk = inode->Survivor(random, keep);
      survivor->cache = survivor->disk;
    }
    state->cached[path] = survivor;
  }
  state->on_disk = state->cached;
  return std::unique_ptr<FaultyFileSystem>(new FaultyFileSystem(std::move(state)));
}

std::unique_ptr<FaultyFileSystem> FaultyFileSystem::AfterProcessCrash() const {
  MutexLock lock(state_->mutex);
  std::map<std::shared_ptr<Inode>, std::shared_ptr<Inode>> copies = {{nullptr, nullptr}};
  const auto copy = [&](const std::shared_ptr<Inode>& inode) {
    std::shared_ptr<Inode>& made = copies[inode];
    if (inode != nullptr && made == nullptr) made = std::make_shared<Inode>(*inode);
    return made;
  };
  auto state = std::make_shared<State>();
  MutexLock new_lock(state->mutex);
  for (const auto& [path, inode] : state_->cached) state->cached[path] = copy(inode);
  for (const auto& [path, inode] : state_->on_disk) state->on_disk[path] = copy(inode);
  state->pending = state_->pending;
  for (NameChange& change : state->pending) {
    for (auto& [path, inode] : change.added) inode = copy(inode);
  }
  return std::unique_ptr<FaultyFileSystem>(new FaultyFileSystem(std::move(state)));
}

std::string FaultyFileSystem::Content(const std::string& path) const {
  MutexLock lock(state_->mutex);
  const std::shared_ptr<Inode> inode = state_->Find(path);
  FIRSTSEEN_CHECK(inode != nullptr);
  return inode->cache.Read(0, inode->cache.size);
}

void FaultyFileSystem::SetContent(const std::string& path, std::string_view content) {
  MutexLock lock(state_->mutex);
  auto inode = std::make_shared<Inode>();
  inode->Write(0, content);
  inode->Sync();
  state_->cached[path] = inode;
  state_->on_disk[path] = inode;
}

}  // namespace firstseen
